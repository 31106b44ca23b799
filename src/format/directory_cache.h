#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/format.h"

// Formats whose layout is not told by the first bytes of a file, such as zip archives with a directory at their end,
// may remember the layouts that they have seen. The loader asks such a cache before it parses a file. It gets the cache
// from the format's row in the table (Format::directory_cache) and so needs to know no format.

namespace penstock::format {

/// Where the bytes of one storage lie in a particular file.
struct StorageLocation {
  std::uint64_t offset = 0;
  std::optional<std::uint32_t> crc32 = {};
};

/// Reads many files that one program wrote: the index of a file is that of an earlier one when their directories, and
/// all records that decide the layout, are the same. Not thread-safe: one for each thread.
class DirectoryCache {
 public:
  DirectoryCache() = default;
  DirectoryCache(const DirectoryCache&) = delete;
  DirectoryCache& operator=(const DirectoryCache&) = delete;
  virtual ~DirectoryCache() = default;

  /// The index of `file`, shared with the earlier file when it matches: the same pointer means that entries, structure,
  /// and sizes of storages are equal. Null for a file that cannot be of this format. The result's `sources` is empty:
  /// source 0 is `file`. `locations` becomes one for each storage of the index and is what holds for this file: offset
  /// and crc32 in the index itself may be those of another file. Storages with `resident` bytes are equal too; their
  /// location means nothing. Reads no payload, so that recorded CRCs of storages are the caller's to check.
  virtual std::shared_ptr<const Index> locate(std::span<const std::byte> file, std::string_view path,
                                              const OpenOptions& options, std::vector<StorageLocation>& locations) = 0;
  /// The same for a layout that is known, null for another one: no record but those that decide the layout is looked
  /// at, so that the bytes of storages need not be there.
  virtual std::shared_ptr<const Index> find(std::span<const std::byte> file, std::string_view path, bool verify,
                                            std::vector<StorageLocation>& locations) = 0;
};

}  // namespace penstock::format
