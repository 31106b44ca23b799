// A load of many tensors has a unit for each storage, because tensors may share it: what they want of its bytes is put
// together first. When the bytes are there, each tensor becomes a view of them. One that needs them in another form
// than the others of its storage gets a copy. A load of one tensor has a unit of its own.

#include "archive/load_tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "archive/materialise.h"
#include "core/format.h"
#include "core/view.h"
#include "device/backend.h"
#include "ops/kernels.h"
#include "ops/transfer.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

/// The units of whole storages that tensors are views of. Only storages that are loaded have one, so that loading a
/// small part of a large file costs little.
class StorageUnits {
 public:
  StorageUnits(const detail::ArchiveState& state, std::span<const TensorEntry> wanted, const Aim& aim)
      : is_dense_(false) {
    for (const TensorEntry& entry : wanted) {
      if (entry.nbytes() != 0) used_.push_back(entry.storage);
    }
    std::sort(used_.begin(), used_.end());
    used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
    is_dense_ = used_.size() == state.index.storages.size();
    units.resize(used_.size());
    std::vector<bool> mixed(used_.size());
    for (const TensorEntry& entry : wanted) {
      if (entry.nbytes() == 0) continue;
      const std::size_t i = position(entry.storage);
      add(units[i], entry, mixed, i);
    }
    for (std::size_t i = 0; i < units.size(); ++i) finish(units[i], state.index.storages[used_[i]], mixed[i], aim);
  }

  const ReadUnit& of(const TensorEntry& entry) const { return units[position(entry.storage)]; }

  std::vector<ReadUnit> units;

 private:
  std::size_t position(std::size_t storage) const {
    if (is_dense_) return storage;
    return static_cast<std::size_t>(std::lower_bound(used_.begin(), used_.end(), storage) - used_.begin());
  }

  static void add(ReadUnit& unit, const TensorEntry& entry, std::vector<bool>& mixed, std::size_t i) {
    const ByteOrder order(entry, 0);
    if (unit.entry == nullptr) {
      unit.entry = &entry;
      unit.order = order;
    }
    if (unit.order != order) mixed[i] = true;
    unit.wanted.by_host = unit.wanted.by_host || entry.encoding.has_math_bits();
  }

  /// Where tensors want different byte orders, each that is swapped gets its own copy.
  static void finish(ReadUnit& unit, const StorageEntry& storage, bool mixed, const Aim& aim) {
    if (mixed) unit.order = {};
    unit.wanted.span = unit.wanted.bytes = storage.nbytes;
    unit.wanted.swapped = unit.order.swap;
    unit.wanted.by_host = unit.wanted.by_host || mixed;
    unit.to = way_of(storage, unit.wanted, aim);
  }

  bool is_dense_;
  std::vector<std::size_t> used_;  ///< storages, in order
};

/// The view of the unit's bytes that is the tensor; a copy where they are not its values yet, unless the unit is its
/// own and has each element once.
Tensor tensor_of(const TensorEntry& entry, const ReadUnit& unit, bool is_own) {
  const auto offset = static_cast<std::size_t>(entry.byte_offset - unit.begin());
  const Tensor view(unit.bytes, entry.dtype, entry.shape, entry.strides, offset);
  if (unit.to.way == Way::kMap) return view;
  Encoding left = entry.encoding;
  if (unit.order.swap) left.swapped = false;
  const bool aligned = reinterpret_cast<std::uintptr_t>(view.data()) % natural_alignment(entry.dtype) == 0;
  if (!left.changes_elements() && aligned) return view;
  if (view.device() != Device{}) return ops::copy_span(view, view.device(), {});
  if (!is_own || !aligned || !view.is_contiguous()) return own_copy(view, left);
  decode(left, view);
  return view;
}

/// Elements that lay apart and lie together now.
Tensor gathered(const TensorEntry& entry, const ReadUnit& unit) {
  const Tensor all(unit.bytes, entry.dtype, once(entry.shape, entry.strides));
  Encoding left = entry.encoding;
  left.swapped = false;
  decode(left, all);
  return {all.buffer(), entry.dtype, entry.shape, repeating(all.strides(), entry.strides)};
}

/// Frees the rest of a storage that was brought for the elements of `part`: copies them when other bytes lie between
/// them, or when the storage is more than twice as large.
Tensor alone(const Tensor& part) {
  if (part.device() != Device{}) return part;
  const std::size_t span = *core::view_span(part.shape(), part.strides(), part.dtype().itemsize());
  if (span > part.nbytes()) return own_copy(part, {});
  if (span >= part.buffer().size() / 2) return part;
  const Buffer run = Buffer::allocate(span);
  std::memcpy(run.data(), part.data(), span);
  return {run, part.dtype(), part.shape(), part.strides()};
}

/// The tensor of a unit that is read for it alone.
Tensor only_tensor_of(const TensorEntry& entry, const ReadUnit& unit, const Aim& aim) {
  if (unit.to.way == Way::kNothing) return Tensor::empty(entry.shape, entry.dtype, aim.device);
  if (unit.to.way == Way::kParts) return gathered(entry, unit);
  const Tensor out = tensor_of(entry, unit, true);
  return unit.to.way == Way::kMap ? out : alone(out);
}

/// Moves tensors that had to be made in host memory to the device, all in one batch.
std::vector<Tensor> on_device(std::vector<Tensor> tensors, Device device) {
  const auto there = [device](const Tensor& tensor) { return tensor.device() == device; };
  if (std::all_of(tensors.begin(), tensors.end(), there)) return tensors;
  std::vector<Value> values(tensors.size());
  std::transform(tensors.begin(), tensors.end(), values.begin(), [](const Tensor& t) { return Value::tensor(t); });
  const Value moved = Value::list(std::move(values)).to(device);
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i] = moved[i].as_tensor();
  return tensors;
}

std::vector<Tensor> load_storages(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                  const Aim& aim, const LoadOptions& options, Report& report, Resident resident) {
  StorageUnits storages(state, wanted, aim);
  read_units(state, storages.units, options, report, resident);
  std::vector<Tensor> out;
  out.reserve(wanted.size());
  for (const TensorEntry& entry : wanted) {
    const Tensor tensor = entry.nbytes() == 0 ? Tensor::empty(entry.shape, entry.dtype, aim.device)
                                              : tensor_of(entry, storages.of(entry), false);
    out.push_back(tensor.with_requires_grad(entry.requires_grad));
  }
  return on_device(std::move(out), aim.device);
}

std::vector<Tensor> load_views(const detail::ArchiveState& state, std::span<const TensorEntry> wanted, const Aim& aim,
                               const LoadOptions& options, Report& report, Extent extent) {
  std::vector<ReadUnit> units;
  units.reserve(wanted.size());
  for (const TensorEntry& entry : wanted) units.push_back(ReadUnit::of_view(state, entry, aim, extent));
  read_units(state, units, options, report);
  std::vector<Tensor> out;
  out.reserve(wanted.size());
  for (const ReadUnit& unit : units) {
    const Tensor tensor = only_tensor_of(*unit.entry, unit, aim);
    out.push_back(tensor.to(aim.device).with_requires_grad(unit.entry->requires_grad));
  }
  return out;
}

}  // namespace

void require_loadable(const detail::ArchiveState& state, const TensorEntry& entry, const LoadOptions& options) {
  if (entry.pickled) {
    throw Error(
        ErrorCode::kUnsafe,
        "it is an array of Python objects whose pickle is damaged, or asks for what only running code could load; save "
        "it as numbers or text instead",
        {state.source_of(entry).name(), state.storage_of(entry).offset, entry.name});
  }
  device::require_device(options.device);
}

std::vector<Tensor> load_tensors(const detail::ArchiveState& state, std::span<const TensorEntry> wanted, const Aim& aim,
                                 const LoadOptions& options, Report& report, Resident resident) {
  for (const TensorEntry& entry : wanted) require_loadable(state, entry, options);
  try {
    return aim.mmap ? load_views(state, wanted, aim, options, report, Extent::kWhole)
                    : load_storages(state, wanted, aim, options, report, resident);
  } catch (const Error& error) {
    throw error.within({state.path()});
  }
}

Tensor load_view(const detail::ArchiveState& state, const TensorEntry& view, const Aim& aim, const LoadOptions& options,
                 Report& report, Extent extent) {
  require_loadable(state, view, options);
  try {
    return load_views(state, {&view, 1}, aim, options, report, extent).front();
  } catch (const Error& error) {
    throw error.within({state.source_of(view).name(), {}, view.name});
  }
}

}  // namespace penstock::archive
