#include "format/load_into.h"

#include <utility>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "format/load_tensors.h"
#include "format/load_view.h"
#include "format/materialise.h"
#include "ops/kernels.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

const TensorEntry& entry_of(const detail::ArchiveState& state, const Placement& placement) {
  if (placement.entry < state.index.entries.size()) return state.index.entries[placement.entry];
  throw Error(ErrorCode::kIndexOutOfRange,
              core::format("tensor {} was asked of a file that has {}", placement.entry, state.index.entries.size()));
}

void check(const TensorEntry& entry, const Tensor& to) {
  const auto refuse = [&entry](ErrorCode code, const std::string& message) {
    throw Error(code, message, {.tensor = entry.name});
  };
  if (!to.defined()) refuse(ErrorCode::kInvalidArgument, "there is no tensor to read it into");
  if (to.read_only()) refuse(ErrorCode::kInvalidArgument, "the memory to read it into may not be written");
  if (to.device().type != DeviceType::kCpu) {
    refuse(ErrorCode::kUnsupported, core::format("found memory of {} to read it into, expected the cpu's: load it "
                                                 "there and copy",
                                                 to.device().to_string()));
  }
  if (to.shape() != entry.shape) {
    refuse(ErrorCode::kShapeMismatch, core::format("the file has shape {} where the memory to read it into has {}",
                                                   entry.shape.to_string(), to.shape().to_string()));
  }
  const bool converts = to.dtype() == entry.dtype || (to.dtype().is_numeric() && entry.dtype.is_numeric());
  if (!converts) {
    refuse(ErrorCode::kDTypeMismatch, core::format("the file has {}, which is not converted to the {} of the memory to "
                                                   "read it into",
                                                   entry.dtype.name(), to.dtype().name()));
  }
}

/// Whether the bytes in the file are those that the memory is to hold, without a gap.
bool is_direct(const TensorEntry& entry, const StorageEntry& storage, const Tensor& to) {
  return entry.nbytes() != 0 && entry.dtype == to.dtype() && to.is_contiguous() && !Changes(entry).any() &&
         entry.strides == entry.shape.contiguous_strides() && storage.compression == Compression::kNone &&
         !storage.resident;
}

/// One move for everything that goes from file to place.
class DirectMove {
 public:
  DirectMove(const detail::ArchiveState& state, const LoadOptions& options) : state_(state), options_(options) {}

  void add(const TensorEntry& entry, const Tensor& to) {
    const StorageEntry& storage = state_.storage_of(entry);
    const auto buffer = static_cast<std::uint32_t>(buffers_.size());
    buffers_.push_back(to.buffer());
    const std::uint64_t offset = storage.offset + entry.byte_offset;
    pieces_.push_back({storage.source, buffer, offset, entry.nbytes(), to.byte_offset()});
    if (auto checksum = checksum_of_run(state_, entry, entry.nbytes(), options_)) {
      checksum->buffer = buffer;
      checksum->buffer_offset = to.byte_offset();
      checksums_.push_back(std::move(*checksum));
    }
  }

  void run(Report& report) {
    if (pieces_.empty()) return;
    const io::Move move{io::make_plan(pieces_), state_.index.sources, buffers_, std::move(checksums_), {}};
    io::execute(move, engine_options(options_), report);
  }

 private:
  const detail::ArchiveState& state_;
  const LoadOptions& options_;
  std::vector<io::Piece> pieces_;
  std::vector<Buffer> buffers_;
  std::vector<io::Checksum> checksums_;
};

void load_and_copy(const detail::ArchiveState& state, const TensorEntry& entry, const Tensor& to,
                   const LoadOptions& options, Report& report) {
  const Tensor loaded = load_view(state, entry, options, report);
  if (loaded.dtype() == to.dtype()) {
    ops::copy(loaded, to);
  } else {
    ops::cast(loaded, to);
  }
}

}  // namespace

void load_into(const detail::ArchiveState& state, std::span<const Placement> placements, const LoadOptions& options,
               Report& report) {
  try {
    DirectMove direct(state, options);
    std::vector<const Placement*> others;
    for (const Placement& placement : placements) {
      const TensorEntry& entry = entry_of(state, placement);
      require_loadable(state, entry, {});
      check(entry, placement.to);
      if (is_direct(entry, state.storage_of(entry), placement.to)) {
        direct.add(entry, placement.to);
      } else {
        others.push_back(&placement);
      }
    }
    direct.run(report);
    LoadOptions reading = options;
    reading.map = false;
    reading.device = {};
    for (const Placement* placement : others) {
      const TensorEntry& entry = entry_of(state, *placement);
      if (entry.nbytes() != 0) load_and_copy(state, entry, placement->to, reading, report);
    }
  } catch (const Error& error) {
    throw error.within({state.path()});
  }
}

}  // namespace penstock::format
