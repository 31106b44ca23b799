// Puts the sections together, and measures copies: in memory and to each device, the best of a few runs after one that
// does not count.

#include "doctor/diagnosis.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/environment.h"
#include "core/format.h"
#include "core/text.h"
#include "device/backend.h"
#include "device/host_memory.h"
#include "penstock/error.h"
#include "penstock/stream.h"

namespace penstock::doctor {
namespace {

using Unit = Fact::Unit;
using Weight = Fact::Weight;
using Clock = std::chrono::steady_clock;

constexpr int kRepeats = 3;

/// Bytes per second of the best of a few runs; the first of all is not counted.
template <class Copy>
double best_speed(std::size_t bytes, Copy copy) {
  copy();
  double best = 0;
  for (int i = 0; i < kRepeats; ++i) {
    const auto begin = Clock::now();
    copy();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, static_cast<double>(bytes) / std::max(seconds, 1e-9));
  }
  return best;
}

double copy_speed(const Stream& stream, const Buffer& from, const Buffer& to) {
  const std::array range{device::CopyRange{to.data(), from.data(), from.size()}};
  const device::Direction direction = device::direction_of(from.device(), to.device());
  const device::QueuePtr& queue = StreamAccess::queue(stream);
  from.order_after_writes(stream);
  to.order_after_uses(stream);
  from.record_use(stream, Buffer::Access::kRead);
  to.record_use(stream, Buffer::Access::kWrite);
  return best_speed(from.size(), [&] {
    queue->copy(range, direction);
    queue->synchronize();
  });
}

void add_copy_speeds(Device device, std::size_t bytes, Section& out) {
  const Stream stream(device);
  const Buffer there = Buffer::allocate(bytes, device);
  const Buffer pageable = Buffer::allocate(bytes);
  const Buffer pinned = Buffer::allocate_pinned(bytes);
  std::memset(pageable.data(), 1, bytes);
  std::memset(pinned.data(), 1, bytes);
  out.add("pinned_to_device", copy_speed(stream, pinned, there), Unit::kBytesPerSecond);
  out.add("device_to_pinned", copy_speed(stream, there, pinned), Unit::kBytesPerSecond);
  out.add("pageable_to_device", copy_speed(stream, pageable, there), Unit::kBytesPerSecond);
}

void add_properties(Device device, Section& out) {
  const DeviceProperties properties = device_properties(device);
  out.add("name", properties.name);
  out.add("compute_capability", core::format("{}.{}", properties.major, properties.minor));
  out.add("numa_node",
          properties.numa_node < 0 ? Fact::Value{} : Fact::Value{static_cast<std::uint64_t>(properties.numa_node)});
  const MemoryStats memory = memory_stats(device);
  out.add("memory", memory.total_bytes, Unit::kBytes);
  out.add("memory_free", memory.free_bytes, Unit::kBytes);
  if (memory.free_bytes < memory.total_bytes / 10) {
    out.advise(Weight::kProblem, core::format("nearly all memory of {} is taken: nvidia-smi names the processes that "
                                              "hold it",
                                              device.to_string()));
  }
}

void add_products(Device device, Section& out) {
  const device::ProductLibrary library = device::backend_for(device.type).product_library(device.index);
  out.add("products", library.name.empty() ? "Penstock's own kernel" : library.name);
  if (!library.name.empty()) return;
  out.advise(Weight::kNote,
             core::format("matmul on {} is slower than it could be, because {}", device.to_string(), library.why_none));
}

Section diagnose_device(Device device, std::size_t copy_bytes) {
  Section out{device.to_string(), {}};
  try {
    add_properties(device, out);
    add_products(device, out);
    add_copy_speeds(device, copy_bytes, out);
  } catch (const Error& error) {
    out.add("usable", false);
    out.advise(Weight::kProblem, error.message());
  }
  return out;
}

std::string version_text(int version) { return core::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

void Section::add(std::string fact, Fact::Value value, Fact::Unit unit) {
  facts.push_back({std::move(fact), std::move(value), unit});
}

void Section::advise(Fact::Weight weight, std::string advice) {
  facts.back().weight = weight;
  facts.back().advice = std::move(advice);
}

void diagnose_devices(std::size_t copy_bytes, std::vector<Section>& out) {
  // The first is the CPU.
  for (const device::Backend* const backend : device::backends().subspan(1)) {
    const int count = backend->device_count();
    Section driver{"driver", {}};
    driver.add("devices", static_cast<std::uint64_t>(count));
    if (count == 0) {
      const char* const mask = core::environment("CUDA_VISIBLE_DEVICES");
      driver.advise(Weight::kNote, core::format("no device can be used: {}{}", backend->why_none(),
                                                mask == nullptr ? ""
                                                                : core::format("; CUDA_VISIBLE_DEVICES={} says "
                                                                               "which there may be",
                                                                               core::quoted(mask))));
    } else {
      driver.add("version", version_text(backend->properties(0).driver_version));
    }
    out.push_back(std::move(driver));
    for (int i = 0; i < count; ++i) out.push_back(diagnose_device(Device(backend->type(), i), copy_bytes));
  }
}

Section diagnose_memory(std::size_t copy_bytes) {
  Section out{"memory", {}};
  const device::MemoryInfo memory = device::host_memory();
  out.add("memory", memory.total_bytes, Unit::kBytes);
  out.add("memory_free", memory.free_bytes, Unit::kBytes);
  const Buffer from = Buffer::allocate(copy_bytes);
  const Buffer to = Buffer::allocate(copy_bytes);
  std::memset(from.data(), 1, copy_bytes);
  const double speed = best_speed(copy_bytes, [&] { std::memcpy(to.data(), from.data(), copy_bytes); });
  out.add("copy_by_one_thread", speed, Unit::kBytesPerSecond);
  return out;
}

std::vector<Section> diagnose(const DiagnosisOptions& options) {
  Section file = diagnose_file(options);
  std::vector<Section> out;
  diagnose_devices(options.copy_bytes, out);
  out.push_back(std::move(file));
  out.push_back(diagnose_memory(options.copy_bytes));
  out.push_back(diagnose_limits());
  out.push_back(diagnose_kernel());
  return out;
}

}  // namespace penstock::doctor
