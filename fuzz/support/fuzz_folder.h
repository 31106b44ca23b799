#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::fuzz {

/// Reads `data` as a folder of two files of those names, which is one thing: the input is the length of the first file
/// (4 bytes), that file, and the second one. What opens must load, whole and one tensor at a time, or give an Error.
/// Neither file's bytes alone may make another file be opened, whatever they are called. Returns what a fuzz target
/// returns.
int fuzz_folder(const std::string& first, const std::string& second, const std::uint8_t* data, std::size_t size);

}  // namespace penstock::fuzz
