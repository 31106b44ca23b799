#include "archive/read_way.h"

#include "core/view.h"
#include "io/source/composed_source.h"
#include "io/source/own_read.h"

namespace penstock::archive {

Stretch stretch_of(const TensorEntry& view) {
  return {.begin = view.byte_offset,
          .span = *core::view_span(view.shape, view.strides, view.dtype.itemsize()),
          .bytes = view.nbytes(),
          .swapped = view.encoding.swapped,
          .by_host = view.encoding.has_math_bits()};
}

bool lies_in_memory(const StorageEntry& storage, const Aim& aim) noexcept {
  if (storage.resident) return true;
  // What goes to a device goes there from the file, through the ring.
  return aim.content && aim.device == Device{} && !aim.mmap && storage.source == 0 && !storage.is_deflated();
}

ReadWay way_of(const StorageEntry& storage, const Stretch& wanted, const Aim& aim) noexcept {
  if (aim.mmap) return {Way::kMap};
  if (wanted.bytes == 0) return {Way::kNothing, aim.device};
  if (lies_in_memory(storage, aim)) return {Way::kMemory};
  const bool to_device = aim.device != Device{} && !wanted.by_host;
  // The ring decodes whole storages, so it must be all or much of one that is wanted.
  if (storage.is_deflated()) {
    if (to_device && wanted.bytes >= storage.nbytes / 2) return {Way::kRing, aim.device};
    return {Way::kInflate};
  }
  if (wanted.span > wanted.bytes) return {Way::kParts};
  if (!to_device) return {Way::kRun};
  if (!wanted.swapped) return {Way::kRun, aim.device};
  const bool is_all = wanted.begin == 0 && wanted.span == storage.nbytes;
  return is_all ? ReadWay{Way::kRing, aim.device} : ReadWay{Way::kRun};
}

std::string_view why_unmappable(const TensorEntry& view, const StorageEntry& storage, const Source& source) {
  if (view.encoding.deflated) return "it is stored compressed";
  if (view.encoding.swapped) return "it is stored in the other byte order";
  if (view.encoding.has_math_bits()) return "it is stored as the conjugate or negative of its values";
  if (storage.resident || source.size() == 0 || source.descriptor() >= 0 || io::memory_of(*source)) return {};
  if (io::as_composed(source) != nullptr) return {};
  return "what it lies in is not a file that can be mapped";
}

bool lies_as_values(const TensorEntry& view) noexcept {
  return view.encoding.is_plain() && core::is_c_order(view.shape, view.strides);
}

bool brings_record(const StorageEntry& storage, const Stretch& wanted, const io::ReadCosts& costs) noexcept {
  return wanted.begin <= costs.gap_behind(wanted.span) && wanted.begin + wanted.span == storage.nbytes;
}

}  // namespace penstock::archive
