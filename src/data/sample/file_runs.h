#pragma once

// What a batch wants of several files, asked for together: a corpus may have a hundred, and one answer after the other
// would take a hundred times as long.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/sample/sample.h"

namespace penstock::data {

/// Bytes of a file that are wanted somewhere in memory.
struct FileRun {
  InFile from = {};
  std::byte* to = nullptr;
  std::uint64_t bytes = 0;
  std::size_t position = 0;  ///< of the sample, for errors
};

/// Fills all of them, whose files HeldFile::reads_at_once; bytes that several want are read once. Returns how many
/// were read. Throws SampleError, which names the first file that cannot be read alone either.
std::uint64_t read_at_once(std::vector<FileRun> runs);

}  // namespace penstock::data
