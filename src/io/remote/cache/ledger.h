#pragma once

// How much the cache has, and what has to go. The file `bytes` has the sum, which every process that keeps a block adds
// to under a lock. It may be too large after blocks were deleted by hand, and is counted anew before anything is
// evicted. A block that is still being written cannot be counted, because it has no name yet. So whoever writes one
// holds the file `writing` shared, and whoever counts holds it alone.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "io/file/file_descriptor.h"

namespace penstock::io::remote {

/// The folder in a cache's folder that has its blocks.
std::string cache_root(std::string_view folder);

/// What the file of a block takes of the disk.
std::uint64_t disk_bytes(std::uint64_t file_bytes) noexcept;

/// Room for one block: false where it does not fit. The block must get its name while this lives. A thread that has one
/// must not ask for another, because it could wait for itself.
class [[nodiscard]] Room {
 public:
  Room() noexcept = default;
  explicit Room(FileDescriptor lock) noexcept : lock_(std::move(lock)) {}
  explicit operator bool() const noexcept { return static_cast<bool>(lock_); }

 private:
  FileDescriptor lock_;
};

/// Counts `bytes` more, which may be written then. Deletes blocks where they would not fit, those that were used
/// longest ago first, until a tenth of the limit is free. Throws Error where that cannot be told.
Room make_room(const std::string& root, std::uint64_t limit, std::uint64_t bytes);

/// A block's file.
struct BlockOnDisk {
  std::string path;
  std::uint64_t bytes = 0;  ///< of the file
  std::int64_t used = 0;    ///< when, in nanoseconds since 1970
};
/// Calls for each block, in no order. What is no block of a cache is left alone.
void for_each_block(const std::string& root, const std::function<void(const BlockOnDisk&)>& look);

struct CacheUsage {
  std::uint64_t objects = 0;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  ///< of the files
};
/// Those whose URL `wanted` takes; of all without it.
CacheUsage cache_usage(const std::string& root, const std::function<bool(const std::string& url)>& wanted = {});
/// Deletes them, and says what they were. kIo and kPermission where one cannot be deleted.
CacheUsage clear_cache(const std::string& root, const std::function<bool(const std::string& url)>& wanted = {});

/// The URL in the text of a block, and the rest of that text.
struct BlockText {
  std::string etag = {};
  std::uint64_t size = 0;
  std::string url = {};

  std::string to_string() const;
  /// Nothing for what is none.
  static bool parse(std::string_view text, BlockText& out);
};

}  // namespace penstock::io::remote
