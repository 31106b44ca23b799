#include "io/remote/cache/block_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "core/per_process.h"
#include "core/system_error.h"
#include "core/text.h"
#include "io/file/atomic_file.h"
#include "io/file/file_descriptor.h"
#include "io/file/open_path.h"
#include "io/remote/cache/block_file.h"
#include "io/remote/cache/ledger.h"
#include "io/remote/sha256.h"
#include "io/remote/store.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

constexpr std::string_view kObject = ".object";
/// A block that was used within this is not marked as used again: that would be a system call for each read.
constexpr std::int64_t kMarkSeconds = 10;

std::string short_hash(std::string_view text, std::size_t letters) { return hex(sha256(text)).substr(0, letters); }

std::uint64_t seed_for(const CachedObject& object, std::uint64_t number) {
  return block_file::seed_of(core::format("{}\n{}\n{}\n{}", object.key, object.etag, object.size, number));
}

/// An empty one where there is no block of this user's. A FIFO in its place would wait for a writer.
FileDescriptor opened(const std::string& path, struct stat& status) {
  FileDescriptor out = open_path(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (out && (::fstat(out.get(), &status) != 0 || !is_own_file(status))) return {};
  return out;
}

/// The time as files have it. std::time may be some milliseconds behind that, and so in the second before.
std::int64_t seconds_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec;
}

/// Says that the block is in use, by the time of its last access, which the kernel itself often leaves alone.
void mark_used(int fd, const struct stat& status) noexcept {
  if (seconds_now() - status.st_atim.tv_sec < kMarkSeconds) return;
  const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  ::futimens(fd, times);
}

/// Takes what the text of a block says of its object. False where it is none.
bool take(std::string_view text, CachedObject& out) {
  BlockText known;
  if (!BlockText::parse(text, known)) return false;
  out.etag = std::move(known.etag);
  out.size = known.size;
  out.url = std::move(known.url);
  return true;
}

/// A cache stays where it was begun when the process changes its working folder.
std::string whole_path(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(folder, error);
  return error ? folder : whole.string();
}

/// Creates the folders of `path`, for their owner alone: what is in them may be private.
void make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      core::throw_errno(errno, "cannot make the folder", {.path = folder});
    }
  }
}

}  // namespace

BlockCache::BlockCache(CacheSettings settings)
    : settings_(std::move(settings)), root_(cache_root(whole_path(settings_.folder))) {}

std::shared_ptr<const BlockCache> BlockCache::of(const CacheSettings& settings) {
  struct Known {
    std::mutex mutex;
    std::vector<std::shared_ptr<const BlockCache>> caches;  ///< few: a program has one, and those of its options
  };
  static constinit core::PerProcess<Known> known;
  constexpr std::size_t kMost = 16;
  if (settings.folder.empty()) return nullptr;
  auto& [mutex, caches] = known.get();
  const std::scoped_lock lock(mutex);
  const auto is_it = [&](const auto& cache) { return cache->settings_ == settings; };
  if (const auto found = std::find_if(caches.begin(), caches.end(), is_it); found != caches.end()) return *found;
  if (caches.size() == kMost) caches.erase(caches.begin());
  return caches.emplace_back(std::make_shared<const BlockCache>(settings));
}

std::string BlockCache::key_of(const Location& location) { return short_hash(identity(location), 32); }

bool BlockCache::may_keep(const CachedObject& object) noexcept {
  const bool strong = object.etag.size() > 2 && object.etag.front() == '"';
  return strong && object.size > 0 && object.etag.size() + object.url.size() + 32 < block_file::kMostText;
}

std::uint64_t BlockCache::block_bytes(const CachedObject& object, std::uint64_t number) noexcept {
  return std::min<std::uint64_t>(kBlock, object.size - std::min(object.size, number * kBlock));
}

std::string BlockCache::path_of(const CachedObject& object, std::uint64_t number) const {
  const std::string start = core::format("{}/{}/{}", root_, object.key.substr(0, 2), object.key);
  if (number == 0) return start + std::string(kObject);
  return core::format("{}.{}.{}", start, short_hash(core::format("{}\n{}", object.etag, object.size), 16), number);
}

std::optional<KeptObject> BlockCache::find(const std::string& key, std::size_t head, std::size_t small) const {
  KeptObject out{.object = {.key = key}};
  struct stat status {};
  const FileDescriptor fd = opened(path_of(out.object, 0), status);
  if (!fd) return std::nullopt;
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  // A small file comes by one read, because a system call costs as much as some 10 KB.
  Buffer file;
  if (file_bytes <= std::max(head, small) + block_file::kMostEnding) {
    file = Buffer::allocate(static_cast<std::size_t>(file_bytes));
    if (!block_file::read_whole(fd.get(), {file.data(), file.size()})) return std::nullopt;
  }
  const bool is_whole = file.size() > 0;
  const std::span<const std::byte> content(file.data(), file.size());
  const std::optional<std::string> text =
      is_whole ? block_file::text_in(content) : block_file::read_text(fd.get(), file_bytes);
  if (!text || !take(*text, out.object)) return std::nullopt;
  const std::uint64_t length = block_bytes(out.object, 0);
  const std::uint64_t seed = seed_for(out.object, 0);
  const std::uint64_t wanted = std::min<std::uint64_t>(length, out.object.size <= small ? small : head);
  if (is_whole) {
    if (!block_file::holds(content, length, seed)) return std::nullopt;
    out.head = file.part(0, static_cast<std::size_t>(wanted));
  } else {
    out.head = Buffer::allocate(static_cast<std::size_t>(wanted));
    const Scatter part{out.head.data(), out.head.size()};
    if (!block_file::read(fd.get(), length, seed, 0, {&part, 1})) return std::nullopt;
  }
  mark_used(fd.get(), status);
  const std::int64_t age = seconds_now() - status.st_mtim.tv_sec;
  out.is_fresh = age >= 0 && age < settings_.trust.count();
  return out;
}

void BlockCache::confirm(const std::string& key) const noexcept {
  if (settings_.trust.count() == 0) return;
  try {
    const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    ::utimensat(AT_FDCWD, path_of({.key = key}, 0).c_str(), times, AT_SYMLINK_NOFOLLOW);
  } catch (...) {
    return;  // no memory for the path: it is asked for once more
  }
}

bool BlockCache::read(const CachedObject& object, std::uint64_t number, std::uint64_t offset,
                      std::span<const Scatter> parts) const {
  struct stat status {};
  const FileDescriptor fd = opened(path_of(object, number), status);
  if (!fd) return false;
  if (!block_file::read(fd.get(), block_bytes(object, number), seed_for(object, number), offset, parts)) return false;
  mark_used(fd.get(), status);
  return true;
}

void BlockCache::keep(const CachedObject& object, std::uint64_t number,
                      std::span<const std::byte> bytes) const noexcept {
  if (!writes_.load(std::memory_order_relaxed) || !may_keep(object)) return;
  try {
    const std::string text = BlockText{object.etag, object.size, object.url}.to_string();
    write(path_of(object, number), bytes, block_file::ending(bytes, text, seed_for(object, number)));
  } catch (const Error& error) {
    give_up(error.what());
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

void BlockCache::write(const std::string& path, std::span<const std::byte> bytes, std::string_view ending) const {
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) make_folders(path);
  require_own_folder(root_);
  struct stat status {};
  // What is there and no block, such as a FIFO, would never be read.
  if (::lstat(path.c_str(), &status) == 0 && !is_own_file(status)) ::unlink(path.c_str());
  const Room room = make_room(root_, settings_.limit, bytes.size() + ending.size());
  if (!room) return;
  AtomicFile file(path, false);
  file.write(bytes);
  file.write_text(ending);
  file.commit();
}

void BlockCache::give_up(std::string_view why) const noexcept {
  if (!writes_.exchange(false)) return;
  std::fprintf(stderr,
               "penstock: the cache of PENSTOCK_CACHE is not written to any more, and what it does not have is read by "
               "URL each time: %.*s\n",
               static_cast<int>(why.size()), why.data());
}

}  // namespace penstock::io::remote
