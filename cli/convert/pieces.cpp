#include "cli/convert/pieces.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "archive/archive_state.h"
#include "archive/materialise.h"
#include "io/source/composed_source.h"
#include "penstock/ops.h"

namespace penstock::cli {
namespace {

/// How much of a tensor is in memory at once.
constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;

std::int64_t infinities(const Tensor& tensor) {
  const Tensor wide = tensor.dtype() == DType::float64 ? tensor : tensor.to(DType::float32);
  return sum(abs(wide) == std::numeric_limits<double>::infinity()).item<std::int64_t>();
}

void write_pieces(const LazyTensor& tensor, Conversion& conversion, io::ByteSink& sink, const std::stop_token& stop) {
  const TensorEntry& entry = tensor.entry();
  const bool in_pieces = tensor.storage().lies_in_file() && entry.nbytes() > kPieceBytes &&
                         entry.strides == entry.shape.contiguous_strides();
  if (!in_pieces || entry.shape.rank() == 0) {
    const Tensor loaded = conversion(tensor.load({.stop = stop})).contiguous();
    return sink.write({loaded.data(), loaded.nbytes()});
  }
  const std::int64_t rows = entry.shape[0];
  const auto fitting = static_cast<std::int64_t>(kPieceBytes / (entry.nbytes() / static_cast<std::uint64_t>(rows)));
  for (std::int64_t row = 0; row < rows; row += std::max<std::int64_t>(fitting, 1)) {
    const LazyTensor piece = fitting > 0 ? tensor.slice(0, row, std::min(row + fitting, rows)) : tensor.select(0, row);
    write_pieces(piece, conversion, sink, stop);
  }
}

}  // namespace

std::vector<TensorEntry> Conversion::entries(const Archive& archive) const {
  std::vector<TensorEntry> out(archive.entries().begin(), archive.entries().end());
  for (TensorEntry& entry : out) {
    if (changes(entry.dtype)) entry.dtype = *dtype_;
  }
  return out;
}

Tensor Conversion::operator()(const Tensor& tensor) {
  if (!changes(tensor.dtype())) return tensor;
  const Tensor out = tensor.to(*dtype_);
  if (out.dtype().itemsize() <= tensor.dtype().itemsize()) overflows_ += infinities(out) - infinities(tensor);
  return out;
}

bool can_be_mapped(const Archive& archive) {
  if (detail::ArchiveState::of(archive).format->is_folder) return false;
  const auto is_there = [](const Source& source) { return source.descriptor() >= 0 || source.memory(); };
  if (!std::ranges::all_of(archive.sources(), is_there)) return false;
  const auto storages = archive.storages();
  const auto entries = archive.entries();
  return std::all_of(entries.begin(), entries.end(), [&](const TensorEntry& entry) {
    const StorageEntry& storage = storages[entry.storage];
    const bool aligned = (storage.offset + entry.byte_offset) % archive::natural_alignment(entry.dtype) == 0;
    return entry.encoding.is_plain() && aligned;
  });
}

bool is_apart(const Archive& archive) {
  std::vector<bool> used(archive.storages().size());
  return std::ranges::all_of(archive.entries(), [&](const TensorEntry& entry) {
    if (entry.nbytes() == 0) return true;
    if (entry.pickled || used[entry.storage]) return false;
    used[entry.storage] = true;
    return true;
  });
}

void write_tensor(const Archive& archive, std::size_t number, Conversion& conversion, io::ByteSink& sink,
                  const std::stop_token& stop) {
  const LazyTensor tensor = archive.entry(number);
  write_pieces(tensor, conversion, sink, stop);
  if (const io::ComposedSource* const composed = io::as_composed(tensor.source())) return composed->verify(stop);
  const StorageEntry& storage = tensor.storage();
  // A tensor of one piece brings its checksum along; those of a large one are no whole record.
  if (!storage.crc32 || !storage.lies_in_file() || tensor.nbytes() <= kPieceBytes) return;
  Report unused;
  detail::ArchiveState::of(archive).verify(tensor.entry().storage, {.stop = stop}, unused);
}

}  // namespace penstock::cli
