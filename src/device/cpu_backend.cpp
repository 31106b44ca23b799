// Host memory as a device. Work is done when it is submitted, so that nothing is ever pending. Large requests are
// compared with what the machine has, because the kernel would promise more and kill the process later.

#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "device/backend.h"
#include "device/buffer_access.h"
#include "device/host_blocks.h"
#include "device/host_memory.h"
#include "penstock/error.h"

namespace penstock::device {
namespace {

constexpr std::size_t kAlignment = 64;
/// Requests from here on are compared with what the machine has, which takes a few reads of /proc.
constexpr std::size_t kLargeRequest = std::size_t{256} << 20;

/// What there is for a request that was refused, and what to do.
std::string explain_refusal() {
  const MemoryInfo memory = host_memory();
  const std::optional<MemoryInfo> addresses = address_space();
  if (addresses && addresses->free_bytes < memory.free_bytes) {
    return core::format(
        "this process's addresses are limited to {}, of which {} are free; load less at a time or "
        "raise the limit (RLIMIT_AS, ulimit -v)",
        core::format_bytes(addresses->total_bytes), core::format_bytes(addresses->free_bytes));
  }
  return core::format(
      "this process may have at most {}, of which {} are free; load less at a time or use a machine with more memory",
      core::format_bytes(largest_host_request()), core::format_bytes(memory.free_bytes));
}

[[noreturn]] void throw_out_of_memory(std::size_t bytes) {
  throw Error(ErrorCode::kOutOfMemory,
              core::format("{} of host memory requested, but {}", core::format_bytes(bytes), explain_refusal()));
}

Buffer new_block(std::size_t bytes) {
  constexpr std::align_val_t alignment{kAlignment};
  auto* const data = static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow));
  if (data == nullptr) throw_out_of_memory(bytes);
  std::shared_ptr<const void> owner(
      data, [](const std::byte* p) { ::operator delete (const_cast<std::byte*>(p), std::align_val_t{kAlignment}); });
  return BufferAccess::make(std::move(owner), data, bytes, Device{});
}

[[noreturn]] void throw_no_pinning() {
  throw Error(ErrorCode::kUnsupported, "the cpu copies from all of its memory alike; pin memory for a device");
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

class CpuMark final : public Mark {
 public:
  bool done() const override { return true; }
  void synchronize() const override {}
};

/// Nothing is ever pending: work is done when it is submitted.
class CpuQueue final : public Queue {
 public:
  Device device() const noexcept override { return {}; }
  void* native() const noexcept override { return nullptr; }
  bool is_foreign() const noexcept override { return false; }
  void copy(std::span<const CopyRange> ranges, Direction /*direction*/) override {
    for (const CopyRange& range : ranges) {
      if (range.bytes != 0) std::memcpy(range.to, range.from, range.bytes);
    }
  }
  void fill(std::byte* to, std::byte value, std::size_t bytes) override {
    if (bytes != 0) std::memset(to, std::to_integer<int>(value), bytes);
  }
  void launch(const Launch& launch) override {
    throw Error(ErrorCode::kUnsupported,
                core::format("kernel {} cannot be launched on the cpu, which has none", core::quoted(launch.kernel)));
  }
  void on_complete(std::function<void()> action) override { action(); }
  MarkPtr record() override { return mark_; }
  void wait(const Mark& mark) override { mark.synchronize(); }
  bool done() override { return true; }
  void synchronize() override {}

 private:
  const MarkPtr mark_ = std::make_shared<const CpuMark>();
};

class CpuBackend final : public Backend {
 public:
  DeviceType type() const noexcept override { return DeviceType::kCpu; }
  std::string_view name() const noexcept override { return "cpu"; }
  int dlpack_type() const noexcept override { return 1; }
  int device_count() const noexcept override { return 1; }
  std::string why_none() const override { return {}; }
  int current_device() const noexcept override { return 0; }
  void set_current_device(int) const noexcept override {}
  DeviceProperties properties(int index) const override {
    require_device(Device(type(), index));
    DeviceProperties out;
    out.name = processor_name();
    out.total_bytes = host_memory().total_bytes;
    out.unified_memory = true;
    out.alignment = kAlignment;
    return out;
  }
  MemoryInfo memory(int index) const override {
    require_device(Device(type(), index));
    return host_memory();
  }
  Buffer allocate(int index, std::size_t bytes, Purpose) const override {
    require_device(Device(type(), index));
    if (bytes > std::size_t{1} << 60) throw_out_of_memory(bytes);
    return bytes >= kHugePage ? large_block(bytes) : new_block(bytes);
  }
  /// Buffers of host memory come from several allocators, none of which is asked to count: only what is kept is known.
  MemoryStats stats(int index) const override {
    const MemoryInfo info = memory(index);
    MemoryStats out;
    out.reserved_bytes = blocks_.idle_bytes();
    out.free_bytes = info.free_bytes;
    out.total_bytes = info.total_bytes;
    return out;
  }
  void set_memory_cap(int, std::optional<std::uint64_t>) const override {
    throw Error(ErrorCode::kUnsupported, "memory of the cpu has no cap here; use a control group or ulimit");
  }
  void empty_cache(int) const override { blocks_.release_idle(); }
  void synchronize(int) const override {}
  Buffer wrap(int, void* data, std::size_t bytes, std::shared_ptr<const void> owner, bool read_only) const override {
    return Buffer::wrap(data, bytes, std::move(owner), read_only);
  }
  Buffer allocate_pinned(std::size_t) const override { throw_no_pinning(); }
  bool is_pinned(const void*) const noexcept override { return false; }
  std::optional<int> device_of(const void*) const noexcept override { return 0; }
  std::shared_ptr<const void> register_host(void*, std::size_t) const override { throw_no_pinning(); }
  void in_context(int index, const std::function<void()>& action) const override {
    require_device(Device(type(), index));
    action();
  }
  QueuePtr default_queue(int index) const override {
    require_device(Device(type(), index));
    return queue_;
  }
  QueuePtr make_queue(int index, int) const override {
    require_device(Device(type(), index));
    return std::make_shared<CpuQueue>();
  }
  QueuePtr import_queue(int, void*) const override {
    throw Error(ErrorCode::kUnsupported, "the cpu has no streams of other libraries; wrap one of a device that has");
  }
  bool has_kernel(int, std::string_view) const override { return false; }

 private:
  Buffer large_block(std::size_t bytes) const {
    // The kernel would promise more than it has and kill the process when the pages are touched.
    if (bytes >= kLargeRequest && bytes > largest_host_request()) throw_out_of_memory(bytes);
    Buffer block = blocks_.take(bytes);
    if (!block) throw_out_of_memory(bytes);
    return block;
  }

  const QueuePtr queue_ = std::make_shared<CpuQueue>();
  const HostBlocks blocks_;
};

}  // namespace

const Backend& cpu_backend() noexcept {
  static const CpuBackend backend;
  return backend;
}

}  // namespace penstock::device
