// A load is a list of units, each with its way. They are brought in this order, which lets one move of the engine read
// as much as possible:
//
//   map      views of the mapped file; units that it does not align get another way
//   memory   copied, or handed out
//   move     runs to their place, swapped there by a step; compressed records to a buffer of their own, from which a
//            step inflates them
//   ring     for a device: inflated or swapped in the pinned ring (ring_decode.h)
//   parts    elements that lie apart
//
// The CRC of a record is computed while its bytes come. Where they do not all come, the record of a whole tensor is
// read apart, before the move.

#include "archive/read_units.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "archive/block_layout.h"
#include "archive/map_view.h"
#include "archive/materialise.h"
#include "archive/ring_decode.h"
#include "core/format.h"
#include "core/stop_scope.h"
#include "device/backend.h"
#include "format/zip/inflate.h"
#include "io/move/device_writes.h"
#include "io/move/engine.h"
#include "io/move/strided_read.h"
#include "ops/kernels.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

/// How many compressed bytes are in memory at once. A single member may have more.
constexpr std::uint64_t kMaxCompressed = std::uint64_t{256} << 20;

bool is_aligned(const Buffer& bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % kStorageAlignment == 0;
}

/// Where the CRC of a record is computed.
enum class CrcWay : std::uint8_t {
  kNone,
  kOnTheWay,  ///< while its bytes come; a header in front of them is read apart
  kApart,     ///< the record is read for it
};

CrcWay crc_way(const detail::ArchiveState& state, const TensorEntry& view, const Stretch& wanted, bool as_stored,
               Extent extent, const LoadOptions& options) {
  const StorageEntry& storage = state.storage_of(view);
  if (!state.check_of(storage, options).wanted()) return CrcWay::kNone;
  const bool is_all = wanted.begin == 0 && wanted.span == storage.nbytes;
  if (as_stored && (is_all || brings_record(storage, wanted, io::costs_of(*state.source_of(view))))) {
    return CrcWay::kOnTheWay;
  }
  return extent == Extent::kWhole ? CrcWay::kApart : CrcWay::kNone;
}

class UnitReads {
 public:
  UnitReads(const detail::ArchiveState& state, std::span<ReadUnit> units, const LoadOptions& options, Report& report,
            Resident resident)
      : state_(state), units_(units), options_(options), report_(report), hand_out_(resident == Resident::kHandedOut) {}

  void run() {
    const std::uint64_t payload_before = report_.payload_bytes;
    map_views();
    allocate();
    copy_memory();
    if (!runs_.empty() || !parts_.empty()) read_for_crcs();
    if (!runs_.empty() || !inflated_.empty()) move();
    decode_on_the_way();
    for (ReadUnit* const unit : parts_) read_parts(*unit);
    if (mapped_ + unmapped_ > 0) report_mapped(mapped_, unmapped_, report_);
    // What the engine counted of compressed records is what they take in the file.
    report_.payload_bytes = payload_before + payload_;
    if (report_.route.empty()) report_.route = "memory";
  }

 private:
  const StorageEntry& storage_of(const ReadUnit& unit) const { return state_.storage_of(*unit.entry); }
  std::uint64_t bytes_of(const ReadUnit& unit) const { return unit.bytes_of(storage_of(unit)); }
  std::uint64_t offset_of(const ReadUnit& unit) const { return storage_of(unit).offset + unit.begin(); }
  io::RecordCheck check_of(const ReadUnit& unit) const { return state_.check_of(storage_of(unit), options_); }

  void map_views() {
    for (ReadUnit& unit : units_) {
      if (unit.to.way != Way::kMap) continue;
      unit.bytes = map_view(state_, *unit.entry);
      if (unit.bytes) {
        payload_ += unit.wanted.bytes;
        ++mapped_;
      } else {
        unit.to = way_of(storage_of(unit), unit.wanted, aim_at(state_, {}, options_));
        ++unmapped_;
      }
    }
  }

  /// Sorts units by their ways, and gives those without a place one. What is swapped in host memory has a block of its
  /// own, so that the step that swaps it does not wait for others.
  void allocate() {
    std::vector<ReadUnit*> host;
    std::vector<ReadUnit*> device;
    for (ReadUnit& unit : units_) {
      const Way way = unit.to.way;
      if (way == Way::kParts) parts_.push_back(&unit);
      if (way == Way::kNothing || way == Way::kMap || way == Way::kParts) continue;
      payload_ += bytes_of(unit);
      if (way == Way::kMemory) memory_.push_back(&unit);
      if (way == Way::kRun) runs_.push_back(&unit);
      if (way == Way::kInflate) inflated_.push_back(&unit);
      if (way == Way::kRing) decoded_.push_back(&unit);
      ReadUnit* const one = &unit;
      if (unit.bytes) {
        buffers_.push_back(unit.bytes);
        unit.buffer = static_cast<std::uint32_t>(buffers_.size() - 1);
      } else if (Buffer memory = handed_out(unit)) {
        unit.bytes = std::move(memory);
      } else if (way == Way::kRun && unit.order.swap) {
        place_in_blocks({&one, 1}, Device{});
      } else {
        (unit.to.device == Device{} ? host : device).push_back(one);
      }
    }
    place_in_blocks(host, Device{});
    if (!device.empty()) place_in_blocks(device, device.front()->to.device);
  }

  void place_in_blocks(std::span<ReadUnit* const> grouped, Device device) {
    std::vector<BlockItem> items;
    items.reserve(grouped.size());
    for (const ReadUnit* const unit : grouped) {
      const StorageEntry& storage = storage_of(*unit);
      items.push_back({storage.source, offset_of(*unit), bytes_of(*unit), !storage.is_deflated()});
    }
    const BlockLayout layout = lay_out(items);
    constexpr std::uint32_t kUnplaced = UINT32_MAX;
    std::vector<std::uint32_t> blocks(layout.blocks.size(), kUnplaced);
    for (std::size_t i = 0; i < grouped.size(); ++i) {
      ReadUnit& unit = *grouped[i];
      const BlockLayout::Place& place = layout.places[i];
      if (blocks[place.block] == kUnplaced) blocks[place.block] = add_block(layout.blocks[place.block], device, unit);
      unit.buffer = blocks[place.block];
      unit.offset = place.offset;
      const auto bytes = static_cast<std::size_t>(bytes_of(unit));
      unit.bytes = buffers_[unit.buffer].part(static_cast<std::size_t>(unit.offset), bytes);
    }
  }

  std::uint32_t add_buffer(std::uint64_t bytes, Device device = {}) {
    buffers_.push_back(io::allocate_to_fill(static_cast<std::size_t>(bytes), device));
    return static_cast<std::uint32_t>(buffers_.size() - 1);
  }

  /// Adds a block that begins with `first`, whose tensor the error of one that cannot be allocated names.
  std::uint32_t add_block(std::uint64_t bytes, Device device, const ReadUnit& first) {
    try {
      return add_buffer(bytes, device);
    } catch (const Error& error) {
      throw error.within({state_.source_of(*first.entry).name(), {}, first.entry->name});
    }
  }

  Buffer part_of(const Buffer& all, const ReadUnit& unit) const {
    return all.part(static_cast<std::size_t>(unit.begin()), static_cast<std::size_t>(bytes_of(unit)));
  }

  /// The bytes of a unit where it may have those that are in memory; else nothing.
  Buffer handed_out(const ReadUnit& unit) const {
    if (!hand_out_ || unit.to.way != Way::kMemory) return {};
    Buffer out = part_of(state_.memory_of(storage_of(unit)), unit);
    return is_aligned(out) ? out : Buffer();
  }

  /// The whole record is checked, where it lies: it is small, or has no CRC.
  void copy_memory() {
    for (const ReadUnit* const unit : memory_) {
      const Buffer all = state_.memory_of(storage_of(*unit));
      check_of(*unit).check({all.data(), all.size()});
      const Buffer from = part_of(all, *unit);
      if (unit->bytes.data() != from.data()) std::memcpy(unit->bytes.data(), from.data(), from.size());
      unit->order.apply(unit->bytes);
      if (storage_of(*unit).resident) continue;
      report_.read_bytes += from.size();
      report_.route = "read";
      if (options_.report != nullptr) report_.why = "a small file: read whole with its index";
    }
  }

  /// Of all units that lie on servers, whose answers take long: what is read for their CRCs alone, at once.
  void read_for_crcs() {
    std::vector<std::size_t> apart;
    std::vector<io::SourceRuns> headers;
    const Source* last = nullptr;
    bool waits = false;
    const auto add = [&](const ReadUnit& unit, bool as_stored) {
      const Source& source = state_.source_of(*unit.entry);
      if (&source != last) waits = io::costs_of(*source).waits();
      last = &source;
      if (!waits) return;
      const CrcWay way = crc_way(state_, *unit.entry, unit.wanted, as_stored, unit.extent, options_);
      if (way == CrcWay::kApart) apart.push_back(unit.entry->storage);
      if (way != CrcWay::kOnTheWay || unit.wanted.begin == 0) return;
      std::vector<std::byte>& header = headers_[&unit];
      header.resize(static_cast<std::size_t>(unit.wanted.begin));
      if (headers.empty() || headers.back().source != source) headers.push_back({source});
      headers.back().runs.push_back({storage_of(unit).offset, header});
    };
    for (const ReadUnit* const unit : runs_) add(*unit, true);
    for (const ReadUnit* const unit : parts_) add(*unit, false);
    std::sort(apart.begin(), apart.end());
    apart.erase(std::unique(apart.begin(), apart.end()), apart.end());
    if (!apart.empty()) state_.verify(apart, options_, report_);
    if (headers.empty()) return;
    const core::StopScope scope(options_.stop);
    io::read_at_once(headers);
  }

  /// Runs the engine. The first move reads all runs. Each brings as many compressed records as may be in memory.
  void move() {
    std::size_t next = 0;
    do {
      next = move_some(next);
    } while (next < inflated_.size());
  }

  /// Brings compressed records from `first` on. Returns the first one that is left.
  std::size_t move_some(std::size_t first) {
    std::vector<io::Piece> pieces;
    io::Move move;
    if (first == 0) {
      for (ReadUnit* const unit : runs_) add_run(*unit, pieces, move);
    }
    const std::size_t kept = buffers_.size();
    std::uint64_t compressed = 0;
    std::size_t next = first;
    for (; next < inflated_.size(); ++next) {
      const std::uint64_t bytes = storage_of(*inflated_[next]).stored_bytes;
      if (next != first && compressed + bytes > kMaxCompressed) break;
      compressed += bytes;
      add_inflated(*inflated_[next], pieces, move);
    }
    move.sources = state_.index.sources;
    move.plan = io::make_plan(pieces, move.sources);
    move.buffers = buffers_;
    try {
      io::execute(move, engine_options(), report_);
    } catch (const Error& error) {
      throw with_tensor(error);
    }
    buffers_.resize(kept);
    return next;
  }

  /// The engine knows offsets in files and no tensors: the one that an offset belongs to is found here.
  Error with_tensor(const Error& error) const {
    if (!error.tensor().empty() || !error.offset()) return error;
    const ReadUnit* found = nullptr;
    for (const ReadUnit& unit : units_) {
      const StorageEntry& storage = storage_of(unit);
      if (unit.wanted.bytes == 0 || state_.source_of(*unit.entry).name() != error.path()) continue;
      if (storage.offset + storage.stored_bytes <= *error.offset()) continue;
      if (found == nullptr || storage.offset < storage_of(*found).offset) found = &unit;
    }
    return found == nullptr ? error : error.within({.tensor = found->entry->name});
  }

  io::EngineOptions engine_options() const {
    return {.threads = options_.threads,
            .stop = options_.stop,
            .direct = options_.direct,
            .gds = options_.gds,
            .explain = options_.report != nullptr};
  }

  void add_run(const ReadUnit& unit, std::vector<io::Piece>& pieces, io::Move& move) {
    pieces.push_back({storage_of(unit).source, unit.buffer, offset_of(unit), unit.wanted.span, unit.offset});
    io::RecordCheck check;
    if (const auto header = headers_.find(&unit); header != headers_.end()) {
      check = check_of(unit);
      check.add(header->second);
    } else {
      check = check_of_run(state_, *unit.entry, unit.wanted, true, unit.extent, options_, report_);
    }
    if (check.wanted()) move.checksums.push_back({unit.buffer, unit.offset, unit.wanted.span, std::move(check)});
    if (unit.order.swap) move.steps.push_back({{unit.buffer}, [&unit] { unit.order.apply(unit.bytes); }});
  }

  void add_inflated(const ReadUnit& unit, std::vector<io::Piece>& pieces, io::Move& move) {
    const StorageEntry& storage = storage_of(unit);
    const std::uint32_t buffer = add_buffer(storage.stored_bytes);
    pieces.push_back({storage.source, buffer, storage.offset, storage.stored_bytes, 0});
    move.steps.push_back({{buffer}, [this, &unit, buffer] { inflate(unit, buffers_[buffer]); }});
  }

  void inflate(const ReadUnit& unit, const Buffer& stored) const {
    const Buffer& out = unit.bytes;
    format::inflate({stored.data(), stored.size()}, {out.data(), out.size()}, state_.source_of(*unit.entry).name(),
                    storage_of(unit).name);
    check_of(unit).check({out.data(), out.size()});
    unit.order.apply(out);
  }

  void decode_on_the_way() {
    std::vector<io::DecodeJob> jobs;
    for (const ReadUnit* const unit : decoded_) {
      const RingStorage from{.storage = &storage_of(*unit),
                             .source = &*state_.source_of(*unit->entry),
                             .check = check_of(*unit),
                             .swap_width = unit->order.width,
                             .swap_phase = unit->order.phase};
      jobs.push_back(decode_job(from, unit->buffer, unit->offset));
    }
    io::decode_in_ring(jobs, buffers_, options_.threads, options_.stop, report_);
  }

  /// Reads elements, and gaps between them only where they are short.
  void read_parts(ReadUnit& unit) {
    const TensorEntry& view = *unit.entry;
    check_of_run(state_, view, unit.wanted, false, unit.extent, options_, report_);
    const io::StridedView wanted{offset_of(unit), once(view.shape, view.strides), view.strides, view.dtype.itemsize()};
    const Tensor to = Tensor::empty(wanted.shape, view.dtype);
    io::read_strided(*state_.source_of(view), wanted, to, ops::copy, {options_.threads, options_.stop}, report_);
    payload_ += to.nbytes();
    report_.route = "read";
    report_.why = "a slice whose elements do not lie together: read in parts";
    unit.bytes = to.buffer();
    unit.order.apply(unit.bytes);
  }

  const detail::ArchiveState& state_;
  std::span<ReadUnit> units_;
  const LoadOptions& options_;
  Report& report_;
  bool hand_out_;
  std::vector<Buffer> buffers_;
  std::vector<ReadUnit*> memory_;
  std::vector<ReadUnit*> runs_;
  std::vector<ReadUnit*> inflated_;
  std::vector<ReadUnit*> decoded_;
  std::vector<ReadUnit*> parts_;
  std::unordered_map<const ReadUnit*, std::vector<std::byte>> headers_;  ///< in front of runs, read for their CRCs
  std::size_t mapped_ = 0;
  std::size_t unmapped_ = 0;
  std::uint64_t payload_ = 0;
};

}  // namespace

ByteOrder::ByteOrder(const TensorEntry& entry, std::uint64_t begin) : swap(entry.encoding.swapped) {
  if (!swap) return;
  width = entry.dtype.swap_width();
  phase = (entry.byte_offset - begin) % width;
}

void ByteOrder::apply(const Buffer& bytes) const {
  if (!swap || bytes.size() < phase) return;
  const std::size_t units = (bytes.size() - phase) / width;
  ops::swap_bytes({bytes.data() + phase, units * width}, width);
}

Aim aim_of(const detail::ArchiveState& state, const LoadOptions& options) {
  Aim aim = aim_at(state, options.device, options);
  aim.mmap = options.mmap.value_or(false);
  return aim;
}

Aim aim_at(const detail::ArchiveState& state, Device device, const LoadOptions& options) {
  return {.device = device, .content = state.content && !options.direct.value_or(false)};
}

ReadUnit ReadUnit::of_view(const detail::ArchiveState& state, const TensorEntry& view, const Aim& aim, Extent extent) {
  ReadUnit unit{.entry = &view, .wanted = stretch_of(view), .extent = extent};
  unit.to = way_of(state.storage_of(view), unit.wanted, aim);
  unit.order = ByteOrder(view, unit.begin());
  return unit;
}

io::RecordCheck check_of_run(const detail::ArchiveState& state, const TensorEntry& view, const Stretch& wanted,
                             bool as_stored, Extent extent, const LoadOptions& options, Report& report) {
  const CrcWay way = crc_way(state, view, wanted, as_stored, extent, options);
  if (way == CrcWay::kApart) state.verify({&view.storage, 1}, options, report);
  if (way != CrcWay::kOnTheWay) return {};
  const StorageEntry& storage = state.storage_of(view);
  io::RecordCheck check = state.check_of(storage, options);
  if (wanted.begin > 0) {
    std::vector<std::byte> header(static_cast<std::size_t>(wanted.begin));
    state.source_of(view).read(storage.offset, header);
    check.add(header);
  }
  return check;
}

void read_units(const detail::ArchiveState& state, std::span<ReadUnit> units, const LoadOptions& options,
                Report& report, Resident resident) {
  UnitReads(state, units, options, report, resident).run();
}

}  // namespace penstock::archive
