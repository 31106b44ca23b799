#pragma once

// The bytes of a file for whoever parses it: one class for a file in memory and one that is read.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::format {

/// Gives small parts of a file by their offset. The file lies in memory, or is read from a source. Not thread-safe.
class FileBytes {
 public:
  /// Views `file`, which must outlive this; `path` is for errors.
  FileBytes(std::span<const std::byte> file, std::string_view path) : memory_(file), size_(file.size()), path_(path) {}
  explicit FileBytes(const ByteSource& source);

  std::uint64_t size() const noexcept { return size_; }
  const std::string& path() const noexcept { return path_; }
  /// The bytes [offset, offset + length): a view of the memory, or read into `store`. Both the file's memory and
  /// `store` must live while they are used. kTruncated when they reach beyond the end.
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t length, std::vector<std::byte>& store) const;

 private:
  std::span<const std::byte> memory_;
  std::uint64_t size_;
  std::string path_;
  const ByteSource* source_ = nullptr;
  Buffer owner_;
};

}  // namespace penstock::format
