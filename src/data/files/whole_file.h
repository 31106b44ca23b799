#pragma once

// Samples of small files, which are read whole before anyone knows what they are. Large files: large_file.h.

#include <cstddef>
#include <span>
#include <string>

#include "data/files/file_layout.h"
#include "data/files/split_reader.h"
#include "data/sample/sample.h"
#include "data/sample/work.h"
#include "io/copy/record_check.h"

namespace penstock::data {

/// A file that is in memory.
struct WholeFile {
  std::span<const std::byte> bytes;
  const std::string& path;
  std::span<const std::string> keys;
  /// Where the bytes of `split` lie, which are zeros in `bytes`; null when `bytes` has all.
  const std::byte* part = nullptr;
  SplitReader::Split split = {};
};

/// Finds the payload of a sample in a file of a known layout. One for each file.
class WholeFilePayloads {
 public:
  WholeFilePayloads(const WholeFile& file, const FileLayout& layout, std::span<const format::StorageLocation> locations,
                    const Work& work) noexcept
      : file_(file),
        layout_(layout),
        locations_(locations),
        // Damage of the payload is found by who wants the payload.
        verify_(work.call.verify && !work.call.headers_only),
        arena_(work.scratch.arena) {}

  /// That of tensor `number` of the sample. Points into the file's bytes, or into the arena. Whoever finds a storage
  /// first checks its CRC. kTruncated, kChecksum.
  Payload find(std::size_t number);
  /// The whole sample.
  Sample sample();

 private:
  void verify(std::size_t storage, const io::Record& record, std::span<const std::byte> bytes);

  const WholeFile& file_;
  const FileLayout& layout_;
  std::span<const format::StorageLocation> locations_;
  const bool verify_;
  Arena& arena_;
  std::span<bool> verified_ = {};  ///< of each storage, when one has a CRC
};

}  // namespace penstock::data
