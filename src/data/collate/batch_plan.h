#pragma once

// A batch before a byte of it is moved: its samples by columns, what each column becomes, and where every tensor lies
// in the one block that is then allocated. Rules fill it (rule.h); the mover and batch_value read it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/collate/padding.h"
#include "data/dataset_impl.h"
#include "data/sample/runs.h"
#include "data/sample/strides.h"
#include "penstock/dtype.h"
#include "penstock/error.h"
#include "penstock/shape.h"

namespace penstock::data {

/// The samples of one batch, after fetching. Views: valid as long as what they were made of.
struct Fetched {
  const detail::DatasetImpl& dataset;
  std::span<const std::int64_t> indices;
  std::span<const Sample> samples;
  bool uniform = false;                      ///< all samples have the same layout: pointers are equal
  std::span<const EvenColumn> columns = {};  ///< of EvenRows, where the samples have no payloads of their own

  Payload payload(std::size_t position, std::uint32_t tensor) const noexcept {
    return columns.empty() ? samples[position].payloads[tensor] : columns[tensor].payload(position);
  }
  std::size_t size() const noexcept { return samples.size(); }
  /// "sample 17 (clips/0007.pt)".
  std::string describe(std::size_t position) const;
};

/// One tensor of the samples' structure, over all samples of the batch.
class Column {
 public:
  Column(const Fetched& fetched, const Leaf& leaf) : fetched_(fetched), leaf_(leaf) {}

  std::size_t size() const noexcept { return fetched_.size(); }
  const TensorLayout& operator[](std::size_t position) const {
    return fetched_.samples[position].layout->tensors[leaf_.number];
  }
  bool uniform() const noexcept { return fetched_.uniform; }
  const Leaf& leaf() const noexcept { return leaf_; }
  const Fetched& fetched() const noexcept { return fetched_; }
  /// " at ['x']", or nothing when the sample is this tensor alone.
  std::string where() const;

 private:
  const Fetched& fetched_;
  const Leaf& leaf_;
};

/// A tensor of the batch: its place in the batch's block.
struct Output {
  DType dtype;
  Shape shape;
  std::uint64_t offset = 0;
  Strides strides;
  bool requires_grad = false;
};

/// In which order the elements of a sample lie in its slot.
enum class SlotOrder : std::uint8_t {
  kRows,          ///< C order
  kAsStored,      ///< that of the sample's own tensor, of which small gaps are kept and large ones closed
  kChannelsLast,  ///< torch's channels_last (4 dimensions) or channels_last_3d (5)
};
/// The strides of a tensor in a slot of that order.
Strides slot_strides(SlotOrder order, const TensorLayout& tensor);
/// Whether a slot in stored order has the gaps and the repeated elements of the tensor: where they at most double its
/// bytes, because a column of a large matrix would bring the whole of it.
bool keeps_gaps(const TensorLayout& tensor);

/// Where the tensors of one column go.
struct Placement {
  std::uint32_t tensor = 0;              ///< number of the tensor in each sample
  std::uint64_t offset = 0;              ///< of the first sample's slot in the block
  std::uint64_t pitch = 0;               ///< from slot to slot
  std::span<const std::uint64_t> slots;  ///< when not empty, each sample's own offset instead; kNoSlot: it has none
  std::optional<Padding> padding = {};
  SlotOrder order = SlotOrder::kRows;  ///< without padding

  static constexpr std::uint64_t kNoSlot = ~std::uint64_t{0};

  /// Whether the sample has this tensor; all do but where samples that are kept apart differ in structure.
  bool has(std::size_t position) const noexcept { return slots.empty() || slots[position] != kNoSlot; }
  std::uint64_t slot(std::size_t position) const noexcept {
    return slots.empty() ? offset + position * pitch : slots[position];
  }
  /// The part of the sample's tensor that fits into its slot.
  Shape own_shape(const TensorLayout& sample) const {
    return padding ? data::own_shape(*padding, sample.shape) : sample.shape;
  }
  Strides slot_strides(const TensorLayout& sample) const {
    return padding ? padding->slot.contiguous_strides() : data::slot_strides(order, sample);
  }
  /// From where the sample's elements lie to where they go.
  Runs runs_of(const TensorLayout& sample) const {
    return Runs(own_shape(sample), sample.strides, slot_strides(sample), sample.dtype.itemsize());
  }
  /// Whether the sample's bytes are those of its slot, in one run.
  bool takes_as_is(const TensorLayout& sample) const {
    if (padding) return false;
    if (order == SlotOrder::kChannelsLast) return sample.dense && is_channels_last(sample.shape, sample.strides);
    return order == SlotOrder::kRows ? sample.contiguous : sample.dense;
  }
};

/// An output that is computed from headers instead of moved.
struct Derived {
  enum class Kind : std::uint8_t { kScalars, kLengths, kMask, kEnds };
  Kind kind = Kind::kScalars;
  std::uint32_t output = 0;
  std::uint32_t number = 0;            ///< of the scalar or tensor in each sample; kEnds sums up its dimension 0
  std::vector<std::size_t> dims = {};  ///< kLengths, kMask: the padded dimensions of the sample,
  Shape lengths = {};                  ///< and their sizes in the slot
};

/// What one leaf of the structure becomes.
struct Result {
  enum class Kind : std::uint8_t {
    kTensor,   ///< outputs[first]
    kTensors,  ///< a list of outputs[first, first + count)
    kPadded,   ///< {"values": outputs[first], then "lengths" and "mask" where asked}
    kJoined,   ///< {"values": outputs[first], "cu_seqlens": outputs[first + 1], "max_seqlen": longest}
    kList,     ///< a list of the samples' scalars
    kScalar,   ///< the only sample's scalar itself
  };
  Kind kind = Kind::kTensor;
  std::uint32_t first = 0;
  std::uint32_t count = 1;
  bool lengths = false;
  bool mask = false;
  std::int64_t longest = 0;
};

/// A batch decided from headers: one block of memory, and what goes where. Reused from batch to batch.
struct BatchPlan {
  /// Each output begins at a multiple of this in the block.
  static constexpr std::uint64_t kAlignment = 64;

  std::vector<Output> outputs;
  std::vector<Placement> placements;
  std::vector<Derived> derived;
  std::vector<Result> results;  ///< one for each leaf
  bool by_sample = false;       ///< the batch is a list of samples; results are kTensors and kList
  /// With `by_sample`, where samples differ in structure: where each one's results begin, which are kTensor and
  /// kScalar.
  std::vector<std::size_t> first_results;
  std::uint64_t bytes = 0;    ///< of the block
  std::uint64_t payload = 0;  ///< of them, what is moved

  void clear();
  /// Adds an output behind the others, in C order, and returns its number. kOutOfMemory when the block would not fit in
  /// 63 bits.
  std::uint32_t add(const DType& dtype, const Shape& shape);
  /// The same for a sample's tensor that stands by itself.
  std::uint32_t add(const TensorLayout& tensor, SlotOrder order);

 private:
  std::uint32_t add_bytes(const DType& dtype, const Shape& shape, std::uint64_t size);
};

}  // namespace penstock::data
