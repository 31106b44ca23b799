#include "worker/block.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/system_error.h"

namespace penstock::python {
namespace {

constexpr std::size_t kPage = 4096;

/// A file without a name, for systems (seccomp) that refuse memfd. Its pages are there when this returns, because a
/// full file system would else end the process that writes to them.
int unnamed_file(std::size_t bytes) {
  for (const char* const folder : {"/dev/shm", "/tmp"}) {
    const int descriptor = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0) continue;
    if (::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)) == 0) return descriptor;
    ::close(descriptor);
  }
  return -1;
}

int shared_memory(std::size_t bytes) {
  const int descriptor = new_memory_file();
  if (descriptor < 0) {
    const int error = errno;
    const int file = error == ENOSYS || error == EPERM ? unnamed_file(bytes) : -1;
    if (file >= 0) return file;
    core::throw_errno(error, "cannot make memory for a worker process");
  }
  if (::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) return descriptor;
  const int error = errno;
  ::close(descriptor);
  core::throw_errno(error, "cannot make memory for a worker process");
}

}  // namespace

// Another name than that of memory which penstock.sharing gives to other processes: nobody can attach to this.
int new_memory_file() noexcept { return ::memfd_create("penstock-worker", MFD_CLOEXEC); }

SharedBlock::SharedBlock(std::uint64_t id, int descriptor, std::size_t bytes, std::uint64_t begin)
    : id_(id), size_(bytes) {
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(begin));
  if (mapped == MAP_FAILED) core::throw_errno(errno, "cannot map the memory of a worker process");
  data_ = static_cast<std::byte*>(mapped);
}

std::shared_ptr<SharedBlock> SharedBlock::owned(std::uint64_t id, int descriptor, std::size_t bytes) {
  try {
    std::shared_ptr<SharedBlock> block(new SharedBlock(id, descriptor, bytes));
    block->descriptor_ = descriptor;
    return block;
  } catch (...) {
    ::close(descriptor);
    throw;
  }
}

SharedBlock::~SharedBlock() {
  ::munmap(data_, size_);
  close_descriptor();
}

void SharedBlock::close_descriptor() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

std::shared_ptr<SharedBlock> SharedBlock::create(std::uint64_t id, std::size_t bytes) {
  // A quarter more, in pages, so that content that grows a little fits the next time too.
  const std::size_t size = (std::max(bytes + bytes / 4, 16 * kPage) + kPage - 1) / kPage * kPage;
  return owned(id, shared_memory(size), size);
}

std::shared_ptr<SharedBlock> SharedBlock::received(std::uint64_t id, int descriptor, std::size_t bytes) {
  std::shared_ptr<SharedBlock> block = owned(id, descriptor, bytes);
  block->close_descriptor();
  return block;
}

std::shared_ptr<SharedBlock> SharedBlock::part(int descriptor, std::uint64_t begin, std::size_t bytes) {
  return std::shared_ptr<SharedBlock>(new SharedBlock(begin, descriptor, bytes, begin));
}

}  // namespace penstock::python
