// Loads whole storages, each once, however many tensors are views of it. Storages take one of four routes:
//
//   resident  in memory already: copied, or handed out
//   stored    read to its place by the engine; swapped there if it is in the other byte order
//   deflated  its compressed bytes are read, and inflated to its place by a step of the engine
//   decoded   for a device: inflated or swapped in the pinned ring (ring_decode.h)
//
// Storages lie together in large blocks (block_layout.h), so that the engine makes few long reads. At the end each
// tensor becomes a view of its storage. A tensor that needs its bytes in another form than the others of its storage
// gets a copy.

#include "archive/whole_load.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "archive/block_layout.h"
#include "archive/failing_tensor.h"
#include "archive/loadable.h"
#include "archive/materialise.h"
#include "archive/ring_decode.h"
#include "core/format.h"
#include "device/backend.h"
#include "format/zip/inflate.h"
#include "io/move/device_writes.h"
#include "ops/kernels.h"
#include "ops/transfer.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

/// How many compressed bytes are in memory at once. A single member may have more.
constexpr std::uint64_t kMaxCompressed = std::uint64_t{256} << 20;

/// How all tensors of a storage want its bytes, where they agree.
struct ByteOrder {
  bool swap = false;
  std::size_t width = 1;
  std::uint64_t phase = 0;  ///< bytes before the first whole unit

  explicit ByteOrder(const TensorEntry& entry) : swap(entry.encoding.swapped) {
    if (!swap) return;
    width = entry.dtype.swap_width();
    phase = entry.byte_offset % width;
  }
  friend bool operator==(const ByteOrder&, const ByteOrder&) = default;

  void apply(const Buffer& bytes) const {
    if (!swap || bytes.size() < phase) return;
    const std::size_t units = (bytes.size() - phase) / width;
    ops::swap_bytes({bytes.data() + phase, units * width}, width);
  }
};

/// A storage that is wanted.
struct Wanted {
  std::optional<ByteOrder> order;
  bool mixed = false;        ///< tensors want different byte orders: each that is swapped gets its own copy
  bool marked = false;       ///< some tensor has torch's conj or neg bit, to be applied in host memory
  std::uint32_t buffer = 0;  ///< which of the load's buffers it goes to, and where in it
  std::uint64_t offset = 0;
  Buffer bytes;  ///< that place

  bool swap() const noexcept { return order && order->swap && !mixed; }
};

class WholeLoad {
 public:
  WholeLoad(const detail::ArchiveState& state, std::span<const TensorEntry> wanted, const LoadOptions& options,
            Report& report, Resident resident)
      : state_(state),
        entries_(wanted),
        options_(options),
        report_(report),
        hand_out_(resident == Resident::kHandedOut) {}

  std::vector<Tensor> run() {
    find_storages();
    allocate();
    take_resident();
    if (!stored_.empty() || !deflated_.empty()) read_all();
    decode_on_the_way();
    // What the engine counted of deflated storages is what they take in the file.
    report_.payload_bytes = payload_;
    if (report_.route.empty()) report_.route = "memory";
    std::vector<Tensor> out;
    out.reserve(entries_.size());
    for (const TensorEntry& entry : entries_) out.push_back(tensor_of(entry));
    return on_device(std::move(out));
  }

 private:
  const StorageEntry& storage(std::size_t i) const { return state_.index.storages[i]; }
  io::RecordCheck check_of(const StorageEntry& storage) const { return state_.check_of(storage, options_); }

  void find_storages() {
    for (const TensorEntry& entry : entries_) {
      if (entry.nbytes() != 0) used_.push_back(entry.storage);
    }
    std::sort(used_.begin(), used_.end());
    used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
    storages_.resize(used_.size());
    for (const TensorEntry& entry : entries_) {
      if (entry.nbytes() == 0) continue;
      Wanted& to = wanted(entry.storage);
      const ByteOrder order(entry);
      if (!to.order) to.order = order;
      to.mixed = to.mixed || *to.order != order;
      to.marked = to.marked || entry.encoding.has_math_bits();
    }
  }

  /// The state of a storage in used_. Only storages that are loaded have one, so that loading a small part of a large
  /// file costs little.
  const Wanted& wanted(std::size_t storage) const {
    if (used_.size() == state_.index.storages.size()) return storages_[storage];
    const auto found = std::lower_bound(used_.begin(), used_.end(), storage);
    return storages_[static_cast<std::size_t>(found - used_.begin())];
  }
  Wanted& wanted(std::size_t storage) { return const_cast<Wanted&>(std::as_const(*this).wanted(storage)); }

  /// Allocates memory for everything that is read. A storage that will be swapped has a buffer of its own, so that the
  /// step that swaps it does not wait for a whole block.
  void allocate() {
    std::vector<std::size_t> grouped;
    std::vector<std::size_t> direct;
    for (const std::size_t i : used_) {
      payload_ += storage(i).nbytes;
      if (Buffer there = state_.resident(storage(i), options_)) {
        if (hand_out_ && is_aligned(there)) {
          wanted(i).bytes = there;
        } else {
          grouped.push_back(i);
        }
        resident_.emplace_back(i, std::move(there));
        continue;
      }
      const bool deflated = storage(i).is_deflated();
      const bool to_device = options_.device.type != DeviceType::kCpu && !wanted(i).mixed && !wanted(i).marked;
      const bool in_ring = to_device && (deflated || wanted(i).swap());
      (in_ring ? decoded_ : deflated ? deflated_ : stored_).push_back(i);
      if (to_device) {
        direct.push_back(i);
      } else if (deflated || !wanted(i).swap()) {
        grouped.push_back(i);
      } else {
        place(i, add_buffer(storage(i).nbytes), 0);
      }
    }
    place_in_blocks(grouped, Device{});
    place_in_blocks(direct, options_.device);
  }

  void place_in_blocks(std::span<const std::size_t> grouped, Device device) {
    const BlockLayout layout = lay_out(state_.index.storages, grouped);
    constexpr std::uint32_t kUnplaced = UINT32_MAX;
    std::vector<std::uint32_t> blocks(layout.blocks.size(), kUnplaced);
    for (std::size_t i = 0; i < grouped.size(); ++i) {
      std::uint32_t& block = blocks[layout.places[i].block];
      if (block == kUnplaced) block = add_block(layout.blocks[layout.places[i].block], device, grouped[i]);
      place(grouped[i], block, layout.places[i].offset);
    }
  }

  std::uint32_t add_buffer(std::uint64_t bytes, Device device = {}) {
    buffers_.push_back(io::allocate_to_fill(static_cast<std::size_t>(bytes), device));
    return static_cast<std::uint32_t>(buffers_.size() - 1);
  }

  /// Adds a block that begins with storage `first`. The error of one that cannot be allocated names a tensor of it.
  std::uint32_t add_block(std::uint64_t bytes, Device device, std::size_t first) {
    try {
      return add_buffer(bytes, device);
    } catch (const Error& error) {
      const auto in_first = [first](const TensorEntry& entry) { return entry.storage == first; };
      const auto entry = std::find_if(entries_.begin(), entries_.end(), in_first);
      throw error.within({state_.index.sources[storage(first).source].name(), {}, entry->name});
    }
  }

  void place(std::size_t i, std::uint32_t buffer, std::uint64_t offset) {
    Wanted& to = wanted(i);
    to.buffer = buffer;
    to.offset = offset;
    to.bytes = buffers_[buffer].part(static_cast<std::size_t>(offset), static_cast<std::size_t>(storage(i).nbytes));
  }

  void read_all() {
    std::size_t next = 0;
    do {
      next = read_some(next);
    } while (next < deflated_.size());
  }

  /// Runs the engine once. The first run reads everything that is stored. Each run reads deflated storages from `first`
  /// on, as many as may be in memory compressed. Returns the first one that is left.
  std::size_t read_some(std::size_t first) {
    std::vector<io::Piece> pieces;
    io::Move move;
    if (first == 0) add_stored(pieces, move);
    const std::size_t kept = buffers_.size();
    std::uint64_t compressed = 0;
    std::size_t next = first;
    for (; next < deflated_.size(); ++next) {
      const StorageEntry& entry = storage(deflated_[next]);
      if (next != first && compressed + entry.stored_bytes > kMaxCompressed) break;
      compressed += entry.stored_bytes;
      add_deflated(deflated_[next], pieces, move);
    }
    move.plan = io::make_plan(pieces);
    move.sources = state_.index.sources;
    move.buffers = buffers_;
    try {
      io::execute(move, engine_options(options_), report_);
    } catch (const Error& error) {
      throw with_tensor(error, state_.index, wanted_entries());
    }
    buffers_.resize(kept);
    return next;
  }

  std::vector<const TensorEntry*> wanted_entries() const {
    std::vector<const TensorEntry*> out;
    for (const TensorEntry& entry : entries_) out.push_back(&entry);
    return out;
  }

  void add_stored(std::vector<io::Piece>& pieces, io::Move& move) {
    for (const std::size_t i : stored_) {
      const StorageEntry& entry = storage(i);
      const Wanted& to = wanted(i);
      pieces.push_back({entry.source, to.buffer, entry.offset, entry.nbytes, to.offset});
      if (const io::RecordCheck check = check_of(entry); check.wanted()) {
        move.checksums.push_back({to.buffer, to.offset, entry.nbytes, check});
      }
      if (to.swap()) {
        move.steps.push_back({{to.buffer}, [this, i] { wanted(i).order->apply(wanted(i).bytes); }});
      }
    }
  }

  void add_deflated(std::size_t i, std::vector<io::Piece>& pieces, io::Move& move) {
    const StorageEntry& entry = storage(i);
    const std::uint32_t buffer = add_buffer(entry.stored_bytes);
    pieces.push_back({entry.source, buffer, entry.offset, entry.stored_bytes, 0});
    move.steps.push_back({{buffer}, [this, i, buffer] { inflate_storage(i, buffers_[buffer]); }});
  }

  static bool is_aligned(const Buffer& bytes) noexcept {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) % kStorageAlignment == 0;
  }

  void take_resident() {
    for (const auto& [i, from] : resident_) {
      const StorageEntry& entry = storage(i);
      const Buffer& to = wanted(i).bytes;
      if (to.data() != from.data()) std::memcpy(to.data(), from.data(), from.size());
      check_of(entry).check({to.data(), to.size()});
      if (wanted(i).swap()) wanted(i).order->apply(to);
      if (entry.resident) continue;
      report_.read_bytes += from.size();
      report_.route = "read";
      if (options_.report != nullptr) report_.why = "a small file: read whole with its index";
    }
  }

  /// Decodes what goes to a device and is inflated or swapped on its way.
  void decode_on_the_way() {
    std::vector<io::DecodeJob> jobs;
    for (const std::size_t i : decoded_) {
      const Wanted& to = wanted(i);
      RingStorage from{
          .storage = &storage(i), .source = &*state_.index.sources[storage(i).source], .check = check_of(storage(i))};
      if (to.swap()) {
        from.swap_width = to.order->width;
        from.swap_phase = to.order->phase;
      }
      jobs.push_back(decode_job(from, to.buffer, to.offset));
    }
    io::decode_in_ring(jobs, buffers_, options_.threads, options_.stop, report_);
  }

  void inflate_storage(std::size_t i, const Buffer& stored) const {
    const StorageEntry& entry = storage(i);
    const Buffer& out = wanted(i).bytes;
    const std::string& path = state_.index.sources[entry.source].name();
    format::inflate({stored.data(), stored.size()}, {out.data(), out.size()}, path, entry.name);
    check_of(entry).check({out.data(), out.size()});
    if (wanted(i).swap()) wanted(i).order->apply(out);
  }

  Tensor tensor_of(const TensorEntry& entry) const {
    if (entry.nbytes() == 0) {
      return Tensor::empty(entry.shape, entry.dtype, options_.device).with_requires_grad(entry.requires_grad);
    }
    const Wanted& from = wanted(entry.storage);
    const Tensor view(from.bytes, entry.dtype, entry.shape, entry.strides, static_cast<std::size_t>(entry.byte_offset));
    Encoding left = entry.encoding;
    if (from.swap()) left.swapped = false;
    const bool aligned = reinterpret_cast<std::uintptr_t>(view.data()) % natural_alignment(entry.dtype) == 0;
    const bool as_is = !left.changes_elements() && aligned;
    const bool host = view.device().type == DeviceType::kCpu;
    const Tensor out = as_is ? view : host ? own_copy(view, left) : ops::copy_span(view, view.device(), {});
    return out.with_requires_grad(entry.requires_grad);
  }

  /// Moves the tensors that had to be decoded in host memory, all in one batch.
  std::vector<Tensor> on_device(std::vector<Tensor> tensors) const {
    const auto there = [this](const Tensor& tensor) { return tensor.device() == options_.device; };
    if (std::all_of(tensors.begin(), tensors.end(), there)) return tensors;
    std::vector<Value> values(tensors.size());
    std::transform(tensors.begin(), tensors.end(), values.begin(), [](const Tensor& t) { return Value::tensor(t); });
    const Value moved = Value::list(std::move(values)).to(options_.device);
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i] = moved[i].as_tensor();
    return tensors;
  }

  const detail::ArchiveState& state_;
  std::span<const TensorEntry> entries_;
  const LoadOptions& options_;
  Report& report_;
  bool hand_out_;
  std::vector<Wanted> storages_;  ///< one for each of used_
  std::vector<Buffer> buffers_;
  std::vector<std::size_t> used_;                         ///< storages, each once, in order
  std::vector<std::pair<std::size_t, Buffer>> resident_;  ///< and where the bytes are
  std::vector<std::size_t> stored_;
  std::vector<std::size_t> deflated_;
  std::vector<std::size_t> decoded_;  ///< in the ring, stored or deflated
  std::uint64_t payload_ = 0;
};

}  // namespace

std::vector<Tensor> load_whole(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                               const LoadOptions& options, Report& report, Resident resident) {
  for (const TensorEntry& entry : wanted) require_loadable(state, entry, options);
  try {
    return WholeLoad(state, wanted, options, report, resident).run();
  } catch (const Error& error) {
    throw error.within({state.path()});
  }
}

}  // namespace penstock::archive
