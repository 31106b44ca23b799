// Reads tensors into memory that the caller has. Units that bring just the bytes of their tensor, contiguous on both
// sides, have that memory as their place, and are read together. The other tensors are loaded one by one and then
// copied or converted.

#include "archive/load_into.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "archive/load_converted.h"
#include "archive/load_tensors.h"
#include "core/format.h"
#include "core/text.h"
#include "core/view.h"
#include "ops/kernels.h"
#include "penstock/error.h"
#include "penstock/stream.h"

namespace penstock::archive {
namespace {

void require_position(const detail::ArchiveState& state, std::size_t position, std::size_t count,
                      std::string_view what) {
  if (position < count) return;
  throw Error(
      ErrorCode::kIndexOutOfRange,
      core::format("{} {} was asked for, but the file has {}", what, static_cast<std::int64_t>(position), count),
      {state.path()});
}

void check(const TensorEntry& entry, const Tensor& to) {
  const auto refuse = [&entry](ErrorCode code, const std::string& message) {
    throw Error(code, message, {.tensor = entry.name});
  };
  if (!to.defined()) refuse(ErrorCode::kInvalidArgument, "there is no tensor to read it into");
  if (to.read_only()) refuse(ErrorCode::kInvalidArgument, "the memory to read it into may not be written");
  if (to.shape() != entry.shape) {
    refuse(ErrorCode::kShapeMismatch, core::format("the file has shape {} where the memory to read it into has {}",
                                                   entry.shape.to_string(), to.shape().to_string()));
  }
  const bool converts = to.dtype() == entry.dtype || (to.dtype().is_numeric() && entry.dtype.is_numeric());
  if (!converts) {
    refuse(ErrorCode::kDTypeMismatch,
           core::format("the file holds {} and the target {}; there is no conversion between them", entry.dtype.name(),
                        to.dtype().name()));
  }
}

/// Whether the unit brings the bytes that the memory is to hold, and no others.
bool fills(const ReadUnit& unit, const StorageEntry& storage, const Tensor& to) {
  const TensorEntry& entry = *unit.entry;
  return entry.dtype == to.dtype() && to.is_contiguous() && core::is_c_order(entry.shape, entry.strides) &&
         !entry.encoding.has_math_bits() && unit.to.device == to.device() && unit.bytes_of(storage) == entry.nbytes();
}

void cast_named(const TensorEntry& entry, const Tensor& from, const Tensor& to, bool strict) try {
  ops::cast(from, to, strict);
} catch (const Error& error) {
  throw error.within({.tensor = entry.name});
}

void load_and_copy(const detail::ArchiveState& state, const Destination& destination, const LoadOptions& options,
                   Report& report) {
  const TensorEntry& entry = *destination.entry;
  const Tensor& to = destination.to;
  const bool converts = entry.dtype != to.dtype();
  // Only the host looks at the values that it converts.
  const bool strict = converts && options.strict;
  const bool in_place = converts && to.device() == Device{} && to.is_contiguous();
  if (in_place && convert_in_pieces(state, entry, to, options, report, destination.extent)) return;
  const Aim aim = aim_at(state, strict ? Device{} : to.device(), options);
  const Tensor loaded = load_view(state, entry, aim, options, report, destination.extent);
  if (!converts) return ops::copy(loaded, to);
  if (!strict || to.device() == Device{}) return cast_named(entry, loaded, to, strict);
  const Tensor on_host = Tensor::empty(to.shape(), to.dtype());
  cast_named(entry, loaded, on_host, strict);
  ops::copy(on_host.to(to.device()), to);
}

/// Waits for the devices, because the owner of the memory may know nothing of the streams that write it.
void wait_for(std::span<const Destination* const> written) {
  std::vector<Device> waited;
  for (const Destination* destination : written) {
    const Device device = destination->to.device();
    if (device.type == DeviceType::kCpu || std::find(waited.begin(), waited.end(), device) != waited.end()) continue;
    Stream::current(device).synchronize();
    waited.push_back(device);
  }
}

}  // namespace

void load_into(const detail::ArchiveState& state, std::span<const Destination> destinations, const LoadOptions& options,
               Report& report) {
  try {
    std::vector<ReadUnit> units;
    std::vector<const Destination*> others;
    for (const Destination& destination : destinations) {
      const auto& [entry, to, extent] = destination;
      require_loadable(state, *entry, {});
      check(*entry, to);
      ReadUnit unit = ReadUnit::of_view(state, *entry, aim_at(state, to.device(), options), extent);
      if (unit.to.way == Way::kNothing) continue;
      if (!fills(unit, state.storage_of(*entry), to)) {
        others.push_back(&destination);
        continue;
      }
      unit.bytes = to.buffer().part(to.byte_offset(), to.nbytes());
      units.push_back(std::move(unit));
    }
    if (!units.empty()) read_units(state, units, options, report);
    for (const Destination* other : others) load_and_copy(state, *other, options, report);
    wait_for(others);
  } catch (const Error& error) {
    throw error.within({state.path()});
  }
}

std::vector<Destination> destinations_of(const detail::ArchiveState& state, std::span<const Placement> placements) {
  std::vector<Destination> out;
  out.reserve(placements.size());
  for (const Placement& placement : placements) {
    require_position(state, placement.entry, state.index.entries.size(), "tensor");
    out.push_back({&state.index.entries[placement.entry], placement.to});
  }
  return out;
}

std::vector<Destination> destinations_of(const detail::ArchiveState& state, std::span<const TensorEntry> whole,
                                         std::span<const StoragePlacement> placements) {
  std::vector<const TensorEntry*> entries(state.index.storages.size());
  for (const TensorEntry& entry : whole) entries[entry.storage] = &entry;
  std::vector<Destination> out;
  for (const auto& [storage, to] : placements) {
    require_position(state, storage, entries.size(), "storage");
    if (entries[storage] == nullptr) continue;
    const TensorEntry& entry = *entries[storage];
    if (!to.defined() || to.dtype() != DType::uint8 || !to.is_contiguous() || to.nbytes() != entry.nbytes()) {
      throw Error(
          ErrorCode::kShapeMismatch,
          core::format("storage {} must be read into a contiguous uint8 tensor of {} bytes", storage, entry.nbytes()),
          {state.path()});
    }
    out.push_back({&entry, Tensor(to.buffer(), entry.dtype, entry.shape, entry.strides, to.byte_offset())});
  }
  return out;
}

}  // namespace penstock::archive
