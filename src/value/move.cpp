// Moves all tensors of a nested value to a device at once. Tensors that overlap in memory form one run, because they
// must overlap on the device too. Small runs share a block, because an allocation costs the same however small it is.
// All runs are then copied by one submission for each source device.

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/round.h"
#include "device/backend.h"
#include "device/buffer_access.h"
#include "device/round_trip.h"
#include "ops/transfer.h"
#include "penstock/error.h"
#include "value/nodes.h"

namespace penstock {
namespace {

/// Runs up to this size share blocks: a small allocation costs as much as a large one.
constexpr std::size_t kSmallRun = std::size_t{1} << 20;
constexpr std::size_t kBlock = std::size_t{16} << 20;
constexpr std::size_t kAlignment = 256;

/// All tensors of a graph, each node once.
std::vector<Tensor> tensors_of(const Value& root) {
  std::vector<Tensor> out;
  for_each_node(root, [&out](const ValueGraph::Node& node) {
    const Value value = ValueGraph::child(&node);
    if (value.is(Value::Kind::kTensor)) out.push_back(value.as_tensor());  // throws where it is not loaded
  });
  return out;
}

/// The name of the first tensor with that memory and shape: "layers.0.weight".
std::string name_of(const Value& root, const Tensor& tensor) {
  std::vector<std::pair<Value, std::string>> pending{{root, {}}};
  std::unordered_set<const void*> seen;
  while (!pending.empty()) {
    const auto [value, name] = std::move(pending.back());
    pending.pop_back();
    const auto add = [&, &path = name](const Value& child, const std::string& key) {
      pending.emplace_back(child, path.empty() ? key : core::format("{}.{}", path, key));
    };
    if (!seen.insert(value.node_id()).second) continue;
    if (value.is(Value::Kind::kTensor)) {
      const Tensor& found = value.as_tensor();
      if (found.defined() && found.data() == tensor.data() && found.shape() == tensor.shape()) return name;
    } else if (value.is(Value::Kind::kDict)) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        const auto [key, child] = value.item(i);
        add(child, key.is(Value::Kind::kString) ? key.as_string() : key.to_string());
      }
    } else if (value.is(Value::Kind::kList) || value.is(Value::Kind::kTuple)) {
      for (std::size_t i = 0; i < value.size(); ++i) add(value[i], std::to_string(i));
    }
  }
  return {};
}

/// A stretch of memory that overlapping tensors span together, and where it goes.
struct OverlapSpan {
  Buffer from;
  Tensor first;  ///< of those tensors
  Buffer to = {};
  std::size_t block = 0;
  std::size_t offset = 0;
};

/// Memory of one allocation, for the run of tensor `first` and maybe for other runs.
struct Block {
  std::size_t bytes = 0;
  const Tensor* first = nullptr;
};

/// Everything that moves, laid out as runs in blocks and copied at once.
class BatchedMove {
 public:
  /// `root` contains all tensors, and gives their names for errors. It must outlive this.
  BatchedMove(const Value& root, Device target, const TransferOptions& options)
      : root_(root), target_(target), options_(options) {}

  void add(const Tensor& tensor) {
    if (stays(tensor)) return;
    if (tensor.nbytes() != 0) spans_.push_back({ops::span_of(tensor), tensor});
  }

  void run() {
    make_runs();
    allocate();
    // All copies of one submission must go between the same two devices.
    std::map<std::pair<DeviceType, int>, std::vector<ops::Transfer>> by_source;
    for (const OverlapSpan& run : runs_) {
      const Device from = run.from.device();
      by_source[{from.type, from.index}].push_back({run.from, run.to});
    }
    for (const auto& [from, transfers] : by_source) ops::transfer(transfers, options_);
  }

  /// Whether this tensor has been copied back and forth often enough to warn now. `copy` is its new copy.
  bool is_round_trip(const Tensor& tensor, const Tensor& copy) const {
    return !stays(tensor) && device::note_copy(ops::span_of(tensor), ops::span_of(copy));
  }

  Tensor moved(const Tensor& tensor) const {
    if (stays(tensor)) return tensor;
    if (tensor.nbytes() == 0) {
      return Tensor::empty(tensor.shape(), tensor.dtype(), target_).with_requires_grad(tensor.requires_grad());
    }
    const Buffer from = ops::span_of(tensor);
    const OverlapSpan& run =
        *std::prev(std::upper_bound(runs_.begin(), runs_.end(), from.data(),
                                    [](const std::byte* at, const OverlapSpan& r) { return at < r.from.data(); }));
    const auto offset = static_cast<std::size_t>(from.data() - run.from.data());
    return Tensor(run.to, tensor.dtype(), tensor.shape(), tensor.strides(), offset)
        .with_requires_grad(tensor.requires_grad());
  }

 private:
  bool stays(const Tensor& tensor) const { return tensor.device() == target_ && !options_.copy; }

  /// Joins spans that overlap to one run.
  void make_runs() {
    std::sort(spans_.begin(), spans_.end(),
              [](const OverlapSpan& a, const OverlapSpan& b) { return a.from.data() < b.from.data(); });
    for (const OverlapSpan& tensor : spans_) {
      const Buffer& span = tensor.from;
      Buffer* const last = runs_.empty() ? nullptr : &runs_.back().from;
      if (last == nullptr || span.data() >= last->data() + last->size()) {
        runs_.push_back(tensor);
        continue;
      }
      const std::size_t end = static_cast<std::size_t>(span.data() - last->data()) + span.size();
      *last = BufferAccess::make(last->owner(), last->data(), std::max(end, last->size()), last->device(),
                                 last->read_only(), BufferAccess::uses(*last));
    }
  }

  void allocate() {
    std::vector<Block> blocks;
    std::optional<std::size_t> open;
    for (OverlapSpan& run : runs_) {
      if (run.from.size() > kSmallRun) {
        run.block = blocks.size();
        blocks.push_back({run.from.size(), &run.first});
        continue;
      }
      if (!open || blocks[*open].bytes + run.from.size() > kBlock) {
        open = blocks.size();
        blocks.push_back({0, &run.first});
      }
      run.block = *open;
      run.offset = blocks[*open].bytes;
      blocks[*open].bytes = core::round_up(run.offset + run.from.size(), kAlignment);
    }
    std::vector<Buffer> buffers;
    buffers.reserve(blocks.size());
    for (const Block& block : blocks) buffers.push_back(make(block));
    for (OverlapSpan& run : runs_) run.to = buffers[run.block].part(run.offset, run.from.size());
  }

  Buffer make(const Block& block) const {
    try {
      return Buffer::allocate(block.bytes, target_);
    } catch (const Error& error) {
      throw error.within({.tensor = name_of(root_, *block.first)});
    }
  }

  const Value& root_;
  Device target_;
  TransferOptions options_;
  std::vector<OverlapSpan> spans_;  ///< of one tensor each
  std::vector<OverlapSpan> runs_;
};

}  // namespace

Value Value::to(Device device, TransferOptions options) const {
  device::require_device(device);
  const std::vector<Tensor> tensors = tensors_of(*this);
  const auto stays = [&](const Tensor& tensor) { return tensor.device() == device && !options.copy; };
  if (std::all_of(tensors.begin(), tensors.end(), stays)) return *this;
  BatchedMove move(*this, device, options);
  for (const Tensor& tensor : tensors) move.add(tensor);
  move.run();
  return map_tensors(*this, [&](const Tensor& tensor) {
    Tensor moved = move.moved(tensor);
    if (move.is_round_trip(tensor, moved)) device::warn_of_round_trips(tensor, device, name_of(*this, tensor));
    return moved;
  });
}

}  // namespace penstock
