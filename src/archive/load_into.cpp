// Reads tensors into memory that the caller has. When the bytes in the file are the values and both sides are
// contiguous, the bytes go straight into place; one move of the engine does that for all such tensors. The others are
// loaded one by one and then copied or converted.

#include "archive/load_into.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "archive/failing_tensor.h"
#include "archive/load_tensors.h"
#include "archive/load_view.h"
#include "archive/loadable.h"
#include "core/format.h"
#include "core/text.h"
#include "ops/kernels.h"
#include "penstock/error.h"
#include "penstock/stream.h"

namespace penstock::archive {
namespace {

void require_position(const detail::ArchiveState& state, std::size_t position, std::size_t count,
                      std::string_view what) {
  if (position < count) return;
  throw Error(ErrorCode::kIndexOutOfRange,
              core::format("{} {} was asked for, but the file has {}", what, position, count), {state.path()});
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

/// Whether the bytes in the file are those that the memory is to hold, without a gap.
bool is_direct(const TensorEntry& entry, const Tensor& to) {
  return entry.nbytes() != 0 && entry.dtype == to.dtype() && to.is_contiguous() && entry.encoding.is_plain() &&
         entry.strides == entry.shape.contiguous_strides();
}

/// Collects the tensors whose bytes go straight into place, and reads them by one move.
class DirectMove {
 public:
  DirectMove(const detail::ArchiveState& state, const LoadOptions& options) : state_(state), options_(options) {}

  void add(const TensorEntry& entry, const Tensor& to, Extent extent) {
    const StorageEntry& storage = state_.storage_of(entry);
    const auto buffer = static_cast<std::uint32_t>(buffers_.size());
    buffers_.push_back(to.buffer());
    const std::uint64_t offset = storage.offset + entry.byte_offset;
    pieces_.push_back({storage.source, buffer, offset, entry.nbytes(), to.byte_offset()});
    entries_.push_back(&entry);
    if (auto checksum = checksum_of_run(state_, entry, entry.nbytes(), options_)) {
      checksum->buffer = buffer;
      checksum->buffer_offset = to.byte_offset();
      checksums_.push_back(std::move(*checksum));
    } else if (extent == Extent::kWhole && state_.check_of(storage, options_).wanted()) {
      apart_.push_back(entry.storage);
    }
  }

  void run(Report& report) {
    if (pieces_.empty()) return;
    for (const std::size_t storage : apart_) state_.verify(storage, options_, report);
    const io::Move move{io::make_plan(pieces_), state_.index.sources, buffers_, std::move(checksums_), {}};
    try {
      io::execute(move, engine_options(options_), report);
    } catch (const Error& error) {
      throw with_tensor(error, state_.index, entries_);
    }
  }

 private:
  const detail::ArchiveState& state_;
  const LoadOptions& options_;
  std::vector<io::Piece> pieces_;
  std::vector<const TensorEntry*> entries_;  ///< of each piece
  std::vector<Buffer> buffers_;
  std::vector<io::Checksum> checksums_;
  std::vector<std::size_t> apart_;  ///< storages with a checksum of which not all is read
};

void cast_named(const TensorEntry& entry, const Tensor& from, const Tensor& to, bool strict) try {
  ops::cast(from, to, strict);
} catch (const Error& error) {
  throw error.within({.tensor = entry.name});
}

void load_and_copy(const detail::ArchiveState& state, const Destination& destination, const LoadOptions& options,
                   Report& report) {
  const TensorEntry& entry = *destination.entry;
  const Tensor& to = destination.to;
  LoadOptions there = options;
  there.mmap = false;
  const bool converts = entry.dtype != to.dtype();
  // Only the host looks at the values that it converts.
  const bool strict = converts && options.strict;
  there.device = strict ? Device{} : to.device();
  const Tensor loaded = load_view(state, entry, there, report, destination.extent);
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
    DirectMove direct(state, options);
    std::vector<const Destination*> others;
    for (const Destination& destination : destinations) {
      const TensorEntry& entry = *destination.entry;
      require_loadable(state, entry, {});
      check(entry, destination.to);
      if (is_direct(entry, destination.to)) {
        direct.add(entry, destination.to, destination.extent);
      } else if (entry.nbytes() != 0) {
        others.push_back(&destination);
      }
    }
    direct.run(report);
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
