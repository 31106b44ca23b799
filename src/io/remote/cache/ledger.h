#pragma once

// Knows how many bytes the cache has, and deletes blocks when it is full. The file `bytes` holds the sum, and every
// process that keeps a block adds to it under a lock. The sum is too large after somebody deleted blocks by hand, so
// all blocks are counted again before one is evicted. A block that is still being written cannot be counted, because it
// has no name yet. So a process that writes one holds a shared lock on the file `writing`, and one that counts holds an
// exclusive lock on it.

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "io/file/file_descriptor.h"

namespace penstock::io::remote {

/// The folder of the blocks inside the cache's folder.
std::string cache_root(std::string_view folder);

/// Whether it is a file of this user's. What others own is neither read nor written to: they could change it.
bool is_own_file(const struct stat& status) noexcept;
/// kPermission where the folder is another user's, who could put files of theirs in the place of blocks.
void require_own_folder(const std::string& folder);

/// How many bytes of the disk the file of a block takes.
std::uint64_t disk_bytes(std::uint64_t file_bytes) noexcept;

/// The lock of a file, for as long as it lives.
class [[nodiscard]] FileLock {
 public:
  FileLock() noexcept = default;
  explicit FileLock(FileDescriptor locked) noexcept : file_(std::move(locked)) {}
  FileLock(FileLock&&) noexcept = default;
  /// Gives the lock back before the file is closed: a child of fork() has the descriptor too, and would keep the lock
  /// for as long as it lives.
  ~FileLock();
  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  int descriptor() const noexcept { return file_.get(); }

 private:
  FileDescriptor file_;
};

/// Room for one block; false if the block does not fit. The block must get its name while this lives. A thread that has
/// one must not ask for another, because it could wait for itself.
using Room = FileLock;

/// Adds `bytes` to the sum; the caller may write that many then. If they do not fit, deletes the blocks that were used
/// longest ago until a tenth of the limit is free. Throws Error if the size of the cache cannot be read or written.
Room make_room(const std::string& root, std::uint64_t limit, std::uint64_t bytes);

/// A block's file.
struct BlockOnDisk {
  std::string path;
  std::uint64_t bytes = 0;  ///< of the file
  std::int64_t used = 0;    ///< when, in nanoseconds since 1970
};
/// Calls `look` for each block, in no order. Skips files that are not blocks of a cache.
void for_each_block(const std::string& root, const std::function<void(const BlockOnDisk&)>& look);

struct CacheUsage {
  std::uint64_t objects = 0;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  ///< of the files
};
/// Counts the objects whose URL `wanted` accepts; all of them without it.
CacheUsage cache_usage(const std::string& root, const std::function<bool(const std::string& url)>& wanted = {});
/// Deletes these objects and returns what it deleted. kIo and kPermission if one cannot be deleted.
CacheUsage clear_cache(const std::string& root, const std::function<bool(const std::string& url)>& wanted = {});

/// The URL in the text of a block, and the rest of that text.
struct BlockText {
  std::string etag = {};
  std::uint64_t size = 0;
  std::string url = {};

  std::string to_string() const;
  /// False if the text is malformed.
  static bool parse(std::string_view text, BlockText& out);
};

}  // namespace penstock::io::remote
