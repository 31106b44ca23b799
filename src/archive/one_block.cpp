// The block is laid out first, so that it is allocated once and at its size. Then everything goes to its place by
// load_into: storages as they are, and behind them each value that no storage holds.

#include "archive/one_block.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "archive/block_layout.h"
#include "archive/load_converted.h"
#include "archive/load_into.h"
#include "archive/load_tensors.h"
#include "archive/materialise.h"
#include "archive/whole_storages.h"
#include "core/checked.h"
#include "core/format.h"
#include "core/round.h"
#include "core/view.h"
#include "io/file/memory_file.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

std::string_view asked_for(const LoadOptions& options) noexcept { return options.shared ? "shared" : "pinned"; }

Buffer host_block(std::uint64_t bytes, const LoadOptions& options) {
  const auto size = static_cast<std::size_t>(std::max<std::uint64_t>(bytes, 1));
  if (!options.shared) return Buffer::allocate_pinned(size);
  const Buffer memory = io::allocate_shared(size);
  return options.pinned ? io::page_locked(memory) : memory;
}

/// A tensor whose values have a place of their own.
struct OwnPlace {
  TensorEntry elements;  ///< of the view, each of them once
  DType dtype;           ///< in memory
  Strides strides;       ///< of the view, in memory
  std::uint64_t offset = 0;

  /// Where `keeps_order`, elements that lie together stay as they lie. All others become contiguous.
  OwnPlace(const TensorEntry& view, const DType& wanted, bool keeps_order)
      : elements(view), dtype(wanted), strides(view.strides) {
    elements.shape = once(view.shape, view.strides);
    const std::optional<std::int64_t> extent = core::view_extent(elements.shape, view.strides);
    if (keeps_order && extent && *extent <= elements.shape.numel()) {
      elements.shape = Shape{*extent};
      elements.strides = Strides{1};
      return;
    }
    strides = repeating(elements.shape.contiguous_strides(), view.strides);
  }

  std::uint64_t bytes() const {
    return core::checked_mul(static_cast<std::uint64_t>(elements.shape.numel()),
                             static_cast<std::uint64_t>(dtype.itemsize()), "the size of a tensor");
  }
  Tensor target(const Buffer& block) const {
    return {block, dtype, elements.shape, elements.shape.contiguous_strides(), static_cast<std::size_t>(offset)};
  }
};

class OneBlockLoad {
 public:
  OneBlockLoad(const detail::ArchiveState& state, const LoadOptions& options, Report& report)
      : state_(state), options_(options), report_(report), storages_(state.index.storages.size()) {}

  std::vector<Tensor> tensors(std::span<const TensorEntry> wanted) {
    std::vector<bool> used(storages_.size());
    for (const TensorEntry& entry : wanted) {
      if (entry.nbytes() != 0 && !is_apart(entry)) used[entry.storage] = true;
    }
    OneBlock layout = lay_out_in_one(state_.index, used);
    std::vector<std::optional<std::size_t>> own(wanted.size());
    std::map<std::pair<std::size_t, std::uint64_t>, std::vector<std::size_t>>
        known;  // different views by where they lie
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const TensorEntry& entry = wanted[i];
      if (entry.nbytes() == 0 || !is_apart(entry)) continue;
      // Looking at more than the last few would take long where a place has very many.
      constexpr std::size_t kLookedAt = 64;
      std::vector<std::size_t>& here = known[{entry.storage, entry.byte_offset}];
      const auto last = here.rbegin() + static_cast<std::ptrdiff_t>(std::min(here.size(), kLookedAt));
      const auto same = std::find_if(here.rbegin(), last, [&](std::size_t k) { return same_view(entry, wanted[k]); });
      if (same != last) {
        own[i] = own[*same];
        continue;
      }
      here.push_back(i);
      own[i] = add_place(layout, entry, !is_copied(entry));
    }
    read(layout, Extent::kWhole);
    std::vector<Tensor> out;
    out.reserve(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) out.push_back(tensor(wanted[i], own[i]));
    return out;
  }

  Tensor view(const TensorEntry& wanted, Extent extent) {
    OneBlock layout;
    std::optional<std::size_t> own;
    if (wanted.nbytes() != 0) own = add_place(layout, wanted, true);
    read(layout, extent);
    return tensor(wanted, own);
  }

 private:
  DType type_of(const TensorEntry& entry) const {
    return is_converted(entry.dtype, options_) ? *options_.dtype : entry.dtype;
  }

  /// Whether other loads give it a copy: its storage has other values, or does not align it.
  static bool is_copied(const TensorEntry& entry) {
    return entry.encoding.has_math_bits() || entry.byte_offset % natural_alignment(entry.dtype) != 0;
  }
  bool is_apart(const TensorEntry& entry) const { return is_copied(entry) || is_converted(entry.dtype, options_); }

  std::size_t add_place(OneBlock& layout, const TensorEntry& entry, bool keeps_order) {
    OwnPlace& place = places_.emplace_back(entry, type_of(entry), keeps_order);
    place.offset = layout.add(place.bytes());
    return places_.size() - 1;
  }

  void read(const OneBlock& layout, Extent extent) {
    block_ = host_block(layout.bytes, options_);
    for (const auto& [storage, offset, bytes] : layout.places) {
      storages_[storage] = block_.part(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
    }
    const std::vector<TensorEntry> whole =
        layout.places.empty() ? std::vector<TensorEntry>{} : whole_storages(state_.index);
    std::vector<Destination> destinations;
    for (const TensorEntry& entry : whole) {
      const Buffer& bytes = storages_[entry.storage];
      if (bytes) destinations.push_back({&entry, Tensor(bytes, entry.dtype, entry.shape, entry.strides)});
    }
    for (const OwnPlace& place : places_) destinations.push_back({&place.elements, place.target(block_), extent});
    load_into(state_, destinations, options_, report_);
  }

  Tensor tensor(const TensorEntry& entry, std::optional<std::size_t> own) const {
    const auto there = [&]() -> Tensor {
      if (own) {
        const OwnPlace& place = places_[*own];
        return {block_, place.dtype, entry.shape, place.strides, static_cast<std::size_t>(place.offset)};
      }
      if (entry.nbytes() == 0) return Tensor::empty(entry.shape, type_of(entry));
      const auto offset = static_cast<std::size_t>(entry.byte_offset);
      return {storages_[entry.storage], entry.dtype, entry.shape, entry.strides, offset};
    };
    return there().with_requires_grad(entry.requires_grad);
  }

  const detail::ArchiveState& state_;
  const LoadOptions& options_;
  Report& report_;
  std::vector<OwnPlace> places_;
  Buffer block_;
  std::vector<Buffer> storages_;  ///< parts of the block, by number; without memory where a storage is not read
};

}  // namespace

std::uint64_t OneBlock::add(std::uint64_t more) {
  const std::uint64_t begin = core::round_up(bytes, kStorageAlignment);
  bytes = core::checked_add(begin, more, "the size of what is loaded");
  return begin;
}

OneBlock lay_out_in_one(const format::Index& index, const std::vector<bool>& wanted) {
  std::vector<BlockItem> items;
  OneBlock out;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const StorageEntry& storage = index.storages[i];
    items.push_back({storage.source, storage.offset, storage.nbytes, storage.lies_in_file()});
    out.places.push_back({i, 0, storage.nbytes});
  }
  const BlockLayout layout = lay_out(items, Blocks::kOne);
  for (std::size_t i = 0; i < items.size(); ++i) out.places[i].offset = layout.places[i].offset;
  std::ranges::sort(out.places, {}, &OneBlock::Place::offset);
  out.bytes = layout.blocks.empty() ? 0 : layout.blocks.front();
  return out;
}

bool wants_one_block(const LoadOptions& options) noexcept { return options.shared || options.pinned; }

void require_host_block(const LoadOptions& options) {
  if (!wants_one_block(options)) return;
  const auto require_without = [&options](bool given, std::string_view name) {
    if (!given) return;
    const std::string_view asked = asked_for(options);
    throw Error(
        ErrorCode::kUnsupported,
        core::format("{} reads a file into memory of the host: leave out one of {} and {}", asked, asked, name));
  };
  require_without(options.device != Device{}, "device");
  require_without(options.mmap.value_or(false), "mmap");
  require_without(options.gds.value_or(false), "gds");
}

void require_no_memory(const LoadOptions& options) {
  const std::string_view given = options.mmap.value_or(false) ? "mmap"
                                 : wants_one_block(options)   ? asked_for(options)
                                 : options.device != Device{} ? "device"
                                                              : "";
  if (given.empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("found {} for a load into memory that is given; leave it out", given));
}

std::vector<Tensor> load_in_one_block(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                      const LoadOptions& options, Report& report) {
  for (const TensorEntry& entry : wanted) require_loadable(state, entry, options);
  return OneBlockLoad(state, options, report).tensors(wanted);
}

Tensor load_view_in_block(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options,
                          Report& report, Extent extent) {
  require_loadable(state, view, options);
  return OneBlockLoad(state, options, report).view(view, extent);
}

}  // namespace penstock::archive
