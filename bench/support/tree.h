#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::bench {

/// Folders that are to be listed, handed out to threads until none is left and none can come any more.
class Folders {
 public:
  explicit Folders(std::string root) { waiting_.push_back(std::move(root)); }

  void add(std::string folder) {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(folder));
    changed_.notify_one();
  }

  /// Ends the listing of the one taken before, if any.
  std::optional<std::string> take(bool has_one) {
    std::unique_lock lock(mutex_);
    if (has_one && --busy_ == 0) changed_.notify_all();
    changed_.wait(lock, [&] { return !waiting_.empty() || busy_ == 0; });
    if (waiting_.empty()) return std::nullopt;
    std::string folder = std::move(waiting_.back());
    waiting_.pop_back();
    ++busy_;
    return folder;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> waiting_;
  std::size_t busy_ = 0;
};

/// As the kernel lays it out (getdents64(2)).
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t size;
  std::uint8_t type;
};
inline constexpr std::size_t kNameAt = 19;

/// Files in `folder`; folders in it go to `folders`.
inline std::size_t list_folder(const std::string& folder, std::vector<char>& buffer, Folders& folders) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("cannot list " + folder);
  std::size_t files = 0;
  for (long got = 0; (got = ::syscall(SYS_getdents64, fd, buffer.data(), buffer.size())) > 0;) {
    for (long at = 0; at < got;) {
      DirectoryEntry entry;
      std::memcpy(&entry, &buffer[static_cast<std::size_t>(at)], kNameAt);
      const std::string_view name = &buffer[static_cast<std::size_t>(at) + kNameAt];
      if (entry.type != DT_DIR) {
        ++files;
      } else if (name != "." && name != "..") {
        folders.add(folder + '/' + std::string(name));
      }
      at += entry.size;
    }
  }
  ::close(fd);
  return files;
}

/// How many files are in the tree, by getdents64 alone.
inline std::size_t count_files(const std::string& root, std::size_t threads) {
  Folders folders(root);
  std::vector<std::size_t> counts(threads);
  {
    std::vector<std::jthread> workers;
    for (std::size_t& count : counts) {
      workers.emplace_back([&] {
        std::vector<char> buffer(std::size_t{1} << 18);
        auto folder = folders.take(false);
        for (; folder; folder = folders.take(true)) count += list_folder(*folder, buffer, folders);
      });
    }
  }
  std::size_t sum = 0;
  for (const std::size_t count : counts) sum += count;
  return sum;
}

}  // namespace penstock::bench
