// O_DIRECT reads go from the disk to their place without the page cache, but only in whole blocks, and only to aligned
// memory. A read therefore becomes one preadv of whole blocks:
//
//   file     |  block  |  block  |  block  |  block  |
//   wanted        |------ a -------|---- b ----|
//   vectors  | scratch | in place | scratch |  scratch |
//
// Long runs of blocks that lie in one part and are aligned in memory go straight to their place. The blocks between
// them go to a scratch buffer, from which the wanted bytes are copied.

#include "io/read/direct_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "core/format.h"
#include "core/round.h"
#include "device/host_blocks.h"
#include "io/file/open_path.h"
#include "io/read/reader_rows.h"

namespace penstock::io {
namespace {

// One system call reads at most this and one block, because that bounds the scratch buffer.
constexpr std::uint64_t kDirectWindowBytes = std::uint64_t{4} << 20;
// Runs of blocks shorter than this go through the scratch buffer, because a vector of its own costs the kernel as much
// as the copy. It also bounds the number of vectors.
constexpr std::uint64_t kMinInPlace = 64 * 1024;
// Used when the system does not say the size of a block. Every disk that we know accepts it.
constexpr std::size_t kUsualBlock = 4096;
// No disk has larger blocks, so a larger number from the system is a mistake.
constexpr std::size_t kMaxBlock = std::size_t{1} << 20;

// Copied here, because the C library's headers have it only since Linux 6.1.
constexpr unsigned kStatxDirect = 0x2000;
struct StatxDirect {
  std::uint32_t memory_align;
  std::uint32_t offset_align;
};
constexpr std::size_t kStatxDirectAt = 0x98;
static_assert(sizeof(struct statx) >= kStatxDirectAt + sizeof(StatxDirect));

bool is_alignment(std::size_t n) { return n != 0 && n <= kMaxBlock && (n & (n - 1)) == 0; }

/// A block of 0 means that the file system has no direct reads.
DirectFile::Alignment alignment_of(int fd) {
  struct statx facts {};
  if (::statx(fd, "", AT_EMPTY_PATH, kStatxDirect, &facts) != 0 || (facts.stx_mask & kStatxDirect) == 0) {
    return {kUsualBlock, kUsualBlock};
  }
  StatxDirect direct{};
  std::memcpy(&direct, reinterpret_cast<const char*>(&facts) + kStatxDirectAt, sizeof direct);
  if (!is_alignment(direct.memory_align) || !is_alignment(direct.offset_align)) return {};
  return {std::max(direct.memory_align, direct.offset_align), direct.memory_align};
}

bool system_reads_in_place() {
  utsname names{};
  return ::uname(&names) == 0 && direct_reads_in_place(names.release);
}

std::string text_of(int error) { return std::generic_category().message(error); }

}  // namespace

std::byte* DirectScratch::of(std::size_t bytes, std::size_t alignment) {
  const std::size_t page = core::page_size();
  const std::size_t unit = std::max(alignment, page);
  std::size_t whole = core::round_up(bytes, page) + unit;
  // A request to a disk has at most about 254 runs of memory. A scratch of scattered 4 KiB pages would break a read of
  // 1 MiB into two requests, so it is made of a huge page.
  if (bytes >= kMinInPlace) whole = std::max(whole, device::kHugePage);
  if (memory_.size() < whole) {
    memory_ = Buffer::allocate(whole);
    std::fill_n(memory_.data(), whole, std::byte{});
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  return memory_.data() + (core::round_up(address, unit) - address);
}

bool direct_reads_in_place(std::string_view release) noexcept {
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = release.data() + release.size();
  const auto [dot, error] = std::from_chars(release.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return false;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc()) return false;
  return major > 6 || (major == 6 && minor >= 5);
}

std::unique_ptr<DirectFile> DirectFile::open(const ByteSource& source, std::string& why_not,
                                             std::optional<bool> in_place) {
  if (source.descriptor() < 0) {
    why_not = "it is no file";
    return nullptr;
  }
  const Alignment alignment = alignment_of(source.descriptor());
  if (alignment.block == 0) {
    why_not = "its file system offers no direct reads";
    return nullptr;
  }
  // Opened through the descriptor, because the path may name another file by now. O_DIRECT cannot be set on a duplicate
  // of the descriptor, because both would get it.
  const std::string again = core::format("/proc/self/fd/{}", source.descriptor());
  FileDescriptor fd = open_path(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_DIRECT);
  if (!fd) {
    why_not = core::format("it cannot be opened for direct reads ({})", text_of(errno));
    return nullptr;
  }
  static const bool usual = system_reads_in_place();
  return std::unique_ptr<DirectFile>(new DirectFile(source, std::move(fd), alignment, in_place.value_or(usual)));
}

std::string DirectFile::refusal() const {
  const int error = refused_;
  return error == 0 ? std::string() : core::format("its file system turned direct reads down ({})", text_of(error));
}

/// Parts that one system call fills.
struct DirectFile::Window {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::vector<Scatter> parts;
};

void DirectFile::read(std::uint64_t offset, std::span<const Scatter> parts, DirectScratch& scratch) {
  require_inside(source_, offset, parts);
  Window window;
  window.offset = offset;
  const auto room = [&] {
    return core::round_down(window.offset, alignment_.block) + kDirectWindowBytes - window.offset - window.bytes;
  };
  const auto flush = [&] {
    if (window.bytes > 0) read_window(window, scratch);
    window.offset += window.bytes;
    window.bytes = 0;
    window.parts.clear();
  };
  for (const Scatter& part : parts) {
    for (std::size_t done = 0; done < part.bytes;) {
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(part.bytes - done, room()));
      window.parts.push_back({part.to != nullptr ? part.to + done : nullptr, length});
      window.bytes += length;
      done += length;
      if (room() == 0) flush();
    }
  }
  flush();
}

void DirectFile::read_window(const Window& window, DirectScratch& scratch) {
  if (refused_ == 0 && read_blocks(window, scratch)) return;
  pread_read(source_, window.offset, window.parts);
}

namespace {

/// The whole blocks that parts lie in, as vectors of one read: in place, or in a scratch buffer that `deliver` copies
/// from.
class Blocks {
 public:
  Blocks(std::uint64_t offset, std::uint64_t bytes, std::span<const Scatter> parts,
         const DirectFile::Alignment& alignment, bool in_place)
      : parts_(parts),
        offset_(offset),
        memory_(in_place ? alignment.memory : 0),
        begin_(core::round_down(offset, alignment.block)),
        end_(core::round_up(offset + bytes, alignment.block)) {
    std::uint64_t at = offset;
    std::uint64_t covered = begin_;
    for (const Scatter& part : parts) {
      const std::uint64_t first = core::round_up(at, alignment.block);
      const std::uint64_t last = core::round_down(at + part.bytes, alignment.block);
      if (fits(part, at, first, last)) {
        add_copied(covered, first);
        vectors_.push_back({part.to + (first - at), static_cast<std::size_t>(last - first)});
        covered = last;
      }
      at += part.bytes;
    }
    add_copied(covered, end_);
  }

  std::uint64_t begin() const noexcept { return begin_; }
  std::size_t copied() const noexcept { return copied_; }
  std::vector<iovec>& vectors() noexcept { return vectors_; }

  void place_copied(std::byte* scratch) {
    for (VectorRun& run : runs_) {
      run.at = scratch;
      vectors_[run.vector].iov_base = scratch;
      scratch += run.end - run.begin;
    }
  }

  void deliver() const {
    std::uint64_t at = offset_;
    auto run = runs_.begin();
    for (const Scatter& part : parts_) {
      const std::uint64_t end = at + part.bytes;
      while (run != runs_.end() && run->end <= at) ++run;
      for (auto r = run; r != runs_.end() && r->begin < end && part.to != nullptr; ++r) {
        const std::uint64_t first = std::max(at, r->begin);
        const std::uint64_t last = std::min(end, r->end);
        std::memcpy(part.to + (first - at), r->at + (first - r->begin), static_cast<std::size_t>(last - first));
      }
      at = end;
    }
  }

 private:
  struct VectorRun {
    std::uint64_t begin;
    std::uint64_t end;
    std::size_t vector;
    std::byte* at = nullptr;
  };

  bool fits(const Scatter& part, std::uint64_t at, std::uint64_t first, std::uint64_t last) const {
    if (memory_ == 0 || part.to == nullptr || last < first + kMinInPlace) return false;
    return reinterpret_cast<std::uintptr_t>(part.to + (first - at)) % memory_ == 0;
  }
  void add_copied(std::uint64_t from, std::uint64_t to) {
    if (from == to) return;
    runs_.push_back({from, to, vectors_.size()});
    vectors_.push_back({nullptr, static_cast<std::size_t>(to - from)});
    copied_ += static_cast<std::size_t>(to - from);
  }

  std::span<const Scatter> parts_;
  std::uint64_t offset_;
  std::size_t memory_;  ///< 0: nothing in place
  std::uint64_t begin_;
  std::uint64_t end_;
  std::size_t copied_ = 0;
  std::vector<iovec> vectors_;
  std::vector<VectorRun> runs_;
};

}  // namespace

void direct_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  std::string why_not;
  DirectScratch scratch;
  const std::unique_ptr<DirectFile> file = DirectFile::open(source, why_not);
  return file ? file->read(offset, parts, scratch) : pread_read(source, offset, parts);
}

/// Whether all bytes arrived. One call is enough: direct reads are not interrupted half-way, so that fewer bytes mean
/// that the file ended.
bool DirectFile::read_blocks(const Window& window, DirectScratch& scratch) {
  Blocks blocks(window.offset, window.bytes, window.parts, alignment_, in_place_);
  if (blocks.copied() > 0) blocks.place_copied(scratch.of(blocks.copied(), alignment_.block));
  const std::vector<iovec>& vectors = blocks.vectors();
  const ssize_t got =
      ::preadv(fd_.get(), vectors.data(), static_cast<int>(vectors.size()), static_cast<off_t>(blocks.begin()));
  if (got < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) refused_ = errno;
  // The last block of a file is read short.
  if (got < 0 || static_cast<std::uint64_t>(got) < window.offset + window.bytes - blocks.begin()) return false;
  blocks.deliver();
  return true;
}

}  // namespace penstock::io
