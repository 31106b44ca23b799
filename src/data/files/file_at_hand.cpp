#include "data/files/file_at_hand.h"

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "core/system_error.h"
#include "data/files/own_source.h"
#include "io/source/own_read.h"
#include "io/source/source.h"

namespace penstock::data {

namespace {

/// The number of bytes that one read gives; 0 at the end of the file and for an error.
std::size_t read_some(int fd, std::span<std::byte> into) {
  while (true) {
    const ssize_t got = ::read(fd, into.data(), into.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return 0;
  }
}

}  // namespace

const struct stat& FileAtHand::status() {
  if (!status_) {
    status_.emplace();
    if (::fstat(fd_.get(), &*status_) != 0) {
      core::throw_errno(errno, "cannot tell the size of the file", {.path = path_});
    }
  }
  return *status_;
}

std::uint64_t FileAtHand::size() { return source_ ? source_->size() : static_cast<std::uint64_t>(status().st_size); }

std::span<const std::byte> FileAtHand::whole(std::size_t most, Scratch& scratch) {
  if (source_) return whole_source(most, scratch);
  // One byte more than a small file can have tells it from a large one, so that nobody has to ask for its size.
  const std::span<std::byte> memory(scratch.arena.allocate(most + 1), most + 1);
  const std::size_t filled = read_some(fd_.get(), memory);
  scratch.arena.trim_last(filled > most ? 0 : filled);
  return memory.first(filled);
}

std::span<const std::byte> FileAtHand::whole_source(std::size_t most, Scratch& scratch) {
  if (source_->size() > most) return {};
  if (const Buffer memory = io::memory_of(**source_); memory.size() != 0) {
    scratch.objects.push_back(std::make_shared<const penstock::Source>(*source_));
    return {memory.data(), memory.size()};
  }
  // An object behind a URL that did not come whole with its opening is asked for when the batch has its block.
  if (!is_own_ || source_->size() == 0) return {};
  const auto bytes = static_cast<std::size_t>(source_->size());
  const std::span<std::byte> memory(scratch.arena.allocate(bytes), bytes);
  read_from(*source_, memory);
  return memory;
}

bool FileAtHand::is_complete() const {
  std::byte more{};
  return source_ || read_some(fd_.get(), {&more, 1}) == 0;
}

const penstock::Source& FileAtHand::source() {
  if (!source_) {
    const struct stat& known = status();
    source_ = io::file_source(std::move(fd_), known, path_);
  }
  return *source_;
}

}  // namespace penstock::data
