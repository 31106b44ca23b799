#pragma once

// Many files of one program have the same directory. This recognises it, so that only the first of them is parsed; a
// loader of small files lives by it (docs/design/small_files.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
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

/// The layout of a file that has a directory, which files of one program share. Immutable; thread-safe.
class DirectoryLayout {
 public:
  explicit DirectoryLayout(Index index) : index_(std::move(index)) {}
  DirectoryLayout(const DirectoryLayout&) = delete;
  DirectoryLayout& operator=(const DirectoryLayout&) = delete;
  virtual ~DirectoryLayout() = default;

  /// The index of the file that was read for it. `sources` is empty: source 0 is the file. Offsets and CRCs of storages
  /// may be others in another file of this layout; entries, structure and sizes of storages are equal.
  const Index& index() const noexcept { return index_; }
  /// Whether `file`, all of which lies in memory, has this layout. `locations` becomes one for each storage of the
  /// index and is what holds for this file. Looks at the directory and the records that decide the layout alone, so
  /// that the bytes of tensors need not be there. Throws Error for a directory that is wrong.
  virtual bool matches(std::span<const std::byte> file, std::string_view path, bool verify,
                       std::vector<StorageLocation>& locations) const = 0;

 private:
  Index index_;
};
using DirectoryLayoutPtr = std::shared_ptr<const DirectoryLayout>;

/// Reads many files that one program wrote: a file has the layout of an earlier one when their directories, and all
/// records that decide the layout, are the same. Not thread-safe: one for each thread.
class DirectoryCache {
 public:
  DirectoryCache() = default;
  DirectoryCache(const DirectoryCache&) = delete;
  DirectoryCache& operator=(const DirectoryCache&) = delete;
  virtual ~DirectoryCache() = default;

  /// The layout of `file`, shared with the earlier file when it matches. Null for a file that cannot be of this format.
  /// `locations` as above; storages with `resident` bytes are equal too, and their location means nothing. Reads no
  /// bytes of tensors, so that recorded CRCs of storages are the caller's to check.
  virtual DirectoryLayoutPtr locate(std::span<const std::byte> file, std::string_view path, const OpenOptions& options,
                                    std::vector<StorageLocation>& locations) = 0;
  /// The same for a layout that is known, null for another one: as DirectoryLayout::matches.
  virtual DirectoryLayoutPtr find(std::span<const std::byte> file, std::string_view path, bool verify,
                                  std::vector<StorageLocation>& locations) = 0;
};

}  // namespace penstock::format
