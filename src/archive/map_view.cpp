// The bytes of a tensor as a part of the mapped file: nothing is read until they are used. It is possible only where
// they are the values. An error says why not otherwise, because a user who asks for a map relies on it.

#include "archive/map_view.h"

#include "archive/materialise.h"
#include "archive/read_way.h"
#include "core/format.h"
#include "core/view.h"
#include "io/read/reader.h"
#include "io/source/composed_source.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

[[noreturn]] void refuse(const detail::ArchiveState& state, const TensorEntry& view, std::string_view reason) {
  const StorageEntry& storage = state.storage_of(view);
  throw Error(ErrorCode::kUnsupported,
              core::format("the tensor cannot be mapped: {}; load it without asking for a map", reason),
              {state.index.sources[storage.source].name(), storage.offset, view.name});
}

}  // namespace

Buffer map_view(const detail::ArchiveState& state, const TensorEntry& view) {
  const StorageEntry& storage = state.storage_of(view);
  const Source& from = state.index.sources[storage.source];
  if (const std::string_view why = why_unmappable(view, storage, from); !why.empty()) refuse(state, view, why);
  Buffer memory;
  if (const Buffer& there = storage.resident) {
    memory = Buffer::wrap(there.data(), there.size(), there.owner(), true);
  } else {
    if (io::as_composed(from) != nullptr) return {};
    const Buffer file = state.mapping(storage.source);
    if (!file && from.size() != 0) refuse(state, view, "what it lies in is not a file that can be mapped");
    io::require_uncut(*from);
    memory = file.part(static_cast<std::size_t>(storage.offset), static_cast<std::size_t>(storage.nbytes));
  }
  const std::uint64_t span = *core::view_span(view.shape, view.strides, view.dtype.itemsize());
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data()) + view.byte_offset;
  if (address % natural_alignment(view.dtype) != 0) return {};
  return memory.part(static_cast<std::size_t>(view.byte_offset), static_cast<std::size_t>(span));
}

void require_map_alone(const LoadOptions& options) {
  if (!options.mmap.value_or(false)) return;
  const auto refuse_both = [](std::string_view name, std::string_view why) {
    throw Error(ErrorCode::kUnsupported, core::format("{}: leave out one of mmap and {}", why, name));
  };
  if (options.device != Device{}) {
    refuse_both("device",
                core::format("a mapped file is memory of the cpu and not of {}", options.device.to_string()));
  }
  if (options.direct.value_or(false)) refuse_both("direct", "nothing is read of a mapped file");
  if (options.gds.value_or(false)) refuse_both("gds", "nothing is read of a mapped file");
}

void report_mapped(std::size_t mapped, std::size_t copied, Report& report) {
  report.route = "map";
  report.why = core::format("asked for: {} {} of the mapped file", mapped,
                            mapped == 1 ? "tensor is a view" : "tensors are views");
  if (copied != 0) report.why += core::format(", {} read because the file does not align them", copied);
}

}  // namespace penstock::archive
