// Finds tensors that a program copies to a device and back again and again, because that is slow and often a mistake.
// Each storage has an entry in a small table of fixed size, found by its address, so that a copy costs no allocation.
// An entry keeps a weak reference to the owner of the memory, because an address may be given to another storage later.

#include "device/round_trip.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "core/warning.h"
#include "device/transfer_counts.h"
#include "penstock/transfer.h"

namespace penstock {
namespace device {
namespace {

/// How often the bytes at one address of a live storage came over.
struct Trace {
  std::weak_ptr<const void> owner = {};  ///< a dead owner's control block stays, so none can be mistaken for it
  const std::byte* data = nullptr;
  std::uint32_t crossings = 0;
  bool warned = false;

  bool is_of(const Buffer& buffer) const noexcept {
    return data == buffer.data() && !owner.owner_before(buffer.owner()) && !buffer.owner().owner_before(owner);
  }
};

class Table {
 public:
  bool note(const Buffer& from, const Buffer& to) {
    const std::scoped_lock lock(mutex_);
    Trace* const source = find(from);
    const std::uint32_t before = source == nullptr ? 0 : source->crossings;
    const bool warned = source != nullptr && source->warned;
    Trace& target = find_or_make(to);
    target.crossings = std::max(target.crossings, before + 1);
    const bool warns = !warned && !target.warned && target.crossings >= 2 * TransferWarning::kRoundTrips;
    target.warned = target.warned || warned || warns;
    return warns;
  }

 private:
  static constexpr std::size_t kSets = 256;
  static constexpr std::size_t kWays = 4;
  using Set = std::array<Trace, kWays>;

  Set& set_of(const Buffer& buffer) noexcept {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(buffer.data()));
    return sets_[(address * kGolden) >> 56U];
  }

  Trace* find(const Buffer& buffer) noexcept {
    Set& set = set_of(buffer);
    const auto found = std::find_if(set.begin(), set.end(), [&](const Trace& trace) { return trace.is_of(buffer); });
    return found == set.end() ? nullptr : &*found;
  }

  Trace& find_or_make(const Buffer& buffer) {
    if (Trace* const found = find(buffer)) return *found;
    const auto worth = [](const Trace& trace) { return trace.owner.expired() ? 0 : trace.crossings; };
    Set& set = set_of(buffer);
    Trace& least =
        *std::min_element(set.begin(), set.end(), [&](const Trace& a, const Trace& b) { return worth(a) < worth(b); });
    least = Trace{.owner = buffer.owner(), .data = buffer.data()};
    return least;
  }

  static_assert(kSets == 256, "set_of takes eight bits");
  std::mutex mutex_;
  std::array<Set, kSets> sets_;
};

/// Never destroyed: tensors may be copied by whatever ends after statics do.
Table& table() {
  static Table& made = *new Table;
  return made;
}

struct HandlerSlot {
  std::mutex mutex;
  TransferWarningHandler handler;
};

HandlerSlot& handler_slot() {
  static HandlerSlot& made = *new HandlerSlot;
  return made;
}

TransferWarningHandler current_handler() {
  const std::scoped_lock lock(handler_slot().mutex);
  return handler_slot().handler;
}

std::string describe(const TransferWarning& warning, std::size_t bytes) {
  const std::string device = warning.device.to_string();
  const std::string name = warning.name.empty() ? "" : core::quoted(warning.name) + " ";
  return core::format(
      "the tensor {}of shape {} and type {} ({}) has gone between cpu and {} and back {}: keep it on {} and "
      "compute there, or on the cpu if nothing on {} needs it",
      name, warning.shape.to_string(), warning.dtype.name(), core::format_bytes(bytes), device,
      core::counted(warning.round_trips, "time"), device, device);
}

}  // namespace

bool note_copy(const Buffer& from, const Buffer& to) {
  const Direction direction = direction_of(from.device(), to.device());
  const bool crosses = direction == Direction::kHostToDevice || direction == Direction::kDeviceToHost;
  return crosses && from.size() != 0 && table().note(from, to);
}

void warn_of_round_trips(const Tensor& tensor, Device target, std::string name) {
  TransferWarning warning{.name = std::move(name),
                          .shape = tensor.shape(),
                          .dtype = tensor.dtype(),
                          .device = target.type == DeviceType::kCpu ? tensor.device() : target,
                          .message = {}};
  warning.message = describe(warning, tensor.nbytes());
  if (const TransferWarningHandler handler = current_handler()) return handler(warning);
  core::tell_warning({}, warning.message);
}

}  // namespace device

TransferWarningHandler set_transfer_warning_handler(TransferWarningHandler handler) {
  const std::scoped_lock lock(device::handler_slot().mutex);
  return std::exchange(device::handler_slot().handler, std::move(handler));
}

}  // namespace penstock
