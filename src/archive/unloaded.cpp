// A storage of the file that is written is a unit: a run of elements of the file that is read. In a format whose
// tensors are views of storages, a unit is what the tensors of one storage span, so that they go on sharing it and keep
// their strides. In all other formats it is one tensor.

#include "archive/unloaded.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "archive/archive_state.h"
#include "archive/inspect/elements.h"
#include "archive/materialise.h"
#include "archive/read_way.h"
#include "core/view.h"
#include "io/source/composed_source.h"

namespace penstock::archive {
namespace {

/// How much of a tensor is in memory at once.
constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;

struct Unit {
  TensorEntry entry;
  ElementOrder order = ElementOrder::kC;
};

/// Reads units. One after the other: the memory is used again.
class UnitReader {
 public:
  UnitReader(const Archive& archive, std::vector<Unit> units, ElementChange& change, const std::stop_token& stop)
      : files_(archive), units_(std::move(units)), change_(change), stop_(stop) {}

  void write(std::size_t number, io::ByteSink& sink) {
    const Unit& unit = units_[number];
    if (unit.entry.nbytes() == 0) return;
    const Elements elements(files_, unit.entry, unit.order);
    Elements::Cursor cursor(elements, scratch_);
    elements.prepare();
    const auto most = static_cast<std::int64_t>(kPieceBytes / std::max<std::size_t>(1, elements.dtype().itemsize()));
    for (std::int64_t first = 0; first < elements.count(); first += most) {
      const std::int64_t count = std::min(most, elements.count() - first);
      write_piece(elements.dtype(), cursor.read(first, count), count, sink);
    }
    elements.finish(stop_);
  }

 private:
  void write_piece(const DType& dtype, std::span<const std::byte> bytes, std::int64_t count, io::ByteSink& sink) {
    if (change_.type_of(dtype) == dtype) return sink.write(bytes);
    auto* const memory = const_cast<std::byte*>(bytes.data());  // read-only memory is never written to
    const Buffer buffer = Buffer::wrap(memory, bytes.size(), nobody_, true);
    const Tensor converted = change_(Tensor(buffer, dtype, Shape{count}));
    sink.write({converted.data(), converted.nbytes()});
  }

  ElementFiles files_;
  std::vector<Unit> units_;
  ElementChange& change_;
  std::stop_token stop_;
  Elements::Scratch scratch_;
  std::shared_ptr<const int> nobody_ = std::make_shared<const int>(0);
};

/// What is written, while it comes about.
class Plan {
 public:
  Plan(const Archive& archive, const ElementChange& change) : archive_(archive), change_(change) {}

  std::vector<TensorEntry> entries;
  std::vector<Unit> units;

  /// A unit for each tensor. `keeps_order`: Fortran order can be said.
  void add_tensors(bool keeps_order) {
    for (const TensorEntry& of : archive_.entries()) {
      TensorEntry entry = placed(of, 0);
      const bool fortran = keeps_order && core::is_fortran_order(of.shape, of.strides);
      if (!fortran) entry.strides = entry.shape.contiguous_strides();
      entries.push_back(std::move(entry));
      units.push_back({of, fortran ? ElementOrder::kStored : ElementOrder::kC});
    }
  }

  /// A unit for each storage. False where that cannot be.
  bool add_storages() {
    std::vector<std::vector<std::size_t>> views(archive_.storages().size());
    for (std::size_t i = 0; i < archive_.entries().size(); ++i) {
      const TensorEntry& of = archive_.entries()[i];
      entries.push_back(placed(of, 0));
      if (of.nbytes() > 0) {
        views[of.storage].push_back(i);
        continue;
      }
      entries.back().storage = units.size();
      units.push_back({of});
    }
    return std::ranges::all_of(views, [this](const auto& of_one) { return of_one.empty() || add_storage(of_one); });
  }

 private:
  /// The entry as it is written, so many elements behind the beginning of its unit.
  TensorEntry placed(const TensorEntry& of, std::uint64_t elements) const {
    TensorEntry entry = of;
    entry.dtype = change_.type_of(of.dtype);
    entry.storage = units.size();
    entry.byte_offset = elements * entry.dtype.itemsize();
    entry.encoding = {};
    return entry;
  }

  static std::uint64_t end_of(const TensorEntry& view) {
    return view.byte_offset + core::view_span(view.shape, view.strides, view.dtype.itemsize()).value();
  }

  /// Whether elements of both lie in one run of elements that are changed alike.
  bool go_together(const TensorEntry& a, const TensorEntry& b) const {
    if (a.pickled || b.pickled || !(a.encoding == b.encoding)) return false;
    const auto stays = [&](const DType& dtype) { return change_.type_of(dtype) == dtype; };
    return a.dtype == b.dtype || (!a.encoding.changes_elements() && stays(a.dtype) && stays(b.dtype));
  }

  bool add_storage(const std::vector<std::size_t>& views) {
    const auto source = archive_.entries();
    TensorEntry run = source[views.front()];
    if (run.dtype.itemsize() == 0) return false;
    std::uint64_t begin = run.byte_offset;
    std::uint64_t end = begin;
    std::uint64_t wanted = 0;
    bool mixed = false;
    for (const std::size_t i : views) {
      if (!go_together(run, source[i])) return false;
      mixed |= source[i].dtype != run.dtype;
      begin = std::min(begin, source[i].byte_offset);
      end = std::max(end, end_of(source[i]));
      wanted += source[i].nbytes();
    }
    // Of a large storage that few small views are left of, no more is written than of loaded ones.
    if (end - begin > 2 * wanted) return false;
    for (const std::size_t i : views) {
      const std::size_t itemsize = source[i].dtype.itemsize();
      if ((source[i].byte_offset - begin) % itemsize != 0) return false;
      entries[i] = placed(source[i], (source[i].byte_offset - begin) / itemsize);
    }
    if (mixed) run.dtype = DType::uint8;
    run.byte_offset = begin;
    run.shape = Shape{static_cast<std::int64_t>((end - begin) / run.dtype.itemsize())};
    run.strides = Strides{1};
    units.push_back({std::move(run)});
    return true;
  }

  const Archive& archive_;
  const ElementChange& change_;
};

}  // namespace

bool can_be_mapped(const Archive& archive) {
  if (detail::ArchiveState::of(archive).format->is_folder) return false;
  const auto storages = archive.storages();
  const auto sources = archive.sources();
  return std::ranges::all_of(archive.entries(), [&](const TensorEntry& entry) {
    const StorageEntry& storage = storages[entry.storage];
    const Source& source = sources[storage.source];
    const bool aligned = (storage.offset + entry.byte_offset) % natural_alignment(entry.dtype) == 0;
    return aligned && io::as_composed(source) == nullptr && why_unmappable(entry, storage, source).empty();
  });
}

bool is_reordered(const Archive& archive, const format::Format& target) {
  if (target.has_storages) return false;
  return std::ranges::any_of(archive.entries(), [&](const TensorEntry& entry) {
    return !core::is_c_order(entry.shape, entry.strides) &&
           !(target.keeps_order && core::is_fortran_order(entry.shape, entry.strides));
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

std::optional<format::Unloaded> unloaded(const Archive& archive, const format::Format& target, ElementChange& change,
                                         const std::stop_token& stop) {
  if (!target.is_folder && target.write_unloaded == nullptr) return std::nullopt;
  if (std::ranges::any_of(archive.entries(), [](const TensorEntry& entry) { return entry.pickled; }))
    return std::nullopt;
  Plan plan(archive, change);
  if (target.has_storages) {
    if (!plan.add_storages()) return std::nullopt;
  } else {
    // Tensors of a checkpoint and arrays are apart, whether they share bytes in the file or not.
    const bool apart = target.is_folder || target.keeps_order;
    if (!apart && !is_apart(archive)) return std::nullopt;
    plan.add_tensors(target.keeps_order);
  }
  format::Unloaded out{.structure = archive.structure(), .entries = std::move(plan.entries)};
  for (const Unit& unit : plan.units) {
    const std::uint64_t itemsize = change.type_of(unit.entry.dtype).itemsize();
    out.storage_bytes.push_back(static_cast<std::uint64_t>(unit.entry.shape.numel()) * itemsize);
  }
  const auto reader = std::make_shared<UnitReader>(archive, std::move(plan.units), change, stop);
  out.payload = [reader](std::size_t unit, io::ByteSink& sink) { reader->write(unit, sink); };
  return out;
}

}  // namespace penstock::archive
