// Nobody knows how long a pipe is. So addresses are reserved for as much as memory has room for, pages come as bytes
// come, and the rest of the addresses is given back at the end: nothing is copied, and nothing is needed twice.

#include "cli/standard_input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "archive/opening.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/system_error.h"
#include "core/text.h"
#include "device/host_memory.h"
#include "io/file/file_descriptor.h"
#include "io/file/open_path.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kLeastRoom = std::size_t{1} << 20;

/// What is read from its beginning to its end: standard input, or a FIFO.
struct Pipe {
  int fd = STDIN_FILENO;
  std::string name = "<stdin>";  ///< of the source, for errors
  std::string what = "standard input";
};

[[noreturn]] void refuse(const Pipe& pipe, ErrorCode code, std::string_view message) {
  throw Error(code, core::format("{} {}", pipe.what, message), {.path = pipe.name});
}

[[noreturn]] void refuse_errno(const Pipe& pipe, int error) {
  if (error == EBADF) {
    refuse(pipe, ErrorCode::kInvalidArgument, "is closed; pipe a tensor file into it, or name one");
  }
  core::throw_errno(error, core::format("{} cannot be read", pipe.what), {.path = pipe.name});
}

struct Mapping {
  void* data = nullptr;
  std::size_t bytes = 0;

  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data != nullptr) ::munmap(data, bytes);
  }
};

/// As much as memory has room for, or less where addresses are limited (ulimit -v).
std::shared_ptr<Mapping> reserve(const Pipe& pipe) {
  const std::uint64_t free = device::host_memory().free_bytes;
  auto mapping = std::make_shared<Mapping>();
  for (std::size_t bytes = std::max<std::size_t>(free - free / 8, kLeastRoom); bytes >= kLeastRoom;
       bytes -= bytes / 4) {
    void* const data =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) continue;
    mapping->data = data;
    mapping->bytes = bytes;
    return mapping;
  }
  refuse(pipe, ErrorCode::kOutOfMemory, "cannot be read: there is no memory to read it into");
}

/// Gives back what is not used.
void shrink(Mapping& mapping, std::size_t used) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t kept = (used + page - 1) / page * page;
  if (kept >= mapping.bytes) return;
  ::munmap(static_cast<std::byte*>(mapping.data) + kept, mapping.bytes - kept);
  mapping.bytes = kept;
}

Source read_whole(const Pipe& pipe) {
  const std::shared_ptr<Mapping> mapping = reserve(pipe);
  auto* const data = static_cast<std::byte*>(mapping->data);
  std::size_t have = 0;
  while (true) {
    std::byte beyond{};
    const bool is_full = have == mapping->bytes;
    const ssize_t got = is_full ? ::read(pipe.fd, &beyond, 1)
                                : ::read(pipe.fd, data + have, std::min(mapping->bytes - have, kLeastRoom));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_errno(pipe, errno);
    if (got == 0) break;
    if (is_full) {
      refuse(pipe, ErrorCode::kLimit,
             core::format("has more than the {} that memory has room for; write it to a file, and name that",
                          core::format_bytes(have)));
    }
    have += static_cast<std::size_t>(got);
  }
  if (have == 0) refuse(pipe, ErrorCode::kInvalidArgument, "is empty: nothing was piped into it");
  shrink(*mapping, have);
  return memory_source(Buffer::wrap(data, have, mapping), pipe.name);
}

/// The file by its own name while that leads to it, so that errors name it and shards beside it are found.
Source open_regular(const struct stat& status) {
  const std::filesystem::path link = "/proc/self/fd/0";
  std::error_code ignored;
  const std::filesystem::path target = std::filesystem::read_symlink(link, ignored);
  struct stat found {};
  const bool is_it = !target.empty() && ::stat(target.c_str(), &found) == 0 && found.st_dev == status.st_dev &&
                     found.st_ino == status.st_ino;
  return open_source((is_it ? target : link).native());
}

Source read_standard_input() {
  // A process has one standard input, which can be read once.
  static bool is_taken = false;
  const Pipe pipe;
  if (is_taken) refuse(pipe, ErrorCode::kInvalidArgument, "is named twice, and can be read once");
  is_taken = true;
  struct stat status {};
  if (::fstat(STDIN_FILENO, &status) != 0) refuse_errno(pipe, errno);
  if (is_terminal(stdin)) {
    refuse(pipe, ErrorCode::kInvalidArgument,
           "is a terminal; pipe a tensor file into it, as in: curl URL | penstock info -");
  }
  const bool is_whole = S_ISREG(status.st_mode) && ::lseek(STDIN_FILENO, 0, SEEK_CUR) == 0;
  if (is_whole && status.st_size > 0) return open_regular(status);
  return read_whole(pipe);
}

/// A FIFO, such as a shell's <(zcat a.npy.gz), can be read once too; opening it again would wait for another writer.
Source read_fifo(const std::string& path, const struct stat& status) {
  static std::set<std::pair<dev_t, ino_t>> taken;
  Pipe pipe{.name = path, .what = "the FIFO"};
  if (!taken.emplace(status.st_dev, status.st_ino).second) {
    refuse(pipe, ErrorCode::kInvalidArgument, "is named twice, and can be read once");
  }
  const io::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) refuse_errno(pipe, errno);
  pipe.fd = file.get();
  return read_whole(pipe);
}

}  // namespace

bool is_fifo(const std::string& word) { return word != kStandardInput && io::is_fifo(word); }

Source input_source(const std::string& word) {
  if (word == kStandardInput) return read_standard_input();
  struct stat status {};
  if (is_fifo(word) && ::stat(word.c_str(), &status) == 0) return read_fifo(word, status);
  return archive::source_at(word);
}

}  // namespace penstock::cli
