// Loads whose tensors become another type on the way. What is read at once is bounded, so that the file's own elements
// never lie in memory beside all of the result. Storages are read some at a time, and given back when the tensors in
// them are converted. The tensors of a storage that is larger than that are read one by one and in pieces, as far as
// these can be read alone.

#include "archive/load_converted.h"

#include <algorithm>
#include <utility>

#include "archive/materialise.h"
#include "core/format.h"
#include "core/module_dtype.h"
#include "core/stopwatch.h"
#include "core/view.h"
#include "ops/kernels.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

/// How much of the file is in memory at once.
constexpr std::uint64_t kPartBytes = std::uint64_t{64} << 20;
/// Tensors that are smaller on the average are not worth a read each.
constexpr std::uint64_t kWorthARead = std::uint64_t{64} << 10;

void add(Report& total, Report part) {
  if (part.read_bytes >= total.read_bytes || total.route.empty()) {
    total.route = std::move(part.route);
    total.why = std::move(part.why);
  }
  if (part.depth > total.depth) {
    total.depth = part.depth;
    total.depth_limit = part.depth_limit;
  }
  total.payload_bytes += part.payload_bytes;
  total.read_bytes += part.read_bytes;
  total.read_seconds += part.read_seconds;
  total.decode_seconds += part.decode_seconds;
}

/// Where the elements of a view are, without the dimensions in which it does not move: all from the first to the last
/// one where they lie close together, which keeps its strides.
Tensor elements_of(const Tensor& view) {
  const Shape sizes = once(view.shape(), view.strides());
  const std::int64_t extent = *core::view_extent(sizes, view.strides());
  if (extent > sizes.numel()) return {view.buffer(), view.dtype(), sizes, view.strides(), view.byte_offset()};
  return {view.buffer(), view.dtype(), Shape{extent}, Strides{1}, view.byte_offset()};
}

Tensor converted(const Tensor& view, const LoadOptions& options, Report& report) {
  const core::Stopwatch watch;
  if (view.numel() == 0) return Tensor::empty(view.shape(), *options.dtype);
  const Tensor from = elements_of(view);
  const Tensor to = Tensor::empty(from.shape(), *options.dtype);
  ops::cast(from, to, options.strict);
  report.decode_seconds += watch.total();
  const bool is_run = from.rank() == 1 && from.is_contiguous();
  return {to.buffer(), to.dtype(), view.shape(), is_run ? view.strides() : repeating(to.strides(), view.strides())};
}

/// Whether a piece of the view can be read without the rest of it.
bool can_be_pieces(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options) {
  const ReadWay to = way_of(state.storage_of(view), stretch_of(view), aim_at(state, {}, options));
  return to.way == Way::kRun && core::is_c_order(view.shape, view.strides);
}

/// Reads a view piece by piece. Its checksum is made of the pieces, where they are the bytes that it is of.
class PieceLoad {
 public:
  PieceLoad(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options, Report& report)
      : state_(state), view_(view), options_(options), report_(report) {}

  void run(const Tensor& to, Extent extent) {
    io::RecordCheck check;
    if (extent == Extent::kWhole) {
      check = check_of_run(state_, view_, stretch_of(view_), lies_as_values(view_), extent, options_, report_);
    }
    const Tensor flat(to.buffer(), to.dtype(), Shape{to.numel()}, Strides{1}, to.byte_offset());
    const auto step = static_cast<std::int64_t>(kPartBytes / view_.dtype.itemsize());
    for (std::int64_t at = 0; at < flat.numel(); at += step) {
      const std::int64_t end = std::min(at + step, flat.numel());
      const Tensor piece = read(at, end);
      if (check.wanted()) check.add({piece.data(), piece.nbytes()});
      core::Stopwatch watch;
      ops::cast(piece, flat.slice(0, at, end), options_.strict);
      report_.decode_seconds += watch.lap();
    }
    if (check.wanted()) check.finish();
  }

 private:
  Tensor read(std::int64_t begin, std::int64_t end) {
    TensorEntry piece = view_;
    piece.shape = Shape{end - begin};
    piece.strides = Strides{1};
    piece.byte_offset += static_cast<std::uint64_t>(begin) * view_.dtype.itemsize();
    Report report;
    Tensor out = load_view(state_, piece, aim_at(state_, {}, options_), options_, report, Extent::kSlice);
    add(report_, std::move(report));
    return out;
  }

  const detail::ArchiveState& state_;
  const TensorEntry& view_;
  const LoadOptions& options_;
  Report& report_;
};

/// The tensor that `make` gives, where it belongs. Errors name it.
Tensor finished(const detail::ArchiveState& state, const TensorEntry& entry, const LoadOptions& options,
                const auto& make) {
  try {
    return make().to(options.device).with_requires_grad(entry.requires_grad);
  } catch (const Error& error) {
    throw error.within({state.source_of(entry).name(), {}, entry.name});
  }
}

Tensor load_pieces(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options,
                   Report& report, Extent extent) {
  return finished(state, view, options, [&] {
    const Tensor out = Tensor::empty(view.shape, *options.dtype);
    PieceLoad(state, view, options, report).run(out, extent);
    return out;
  });
}

class ConvertedLoad {
 public:
  ConvertedLoad(const detail::ArchiveState& state, std::span<const TensorEntry> wanted, const LoadOptions& options,
                Report& report, Resident resident)
      : state_(state), wanted_(wanted), options_(options), report_(report), resident_(resident), out_(wanted.size()) {}

  std::vector<Tensor> run() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      if (wanted_[i].nbytes() == 0) {
        out_[i] = empty(wanted_[i]);
      } else {
        order.push_back(i);
      }
    }
    std::ranges::stable_sort(order, {},
                             [this](std::size_t i) { return std::pair(wanted_[i].storage, wanted_[i].byte_offset); });
    const auto converts = [this](std::size_t i) { return is_converted(wanted_[i].dtype, options_); };
    std::vector<std::size_t> as_they_are;
    EntryGroup part;
    for (auto first = order.begin(); first != order.end();) {
      const std::size_t storage = wanted_[*first].storage;
      const auto last = std::find_if(first, order.end(), [&](std::size_t i) { return wanted_[i].storage != storage; });
      // In host memory all tensors of a storage share what is read of it. On another device those that keep their type
      // share it there, and the others are converted before they get there.
      const bool is_read_once = options_.device == Device{} && std::any_of(first, last, converts);
      const auto kept = is_read_once ? last : std::stable_partition(first, last, converts);
      as_they_are.insert(as_they_are.end(), kept, last);
      if (const std::span<const std::size_t> group(first, kept); are_pieces(group)) {
        load_each(group);
      } else if (!group.empty()) {
        add_to(part, group);
      }
      first = last;
    }
    flush(part);
    load_unchanged(as_they_are);
    return std::move(out_);
  }

 private:
  /// Entries whose storages are read together.
  struct EntryGroup {
    std::vector<std::size_t> positions;
    std::uint64_t bytes = 0;
  };

  Tensor empty(const TensorEntry& entry) const {
    const DType& dtype = is_converted(entry.dtype, options_) ? *options_.dtype : entry.dtype;
    return Tensor::empty(entry.shape, dtype, options_.device).with_requires_grad(entry.requires_grad);
  }

  /// Whether the tensors of a large storage are read alone, in pieces: each has bytes of its own, or is the one before.
  bool are_pieces(std::span<const std::size_t> group) const {
    if (group.empty()) return false;
    const std::uint64_t bytes = state_.storage_of(wanted_[group.front()]).nbytes;
    if (bytes <= kPartBytes || group.size() > bytes / kWorthARead) return false;
    std::uint64_t end = 0;
    for (std::size_t k = 0; k < group.size(); ++k) {
      const TensorEntry& entry = wanted_[group[k]];
      if (is_repeated(group, k)) continue;
      if (!is_converted(entry.dtype, options_) || !can_be_pieces(state_, entry, options_)) return false;
      if (entry.byte_offset < end) return false;
      end = entry.byte_offset + entry.nbytes();
    }
    return true;
  }

  bool is_repeated(std::span<const std::size_t> group, std::size_t k) const {
    return k > 0 && same_view(wanted_[group[k]], wanted_[group[k - 1]]);
  }

  void load_each(std::span<const std::size_t> group) {
    for (std::size_t k = 0; k < group.size(); ++k) {
      Tensor& out = out_[group[k]];
      out = is_repeated(group, k) ? out_[group[k - 1]]
                                  : load_pieces(state_, wanted_[group[k]], options_, report_, Extent::kWhole);
    }
  }

  void add_to(EntryGroup& part, std::span<const std::size_t> group) {
    const std::uint64_t bytes = state_.storage_of(wanted_[group.front()]).nbytes;
    if (part.bytes + bytes > kPartBytes) flush(part);
    part.positions.insert(part.positions.end(), group.begin(), group.end());
    part.bytes += bytes;
    if (part.bytes > kPartBytes) flush(part);
  }

  std::vector<Tensor> load(std::span<const std::size_t> positions, const Aim& aim) {
    std::vector<TensorEntry> entries;
    entries.reserve(positions.size());
    for (const std::size_t i : positions) entries.push_back(wanted_[i]);
    Report report;
    std::vector<Tensor> loaded = load_tensors(state_, entries, aim, options_, report, resident_);
    add(report_, std::move(report));
    return loaded;
  }

  void flush(EntryGroup& part) {
    if (part.positions.empty()) return;
    const std::vector<Tensor> loaded = load(part.positions, aim_at(state_, {}, options_));
    for (std::size_t k = 0; k < loaded.size(); ++k) out_[part.positions[k]] = result(part.positions, k, loaded[k]);
    part = {};
  }

  Tensor result(std::span<const std::size_t> positions, std::size_t k, const Tensor& loaded) {
    const TensorEntry& entry = wanted_[positions[k]];
    if (!is_converted(entry.dtype, options_)) return loaded;
    // Entries of one storage are neighbours. Looking back at more than the last few would take long where a storage
    // has very many.
    constexpr std::size_t kLookedAt = 64;
    for (std::size_t back = 1; back <= std::min(k, kLookedAt); ++back) {
      const TensorEntry& other = wanted_[positions[k - back]];
      if (other.storage != entry.storage) break;
      if (same_view(entry, other)) return out_[positions[k - back]];
    }
    return finished(state_, entry, options_, [&] { return converted(loaded, options_, report_); });
  }

  void load_unchanged(std::span<const std::size_t> positions) {
    if (positions.empty()) return;
    std::vector<Tensor> loaded = load(positions, aim_of(state_, options_));
    for (std::size_t k = 0; k < loaded.size(); ++k) out_[positions[k]] = std::move(loaded[k]);
  }

  const detail::ArchiveState& state_;
  std::span<const TensorEntry> wanted_;
  const LoadOptions& options_;
  Report& report_;
  Resident resident_;
  std::vector<Tensor> out_;
};

}  // namespace

bool is_converted(const DType& stored, const LoadOptions& options) {
  return options.dtype && core::follows_dtype(stored) && stored != *options.dtype;
}

void require_convertible(const LoadOptions& options) {
  if (!options.dtype) return;
  const DType& dtype = *options.dtype;
  core::require_module_dtype(dtype, "of a load", "and convert others with Tensor::to");
  if (options.mmap.value_or(false)) {
    throw Error(ErrorCode::kUnsupported,
                core::format("a mapped file has the types it was written with, and not {}: leave out one of mmap and "
                             "dtype",
                             dtype.name()));
  }
}

void require_no_dtype(const LoadOptions& options) {
  if (!options.dtype) return;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("found {} as the type of a load into memory whose type is given; leave out dtype",
                           options.dtype->name()));
}

bool same_view(const TensorEntry& a, const TensorEntry& b) {
  return a.byte_offset == b.byte_offset && a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides &&
         a.encoding == b.encoding && a.requires_grad == b.requires_grad;
}

bool convert_in_pieces(const detail::ArchiveState& state, const TensorEntry& view, const Tensor& to,
                       const LoadOptions& options, Report& report, Extent extent) {
  if (view.nbytes() <= kPartBytes || !can_be_pieces(state, view, options)) return false;
  try {
    PieceLoad(state, view, options, report).run(to, extent);
  } catch (const Error& error) {
    throw error.within({state.source_of(view).name(), {}, view.name});
  }
  return true;
}

std::vector<Tensor> load_converted(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                   const LoadOptions& options, Report& report, Resident resident) {
  for (const TensorEntry& entry : wanted) require_loadable(state, entry, options);
  return ConvertedLoad(state, wanted, options, report, resident).run();
}

Tensor load_view_converted(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options,
                           Report& report, Extent extent) {
  require_loadable(state, view, options);
  if (!is_converted(view.dtype, options)) return load_view(state, view, options, report, extent);
  if (view.nbytes() > kPartBytes && can_be_pieces(state, view, options))
    return load_pieces(state, view, options, report, extent);
  const Tensor loaded = load_view(state, view, aim_at(state, {}, options), options, report, extent);
  return finished(state, view, options, [&] { return converted(loaded, options, report); });
}

}  // namespace penstock::archive
