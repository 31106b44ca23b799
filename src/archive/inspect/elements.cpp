// Pieces of tensors. Elements that lie in the file as they are asked for are read by themselves, past the page cache
// where they are not in it. A deflated tensor is inflated from front to back. All others, which are few (other byte
// order, views with holes, Fortran order where C order is wanted), are loaded as slices are.

#include "archive/inspect/elements.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "archive/load_tensors.h"
#include "archive/materialise.h"
#include "archive/unchanged.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/view.h"
#include "format/zip/inflate.h"
#include "io/copy/crc32.h"
#include "io/read/read_costs.h"
#include "io/read/residency.h"
#include "io/source/composed_source.h"
#include "ops/kernels.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

// Smaller files are read sooner than asked about.
constexpr std::uint64_t kMinAsked = std::uint64_t{4} << 20;
// With a larger share than this in the cache, fetching the rest through the cache is faster (io/move/routes.cpp).
constexpr double kMaxCached = 0.25;
// A tensor may repeat a few bytes without end.
constexpr std::int64_t kMostRepeated = std::int64_t{1} << 30;

const LoadOptions kAlone{.threads = 1};

/// An array of Python objects as the bytes that stand for it.
TensorEntry bytes_of_objects(TensorEntry entry, const StorageEntry& storage) {
  entry.pickled = false;
  entry.encoding.swapped = false;
  entry.shape = {static_cast<std::int64_t>(storage.nbytes - std::min(storage.nbytes, entry.byte_offset))};
  entry.strides = {1};
  entry.dtype = DType::uint8;
  return entry;
}

/// Dimensions in the order of their strides, largest first, if the elements then lie one behind the other.
TensorEntry in_stored_order(const TensorEntry& entry) {
  std::vector<std::size_t> order(entry.shape.rank());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return entry.strides[a] > entry.strides[b]; });
  TensorEntry out = entry;
  for (std::size_t d = 0; d < order.size(); ++d) {
    out.shape[d] = entry.shape[order[d]];
    out.strides[d] = entry.strides[order[d]];
  }
  return core::is_c_order(out.shape, out.strides) ? out : entry;
}

void require_modest(const TensorEntry& view, const StorageEntry& storage) {
  if (view.shape.numel() <= kMostRepeated || view.nbytes() <= storage.nbytes) return;
  throw Error(ErrorCode::kLimit,
              core::format("the tensor repeats {} as {}", core::counted(storage.nbytes, "byte"),
                           core::counted(static_cast<std::uint64_t>(view.shape.numel()), "element")));
}

}  // namespace

ElementFiles::ElementFiles(const Archive& archive) : archive_(archive), direct_(archive.sources().size()) {
  for (std::size_t i = 0; i < direct_.size(); ++i) {
    const Source& source = archive_.sources()[i];
    if (source.size() < kMinAsked || source.descriptor() < 0) continue;
    std::string ignored;
    if (io::cached_share(*source, 0, source.size()).value_or(1) <= kMaxCached) {
      direct_[i] = io::DirectFile::open(*source, ignored);
    }
  }
}

void ElementFiles::require_unchanged() const {
  for (const Source& source : archive_.sources()) archive::require_unchanged(*source);
}

Elements::Elements(const ElementFiles& files, std::size_t entry, ElementOrder order)
    : Elements(files, files.state().index.entries[entry], order) {}

Elements::Elements(const ElementFiles& files, TensorEntry entry, ElementOrder order)
    : files_(files), view_(std::move(entry)) {
  const detail::ArchiveState& state = files.state();
  const StorageEntry& storage = state.storage_of(view_);
  if (view_.pickled) view_ = bytes_of_objects(view_, storage);
  if (order == ElementOrder::kStored) view_ = in_stored_order(view_);
  count_ = view_.nbytes() == 0 ? 0 : view_.shape.numel();
  try {
    require_modest(view_, storage);
  } catch (const Error& error) {
    throw error.within({state.source_of(view_).name(), {}, view_.name});
  }
  way_ = way_of(storage, stretch_of(view_), {}).way;
  const bool is_ordered = core::is_c_order(view_.shape, view_.strides) && !view_.encoding.has_math_bits();
  is_scattered_ = way_ != Way::kNothing && !(is_ordered && (way_ == Way::kInflate || !view_.encoding.swapped));
  direct_ = files.direct(storage.source);
  costs_ = io::costs_of(*state.source_of(view_));
}

void Elements::prepare() const {
  const detail::ArchiveState& state = files_.state();
  // A stream has a check of its own.
  if (way_ == Way::kNothing || state.storage_of(view_).is_deflated()) return;
  Report ignored;
  const bool as_stored = !is_scattered_ && way_ == Way::kRun;
  check_ = check_of_run(state, view_, stretch_of(view_), as_stored, Extent::kWhole, kAlone, ignored);
}

void Elements::check_part(std::int64_t first, std::span<const std::byte> bytes) const {
  if (!check_.wanted()) return;
  const std::uint32_t crc = io::crc32(0, bytes);
  const std::lock_guard lock(mutex_);
  check_.add_part({static_cast<std::uint64_t>(first) * view_.dtype.itemsize(), bytes.size(), crc});
}

void Elements::finish(std::stop_token stop) const {
  if (check_.wanted()) check_.finish();
  const io::ComposedSource* const composed = io::as_composed(files_.state().source_of(view_));
  if (composed != nullptr && way_ != Way::kNothing) composed->verify(std::move(stop));
}

Elements::Cursor::Cursor(const Elements& elements, Scratch& scratch) : elements_(elements), scratch_(scratch) {}
Elements::Cursor::~Cursor() = default;

std::span<std::byte> Elements::Cursor::room(std::size_t bytes) {
  if (scratch_.memory.size() < bytes) scratch_.memory = Buffer::allocate(bytes);
  return {scratch_.memory.data(), bytes};
}

std::span<const std::byte> Elements::Cursor::read(std::int64_t first, std::int64_t count) {
  const detail::ArchiveState& state = elements_.files_.state();
  const TensorEntry& view = elements_.view_;
  const std::size_t itemsize = view.dtype.itemsize();
  const std::size_t bytes = static_cast<std::size_t>(count) * itemsize;
  try {
    if (elements_.is_scattered_) return read_view(first, count);
    switch (elements_.way_) {
      case Way::kMemory:
        return {state.storage_of(view).resident.data() + view.byte_offset + static_cast<std::size_t>(first) * itemsize,
                bytes};
      case Way::kRun:
        read_run(first, room(bytes));
        break;
      case Way::kInflate:
        read_stream(first, room(bytes));
        break;
      default:
        return {};
    }
  } catch (const Error& error) {
    throw error_of_change(error.within({state.source_of(view).name(), {}, view.name}), state.index.sources);
  }
  return {scratch_.memory.data(), bytes};
}

void Elements::Cursor::read_run(std::int64_t first, std::span<std::byte> into) {
  const detail::ArchiveState& state = elements_.files_.state();
  const TensorEntry& view = elements_.view_;
  const std::uint64_t offset =
      state.storage_of(view).offset + view.byte_offset + static_cast<std::uint64_t>(first) * view.dtype.itemsize();
  if (elements_.direct_ != nullptr) {
    const io::Scatter part{into.data(), into.size()};
    elements_.direct_->read(offset, {&part, 1}, scratch_.direct);
  } else {
    state.source_of(view).read(offset, into);
  }
  elements_.check_part(first, into);
}

/// What lies in front of the tensor, and behind it, is inflated too, for the record's checksum and size.
void Elements::Cursor::read_stream(std::int64_t first, std::span<std::byte> into) {
  const detail::ArchiveState& state = elements_.files_.state();
  const TensorEntry& view = elements_.view_;
  const StorageEntry& storage = state.storage_of(view);
  const auto pass = [&](std::uint64_t bytes) {
    std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 64 * 1024)));
    for (; bytes > 0; bytes -= std::min<std::uint64_t>(bytes, piece.size())) {
      const auto part = std::span(piece).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece.size())));
      stream_->fill(part, storage.nbytes);
      stream_check_.add(part);
    }
  };
  if (first == 0) {
    stream_ = std::make_unique<format::InflateStream>(*state.source_of(view), storage.offset, storage.stored_bytes,
                                                      storage.name);
    stream_check_ = state.check_of(storage, kAlone);
    pass(view.byte_offset);
    next_ = 0;
  }
  if (first != next_) throw Error(ErrorCode::kInvalidArgument, "a deflated tensor is read from front to back");
  stream_->fill(into, storage.nbytes);
  stream_check_.add(into);
  if (view.encoding.swapped) ops::swap_bytes(into, view.dtype.swap_width());
  next_ += static_cast<std::int64_t>(into.size() / view.dtype.itemsize());
  if (next_ != elements_.count_) return;
  pass(storage.nbytes - view.byte_offset - view.nbytes());
  stream_->require_end(storage.nbytes);
  if (stream_check_.wanted()) stream_check_.finish();
}

std::span<const std::byte> Elements::Cursor::read_view(std::int64_t first, std::int64_t count) {
  const detail::ArchiveState& state = elements_.files_.state();
  const TensorEntry& view = elements_.view_;
  const std::size_t itemsize = view.dtype.itemsize();
  if (view.encoding.deflated) {
    Report ignored;
    if (!whole_.defined()) whole_ = load_view(state, view, kAlone, ignored).contiguous();
    return {whole_.data() + static_cast<std::size_t>(first) * itemsize, static_cast<std::size_t>(count) * itemsize};
  }
  const std::span<std::byte> into = room(static_cast<std::size_t>(count) * itemsize);
  std::byte* to = into.data();
  gather(view, first, count, to);
  return into;
}

/// Elements of a view by their numbers in C order: the end of a row, whole rows, the beginning of one.
void Elements::Cursor::gather(const TensorEntry& view, std::int64_t first, std::int64_t count, std::byte*& to) const {
  const auto load = [&](const TensorEntry& part) {
    Report ignored;
    const Tensor loaded = load_view(elements_.files_.state(), part, kAlone, ignored, Extent::kSlice).contiguous();
    std::memcpy(to, loaded.data(), loaded.nbytes());
    to += loaded.nbytes();
  };
  if (view.shape.rank() == 0) return load(view);
  const std::int64_t inner = view.shape.numel() / view.shape[0];
  const auto in_row = [&](std::int64_t row, std::int64_t from, std::int64_t elements) {
    TensorEntry part = view;
    part.byte_offset +=
        static_cast<std::uint64_t>(core::select_view(part.shape, part.strides, 0, row)) * part.dtype.itemsize();
    gather(part, from, elements, to);
  };
  if (const std::int64_t from = first % inner; from != 0 || count < inner) {
    const std::int64_t elements = std::min(inner - from, count);
    in_row(first / inner, from, elements);
    first += elements;
    count -= elements;
  }
  if (const std::int64_t rows = count / inner; rows > 0) {
    TensorEntry part = view;
    const std::int64_t row = first / inner;
    part.byte_offset += static_cast<std::uint64_t>(core::slice_view(part.shape, part.strides, 0, row, row + rows, 1)) *
                        part.dtype.itemsize();
    load(part);
    first += rows * inner;
    count -= rows * inner;
  }
  if (count > 0) in_row(first / inner, 0, count);
}

}  // namespace penstock::archive
