// Memory that processes share is asked for in three steps, each of which a system may refuse: a file in memory, its
// size, and a mapping of it. The file is sealed against becoming shorter before anybody else can open it.

#include "io/file/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "core/format.h"
#include "core/round.h"
#include "device/backend.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

/// By which `penstock.sharing` finds mappings in /proc/self/maps.
constexpr const char* kMemoryName = "penstock";

std::string reason_of(int error) { return std::strerror(error); }

[[noreturn]] void throw_no_file(int error) {
  if (error == EMFILE || error == ENFILE) {
    throw Error(ErrorCode::kLimit, "no file can be opened any more; raise the limit (ulimit -n)");
  }
  throw Error(ErrorCode::kUnsupported,
              core::format("the system gives no memory that processes share (memfd_create: {}); load without it, or "
                           "allow memfd_create where the container forbids it (seccomp)",
                           reason_of(error)));
}

[[noreturn]] void throw_no_room(std::size_t bytes, const std::string& why) {
  throw Error(ErrorCode::kOutOfMemory, core::format("{} bytes of shared memory{}", bytes, why));
}

std::size_t size_of_file(std::size_t bytes) { return std::max(bytes, core::page_size()); }

/// A mapping and the file that it is of.
struct MemoryMapping {
  FileDescriptor file;
  void* data = nullptr;
  std::size_t size = 0;

  MemoryMapping() = default;
  MemoryMapping(const MemoryMapping&) = delete;
  MemoryMapping& operator=(const MemoryMapping&) = delete;
  ~MemoryMapping() {
    if (data != nullptr) ::munmap(data, size);
  }
};

}  // namespace

FileDescriptor new_memory_file(std::size_t bytes) {
  (void)Buffer::allocate(bytes);  // says it where the machine cannot have so much
  FileDescriptor file(::memfd_create(kMemoryName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) {
    const int error = errno;
    if (error == ENOMEM) throw_no_room(bytes, ": the kernel has no memory");
    throw_no_file(error);
  }
  if (::ftruncate(file.get(), static_cast<off_t>(size_of_file(bytes))) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    throw_no_room(bytes, ": " + reason_of(errno));
  }
  return file;
}

int second_descriptor(int descriptor) {
  const int out = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (out < 0) throw_no_file(errno);
  return out;
}

Buffer map_memory_file(int descriptor, std::size_t bytes) {
  const auto mapping = std::make_shared<MemoryMapping>();
  mapping->file = FileDescriptor(second_descriptor(descriptor));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < size_of_file(bytes)) {
    throw Error(ErrorCode::kTruncated, core::format("found {} bytes of shared memory, expected {}; share it again",
                                                    status.st_size, size_of_file(bytes)));
  }
  mapping->size = size_of_file(bytes);
  void* const data = ::mmap(nullptr, mapping->size, PROT_READ | PROT_WRITE, MAP_SHARED, mapping->file.get(), 0);
  if (data == MAP_FAILED) {
    throw_no_room(bytes,
                  core::format(" cannot be mapped: {}; raise the limit on addresses (ulimit -v)", reason_of(errno)));
  }
  mapping->data = data;
  ::madvise(data, mapping->size, MADV_HUGEPAGE);  // shmem_enabled may be "never"
  return Buffer::wrap(data, bytes, mapping);
}

Buffer allocate_shared(std::size_t bytes) { return map_memory_file(new_memory_file(bytes).get(), bytes); }

Buffer page_locked(const Buffer& memory) {
  struct Locked {
    Buffer memory;
    std::shared_ptr<const void> lock;  // goes first
  };
  const device::Backend& backend = device::require_pinning_backend();
  const auto owner = std::make_shared<Locked>(Locked{memory, backend.register_host(memory.data(), memory.size())});
  return Buffer::wrap(memory.data(), memory.size(), owner);
}

}  // namespace penstock::io
