#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "io/file/file_descriptor.h"

namespace penstock::fuzz {

/// A file of these bytes for as long as this lives: in memory, or in the folder for temporary files, which direct reads
/// need.
class InputFile {
 public:
  enum class Where { kMemory, kDisk };

  explicit InputFile(std::span<const std::byte> content, Where where = Where::kMemory);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const noexcept { return path_; }

 private:
  io::FileDescriptor file_;
  std::string path_;
};

}  // namespace penstock::fuzz
