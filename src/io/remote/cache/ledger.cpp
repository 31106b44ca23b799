#include "io/remote/cache/ledger.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/parse_number.h"
#include "core/system_error.h"
#include "io/file/file_descriptor.h"
#include "io/file/open_path.h"
#include "io/remote/cache/block_file.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::size_t kKeyLetters = 32;

/// Opens a file of the cache and waits for its lock, which lasts as long as the result.
FileLock locked(const std::string& path, int operation) {
  FileDescriptor out = open_path(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (!out) core::throw_errno(errno, "cannot open the file", {.path = path});
  struct stat status {};
  if (::fstat(out.get(), &status) != 0 || !is_own_file(status)) {
    throw Error(ErrorCode::kPermission, "this is no file of this user's; delete it", {.path = path});
  }
  while (::flock(out.get(), operation) != 0) {
    if (errno != EINTR) core::throw_errno(errno, "cannot lock the file", {.path = path});
  }
  return FileLock(std::move(out));
}

Room room(const std::string& root, int operation) { return locked(root + "/writing", operation); }

/// The sum of the bytes in its file, under the lock of that file.
class Sum {
 public:
  explicit Sum(const std::string& root) : file_(locked(root + "/bytes", LOCK_EX)) {}

  /// Nothing where nobody has counted yet.
  std::optional<std::uint64_t> get() const {
    char text[24];
    const ssize_t got = ::pread(file_.descriptor(), text, sizeof(text), 0);
    std::uint64_t out = 0;
    if (got <= 0 || std::from_chars(text, text + got, out).ec != std::errc()) return std::nullopt;
    return out;
  }

  void set(std::uint64_t bytes) const {
    // Of fixed length, so that no longer number is left behind it.
    const std::string text = core::format("{:020}\n", bytes);
    if (::pwrite(file_.descriptor(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      core::throw_errno(errno, "cannot write how large the cache is", {});
    }
  }

  void forget() const {
    if (::ftruncate(file_.descriptor(), 0) != 0) core::throw_errno(errno, "cannot write how large the cache is", {});
  }

 private:
  FileLock file_;
};

bool is_block(std::string_view name) {
  const std::string_view key = name.substr(0, name.find('.'));
  return key.size() == kKeyLetters && key.size() < name.size() && key.find_first_not_of(kHex) == std::string_view::npos;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), ::closedir);
  while (opened) {
    const dirent* const entry = ::readdir(opened.get());
    if (entry == nullptr) break;
    out.emplace_back(entry->d_name);
  }
  return out;
}

/// Deletes blocks, used longest ago first, until `bytes` more fit with a tenth of the limit to spare. What is left.
std::uint64_t evict(const std::string& root, std::uint64_t limit, std::uint64_t bytes) {
  std::vector<BlockOnDisk> blocks;
  std::uint64_t left = 0;
  for_each_block(root, [&](const BlockOnDisk& block) {
    blocks.push_back(block);
    left += disk_bytes(block.bytes);
  });
  std::sort(blocks.begin(), blocks.end(), [](const BlockOnDisk& a, const BlockOnDisk& b) { return a.used < b.used; });
  const std::uint64_t most = limit - limit / 10;
  for (const BlockOnDisk& block : blocks) {
    if (left + bytes <= most) break;
    if (::unlink(block.path.c_str()) == 0 || errno == ENOENT) left -= disk_bytes(block.bytes);
  }
  return left;
}

/// The text of a block's file; nothing where it is damaged or gone.
std::optional<BlockText> text_of(const BlockOnDisk& block) {
  const FileDescriptor fd = open_path(block.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  const std::optional<std::string> text = fd ? block_file::read_text(fd.get(), block.bytes) : std::nullopt;
  BlockText out;
  return text && BlockText::parse(*text, out) ? std::optional(std::move(out)) : std::nullopt;
}

/// Calls `act` for the blocks whose URL is wanted, and counts them.
CacheUsage visit(const std::string& root, const std::function<bool(const std::string& url)>& wanted,
                 const std::function<void(const BlockOnDisk&)>& act) {
  CacheUsage out;
  std::set<std::string> objects;
  for_each_block(root, [&](const BlockOnDisk& block) {
    const std::size_t name = block.path.rfind('/') + 1;
    if (wanted) {
      const std::optional<BlockText> text = text_of(block);
      if (!text || !wanted(text->url)) return;
    }
    objects.insert(block.path.substr(name, kKeyLetters));
    ++out.blocks;
    out.bytes += block.bytes;
    if (act) act(block);
  });
  out.objects = objects.size();
  return out;
}

}  // namespace

FileLock::~FileLock() {
  if (file_) ::flock(file_.get(), LOCK_UN);
}

std::string cache_root(std::string_view folder) { return core::format("{}/penstock-blocks-1", folder); }

bool is_own_file(const struct stat& status) noexcept { return S_ISREG(status.st_mode) && status.st_uid == ::geteuid(); }

void require_own_folder(const std::string& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) core::throw_errno(errno, "cannot look at the folder", {.path = folder});
  if (S_ISDIR(status.st_mode) && status.st_uid == ::geteuid()) return;
  throw Error(ErrorCode::kPermission, "this is no folder of this user's; name another one in PENSTOCK_CACHE",
              {.path = folder});
}

std::uint64_t disk_bytes(std::uint64_t file_bytes) noexcept {
  constexpr std::uint64_t kUnit = 4096;
  return (file_bytes + kUnit - 1) / kUnit * kUnit;
}

Room make_room(const std::string& root, std::uint64_t limit, std::uint64_t bytes) {
  bytes = disk_bytes(bytes);
  if (bytes > limit - limit / 10) return {};
  {
    Room beside_others = room(root, LOCK_SH);
    const Sum sum(root);
    const std::optional<std::uint64_t> used = sum.get();
    if (used && *used + bytes <= limit) {
      sum.set(*used + bytes);
      return beside_others;
    }
  }
  Room alone = room(root, LOCK_EX);
  const Sum sum(root);
  // Another may have evicted while this one waited.
  std::optional<std::uint64_t> used = sum.get();
  if (!used || *used + bytes > limit) used = evict(root, limit, bytes);
  if (*used + bytes > limit) return {};
  sum.set(*used + bytes);
  return alone;
}

void for_each_block(const std::string& root, const std::function<void(const BlockOnDisk&)>& look) {
  for (const std::string& folder : names_in(root)) {
    if (folder.size() != 2 || folder.find_first_not_of(kHex) != std::string::npos) continue;
    const std::string inside = core::format("{}/{}", root, folder);
    for (const std::string& name : names_in(inside)) {
      if (!is_block(name)) continue;
      BlockOnDisk block{.path = core::format("{}/{}", inside, name)};
      struct stat status {};
      if (::lstat(block.path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
      block.bytes = static_cast<std::uint64_t>(status.st_size);
      block.used = static_cast<std::int64_t>(status.st_atim.tv_sec) * 1'000'000'000 + status.st_atim.tv_nsec;
      look(block);
    }
  }
}

CacheUsage cache_usage(const std::string& root, const std::function<bool(const std::string& url)>& wanted) {
  return visit(root, wanted, {});
}

CacheUsage clear_cache(const std::string& root, const std::function<bool(const std::string& url)>& wanted) {
  const CacheUsage out = visit(root, wanted, [](const BlockOnDisk& block) {
    if (::unlink(block.path.c_str()) != 0 && errno != ENOENT) {
      core::throw_errno(errno, "cannot delete the file of the cache", {.path = block.path});
    }
  });
  // The sum is counted anew by whoever writes next. Its file stays, because others may wait for its lock.
  struct stat status {};
  if (::stat(root.c_str(), &status) == 0) Sum(root).forget();
  return out;
}

std::string BlockText::to_string() const { return core::format("{}\n{}\n{}", etag, size, url); }

bool BlockText::parse(std::string_view text, BlockText& out) {
  const std::size_t first = text.find('\n');
  const std::size_t second = first == std::string_view::npos ? first : text.find('\n', first + 1);
  if (second == std::string_view::npos) return false;
  const auto size = core::parse_number<decltype(out.size)>(text.substr(first + 1, second - first - 1));
  if (!size) return false;
  out.size = *size;
  out.etag = text.substr(0, first);
  out.url = text.substr(second + 1);
  return true;
}

}  // namespace penstock::io::remote
