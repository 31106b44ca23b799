// cuFile's entry points.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "simulator/cufile/state.h"

namespace penstock::simulator::cufile {
namespace {

/// The fault that is due, which counts down. Needs the mutex.
const Fault* due_fault() {
  Fault& fault = state().fault;
  if (!fault.armed) return nullptr;
  if (fault.countdown == 0) return &fault;
  if (--fault.countdown > 0) return nullptr;
  fault.armed = false;
  return &fault;
}

ssize_t refuse(const std::string& text, int error) {
  const std::scoped_lock lock(state().mutex);
  violation("cuFileRead: " + text);
  return -error;
}

/// Of a handle that is alive and whose descriptor is still the same file; else fd -1 and `error`.
File find_file(CUfileHandle_t handle, std::string& text) {
  const std::scoped_lock lock(state().mutex);
  const auto found = state().files.find(handle);
  if (found == state().files.end()) {
    text = "a handle that is not registered";
    return {-1, 0, 0};
  }
  struct stat now {};
  const File& file = found->second;
  if (::fstat(file.fd, &now) != 0 || now.st_dev != file.device || now.st_ino != file.inode) {
    text = "the descriptor of a registered handle was closed";
    return {-1, 0, 0};
  }
  return file;
}

}  // namespace

ssize_t read_direct(int fd, std::uint64_t offset, std::size_t bytes, std::vector<std::byte>& out) {
  constexpr std::uint64_t kBlock = 4096;
  const std::uint64_t begin = offset / kBlock * kBlock;
  const auto whole = static_cast<std::size_t>((offset + bytes + kBlock - 1) / kBlock * kBlock - begin);
  void* const memory = std::aligned_alloc(kBlock, whole);
  const ssize_t got = ::pread(fd, memory, whole, static_cast<off_t>(begin));
  const int error = errno;
  const std::uint64_t before = offset - begin;
  const std::size_t there = got < 0 || static_cast<std::uint64_t>(got) < before
                                ? 0
                                : std::min(bytes, static_cast<std::size_t>(got) - static_cast<std::size_t>(before));
  out.assign(static_cast<std::byte*>(memory) + before, static_cast<std::byte*>(memory) + before + there);
  std::free(memory);
  errno = error;
  return got < 0 ? -1 : static_cast<ssize_t>(there);
}

PENSTOCK_SIM_CUFILE_API CUfileError_t cuFileDriverOpen() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  enter("cuFileDriverOpen");
  ++s.counts.opens;
  if (s.mode == Mode::kClosed) return {kDriverNotInitialized, 0};
  s.process = ::getpid();
  return {s.mode == Mode::kOpen ? int{kDriverAlreadyOpen} : int{kSuccess}, 0};
}

PENSTOCK_SIM_CUFILE_API CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t* properties) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  enter("cuFileDriverGetProperties");
  if (properties == nullptr) return {kInvalidValue, 0};
  *properties = {};
  properties->nvfs.max_direct_io_size = 16384;
  properties->nvfs.dcontrolflags = kAllowCompat;
  const bool open = s.process != 0;
  if (open && s.mode != Mode::kCompat && s.mode != Mode::kPeer) {
    properties->nvfs.major_version = 2;
    properties->nvfs.minor_version = 17;
    properties->nvfs.dstatusflags = kNvme;
  }
  if (open && s.mode == Mode::kPeer) {
    properties->fflags = kPeerToPeer;
    properties->nvfs.dstatusflags = kNvme;
  }
  return {kSuccess, 0};
}

PENSTOCK_SIM_CUFILE_API CUfileError_t cuFileHandleRegister(CUfileHandle_t* handle, CUfileDescr_t* description) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  enter("cuFileHandleRegister");
  const auto refuse = [](const std::string& text, int error) -> CUfileError_t {
    violation("cuFileHandleRegister: " + text);
    return {error, 0};
  };
  if (s.process == 0) return refuse("the driver is not open", kDriverNotInitialized);
  if (handle == nullptr || description == nullptr) return refuse("no argument", kInvalidValue);
  if (description->type != kOpaqueDescriptor || description->fs_ops != nullptr)
    return refuse("not the type of a descriptor", kInvalidValue);
  struct stat facts {};
  const int fd = description->handle.fd;
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fstat(fd, &facts) != 0) return refuse("no descriptor", kInvalidValue);
  if (!S_ISREG(facts.st_mode)) return refuse("not a regular file", kInvalidFileType);
  // Newer versions take others in compatibility mode.
  if (s.mode != Mode::kCompat && (flags & O_DIRECT) == 0) return refuse("not open for direct reads", kInvalidOpenFlag);
  const auto same = [fd](const auto& row) { return row.second.fd == fd; };
  if (std::any_of(s.files.begin(), s.files.end(), same)) return refuse("registered already", kHandleRegistered);
  if (s.mode == Mode::kNoHandles) return {kIoNotSupported, 0};
  *handle = reinterpret_cast<CUfileHandle_t>(s.next_handle += 16);
  s.files[*handle] = {fd, facts.st_dev, facts.st_ino};
  ++s.counts.registered;
  return {kSuccess, 0};
}

PENSTOCK_SIM_CUFILE_API void cuFileHandleDeregister(CUfileHandle_t handle) {
  const std::scoped_lock lock(state().mutex);
  enter("cuFileHandleDeregister");
  if (state().files.erase(handle) == 0) violation("cuFileHandleDeregister: a handle that is not registered");
}

PENSTOCK_SIM_CUFILE_API ssize_t cuFileRead(CUfileHandle_t handle, void* base, std::size_t bytes, off_t file_offset,
                                           off_t base_offset) {
  State& s = state();
  void (*hook)(void*) = nullptr;
  void* data = nullptr;
  Fault fault;
  {
    const std::scoped_lock lock(s.mutex);
    enter("cuFileRead");
    ++s.counts.reads;
    hook = s.hook;
    data = s.hook_data;
    if (const Fault* const due = due_fault()) {
      fault = *due;
      fault.armed = true;
    }
  }
  if (hook != nullptr) hook(data);
  std::string text;
  const File file = find_file(handle, text);
  if (file.fd < 0) return refuse(text, kHandleNotRegistered);
  if (base == nullptr || bytes == 0 || file_offset < 0 || base_offset < 0 ||
      static_cast<std::uint64_t>(std::numeric_limits<off_t>::max() - file_offset) < bytes) {
    return refuse("an offset or a size that cannot be", kInvalidValue);
  }
  const auto address = reinterpret_cast<std::uint64_t>(base) + static_cast<std::uint64_t>(base_offset);
  const int wrong = check_target(address, bytes, s.mode != Mode::kNoPools, text);
  if (!text.empty()) return refuse(text, -wrong);
  if (wrong != 0) return wrong;
  if (fault.armed && fault.result < 0) {
    errno = fault.error;
    return fault.result;
  }
  if (fault.armed) bytes = std::min(bytes, static_cast<std::size_t>(fault.result));
  std::vector<std::byte> staged;
  const ssize_t got = read_direct(file.fd, static_cast<std::uint64_t>(file_offset), bytes, staged);
  if (got <= 0) return got;
  if (copy_to_device(address, staged.data(), staged.size()) != 0) return -5011;
  const std::scoped_lock lock(s.mutex);
  s.counts.read_bytes += static_cast<std::uint64_t>(got);
  return got;
}

}  // namespace penstock::simulator::cufile
