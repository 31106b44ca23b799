// Loads one tensor, or a slice of one. When its elements lie together in the file, one read brings the run from the
// first to the last. Otherwise they are read in parts (io/move/strided_plan.h), with the short gaps between them. A
// deflated storage can only be read from its start, so it is loaded whole and the elements are taken from it.

#include "archive/load_view.h"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "archive/block_layout.h"
#include "archive/loadable.h"
#include "archive/map_view.h"
#include "archive/materialise.h"
#include "archive/whole_load.h"
#include "core/format.h"
#include "core/view.h"
#include "device/backend.h"
#include "io/move/device_writes.h"
#include "io/move/strided_read.h"
#include "ops/kernels.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

std::uint64_t span_of(const TensorEntry& view) {
  return *core::view_span(view.shape, view.strides, view.dtype.itemsize());
}

/// Reads the whole record for its CRC, when the view is a tensor of the file and reading it does not give the CRC.
void verify_record(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options,
                   Report& report, Extent extent) {
  const bool wanted = extent == Extent::kWhole && state.check_of(state.storage_of(view), options).wanted();
  if (wanted) state.verify(view.storage, options, report);
}

/// One contiguous read of everything from the first element to the last. The tensor keeps its strides.
Tensor load_run(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options, Report& report,
                Extent extent) {
  const StorageEntry& storage = state.storage_of(view);
  const std::uint64_t length = span_of(view);
  const Encoding& encoding = view.encoding;
  const Device device = encoding.changes_elements() ? Device{} : options.device;
  const std::uint64_t offset = storage.offset + view.byte_offset;
  const std::size_t lead = device.type == DeviceType::kCpu ? phase_of(offset, length).value_or(0) : 0;
  const Buffer block = io::allocate_to_fill(static_cast<std::size_t>(length) + lead, device);
  const std::array buffers{block.part(lead, static_cast<std::size_t>(length))};
  const io::Piece piece{storage.source, 0, offset, length, 0};
  io::Move move{io::make_plan(std::span(&piece, 1)), state.index.sources, buffers, {}, {}};
  if (auto checksum = checksum_of_run(state, view, length, options)) {
    move.checksums.push_back(std::move(*checksum));
  } else {
    verify_record(state, view, options, report, extent);
  }
  io::execute(move, engine_options(options), report);
  Tensor read(buffers[0], view.dtype, view.shape, view.strides);
  if (!encoding.changes_elements()) return read;
  // In place only where each element is there once.
  if (!read.is_contiguous()) return own_copy(read, encoding);
  decode(encoding, read);
  return read;
}

/// Reads the elements, and gaps between them only where they are short.
Tensor load_scattered(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options,
                      Report& report, Extent extent) {
  verify_record(state, view, options, report, extent);
  io::StridedView wanted{state.storage_of(view).offset + view.byte_offset, view.shape, view.strides,
                         view.dtype.itemsize()};
  for (std::size_t d = 0; d < wanted.shape.rank(); ++d) {
    if (wanted.strides[d] == 0) wanted.shape[d] = 1;
  }
  const Tensor once = Tensor::empty(wanted.shape, view.dtype);
  io::read_strided(*state.source_of(view), wanted, once, ops::copy, {options.threads, options.stop}, report);
  report.payload_bytes += once.nbytes();
  report.route = "read";
  report.why = "a slice whose elements do not lie together: read in parts";
  decode(view.encoding, once);
  Strides strides = once.strides();
  for (std::size_t d = 0; d < strides.rank(); ++d) {
    if (view.strides[d] == 0) strides[d] = 0;
  }
  return {once.buffer(), view.dtype, view.shape, strides};
}

/// Frees the rest of a storage that was loaded for the elements of `part`: copies them when other bytes lie between
/// them, or when the storage is more than twice as large.
Tensor alone(const Tensor& part) {
  const std::size_t span = *core::view_span(part.shape(), part.strides(), part.dtype().itemsize());
  if (span > part.nbytes()) return own_copy(part, {});
  if (span >= part.buffer().size() / 2) return part;
  const Buffer run = Buffer::allocate(span);
  std::memcpy(run.data(), part.data(), span);
  return {run, part.dtype(), part.shape(), part.strides()};
}

/// Whether the view is inflated or swapped in the ring on its way to a device. The ring decodes whole storages, so the
/// view must be all or much of one.
bool is_decoded_in_ring(const StorageEntry& storage, const TensorEntry& view, const LoadOptions& options) {
  const Encoding& encoding = view.encoding;
  if (options.device.type == DeviceType::kCpu || encoding.resident || encoding.has_math_bits()) return false;
  if (encoding.deflated) return view.nbytes() >= storage.nbytes / 2;
  return encoding.swapped && view.byte_offset == 0 && span_of(view) == storage.nbytes;
}

/// Loads to the device at once if possible, else to the host, where elements can be changed or picked.
Tensor load_nearest(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options,
                    Report& report, Extent extent) {
  const StorageEntry& storage = state.storage_of(view);
  if (view.nbytes() == 0) return Tensor::empty(view.shape, view.dtype);
  if (is_decoded_in_ring(storage, view, options))
    return load_whole(state, std::span(&view, 1), options, report).front();
  if (view.encoding.deflated || state.resident(storage, options)) {
    LoadOptions to_host = options;
    to_host.device = {};
    return alone(load_whole(state, std::span(&view, 1), to_host, report).front());
  }
  if (span_of(view) <= view.nbytes()) return load_run(state, view, options, report, extent);
  return load_scattered(state, view, options, report, extent);
}

}  // namespace

std::optional<io::Checksum> checksum_of_run(const detail::ArchiveState& state, const TensorEntry& view,
                                            std::uint64_t length, const LoadOptions& options) {
  const StorageEntry& storage = state.storage_of(view);
  io::RecordCheck check = state.check_of(storage, options);
  if (!check.wanted() || view.byte_offset > io::StridedPlan::kMaxGap || view.byte_offset + length != storage.nbytes)
    return std::nullopt;
  std::vector<std::byte> header(static_cast<std::size_t>(view.byte_offset));
  if (!header.empty()) state.source_of(view).read(storage.offset, header);
  check.add(header);
  return io::Checksum{.length = length, .check = std::move(check)};
}

Tensor load_view(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options, Report& report,
                 Extent extent) {
  require_loadable(state, view, options);
  LoadOptions reading = options;
  reading.mmap = false;
  try {
    if (options.mmap.value_or(false)) {
      Tensor tensor = map_view(state, view);
      const bool mapped = tensor.defined();
      if (mapped) report.payload_bytes += tensor.nbytes();
      if (!mapped) tensor = load_nearest(state, view, reading, report, extent);
      report_mapped(mapped ? 1 : 0, mapped ? 0 : 1, report);
      return tensor.with_requires_grad(view.requires_grad);
    }
    return load_nearest(state, view, reading, report, extent).to(options.device).with_requires_grad(view.requires_grad);
  } catch (const Error& error) {
    throw error.within({state.source_of(view).name(), {}, view.name});
  }
}

}  // namespace penstock::archive
