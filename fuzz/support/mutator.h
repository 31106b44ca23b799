#pragma once

// How libFuzzer changes the inputs of some fuzzers. In a program without libFuzzer nothing is changed.

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::fuzz {

/// Changes the first `size` bytes of `data`, which may become as many as there are; returns how many there are then.
/// Half of the zip archives so that their checksums hold: otherwise hardly any change of a member would be read.
std::size_t mutate_file(std::span<std::uint8_t> data, std::size_t size, unsigned seed);
/// The same for a tar archive, three of four with checksums that hold: their contents, headers or order are changed.
std::size_t mutate_tar_file(std::span<std::uint8_t> data, std::size_t size, unsigned seed);
/// The same for a file with choices behind it; see input.h.
std::size_t mutate_file_and_choices(std::span<std::uint8_t> data, std::size_t size, unsigned seed);

}  // namespace penstock::fuzz

#ifdef PENSTOCK_LIBFUZZER
#define PENSTOCK_FUZZ_MUTATOR(function)                                                                      \
  extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, \
                                                 unsigned seed) {                                            \
    return penstock::fuzz::function({data, max_size}, size, seed);                                           \
  }
#else
#define PENSTOCK_FUZZ_MUTATOR(function)
#endif
