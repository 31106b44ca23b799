// Sequences that share rows. Which ones do is planned once, from the lengths in headers: the longest first, each into
// the fullest row that still has room (best fit decreasing). A row is made in the worker that fetches it, as the result
// of a function is: each of its sequences is read, and put behind the one before.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset/lengths.h"
#include "data/dataset_impl.h"
#include "data/sample/blame.h"
#include "data/sample/value_samples.h"
#include "penstock/error.h"
#include "penstock/lengths.h"
#include "penstock/ops.h"
#include "penstock/tensor.h"

namespace penstock {

namespace {

/// A stretch of the sequence that sample `index` is.
struct SequencePiece {
  std::int64_t index = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t whole = 0;  ///< elements of the sequence
};

using core::refuse;

/// Rows of the pieces, each of which is at most `length` long: numbers of pieces, in order, row behind row.
std::vector<std::vector<std::size_t>> best_fit(std::span<const SequencePiece> pieces, std::int64_t length) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return pieces[a].count > pieces[b].count; });
  std::vector<std::vector<std::size_t>> rows;
  std::map<std::int64_t, std::vector<std::size_t>> by_room;  // rows with room, by how much
  for (const std::size_t piece : order) {
    const std::int64_t count = pieces[piece].count;
    auto fit = by_room.lower_bound(count);
    std::size_t row = rows.size();
    std::int64_t room = length;
    if (fit == by_room.end()) {
      rows.emplace_back();
    } else {
      row = fit->second.back();
      room = fit->first;
      fit->second.pop_back();
      if (fit->second.empty()) by_room.erase(fit);
    }
    rows[row].push_back(piece);
    if (room > count) by_room[room - count].push_back(row);
  }
  for (std::vector<std::size_t>& row : rows) std::sort(row.begin(), row.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// `value` as an element of the type; kInvalidArgument where it has no such value.
Tensor filling(double value, const DType& dtype) {
  Tensor one = Tensor::of({value}).to(dtype);
  const Tensor back = one.to(DType::float64);
  if (!dtype.is_floating() && back.values<const double>()[0] != value) {
    refuse(core::format("the value {} that rows are filled with is not a value of {}; choose one that is", value,
                        dtype.name()));
  }
  return one;
}

class SequenceRows final : public detail::DatasetImpl {
 public:
  SequenceRows(Dataset dataset, std::int64_t length, const PackSequencesOptions& options)
      : dataset_(std::move(dataset)), length_(length), key_(options.key) {
    plan(options);
    if (options.cu_seqlens) most_ends_ = most_ends();
    if (!pieces_.empty()) filling_ = filling(options.value, dtype_);
  }

  std::int64_t size() const override { return std::ssize(rows_); }
  std::string describe(std::int64_t index) const override {
    const std::vector<std::size_t>& row = rows_[static_cast<std::size_t>(index)];
    const std::string first = dataset_.impl().describe(pieces_[row[0]].index);
    return row.size() == 1 ? first : core::format("{} and {} more", first, row.size() - 1);
  }
  std::uint32_t draws() const noexcept override { return dataset_.impl().draws(); }
  std::uint32_t random_stages() const noexcept override { return dataset_.impl().random_stages(); }
  std::uint64_t read_bytes(std::int64_t index) const override {
    std::uint64_t out = 0;
    for (const std::size_t piece : rows_[static_cast<std::size_t>(index)]) {
      const std::uint64_t bytes = dataset_.impl().read_bytes(pieces_[piece].index);
      out += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - out);
    }
    return out;
  }

  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    data::fetch_values(*this, indices, work, out);
  }

  Value value(std::int64_t index, const data::Work& work) const override {
    Tensor tokens = Tensor::empty(Shape{length_}, dtype_);
    Tensor positions = Tensor::zeros(Shape{length_}, DType::int64);
    Tensor segments = Tensor::zeros(Shape{length_}, DType::int64);
    const std::span<std::int64_t> places = positions.values<std::int64_t>();
    const std::span<std::int64_t> numbers = segments.values<std::int64_t>();
    std::size_t at = 0;
    std::int64_t number = 0;
    for (const std::size_t p : rows_[static_cast<std::size_t>(index)]) {
      const SequencePiece& piece = pieces_[p];
      const auto count = static_cast<std::size_t>(piece.count);
      copy(piece, tokens.data() + at * dtype_.itemsize(), work);
      std::iota(places.begin() + static_cast<std::ptrdiff_t>(at),
                places.begin() + static_cast<std::ptrdiff_t>(at + count), std::int64_t{0});
      std::fill_n(numbers.begin() + static_cast<std::ptrdiff_t>(at), count, ++number);
      at += count;
    }
    for (; at < static_cast<std::size_t>(length_); ++at) {
      std::memcpy(tokens.data() + at * dtype_.itemsize(), filling_.data(), dtype_.itemsize());
    }
    std::vector<std::pair<std::string, Value>> out = {{"tokens", Value::tensor(std::move(tokens))},
                                                      {"positions", Value::tensor(std::move(positions))},
                                                      {"segments", Value::tensor(std::move(segments))}};
    if (most_ends_ > 0) add_ends(rows_[static_cast<std::size_t>(index)], out);
    return Value::dict(std::move(out));
  }

 private:
  struct Header {
    std::int64_t length = 0;
    DType dtype;
  };

  std::int64_t tokens_in(const std::vector<std::size_t>& row) const {
    return std::accumulate(row.begin(), row.end(), std::int64_t{0},
                           [this](std::int64_t sum, std::size_t piece) { return sum + pieces_[piece].count; });
  }

  /// Of the row that has the most sequences, with what fills it.
  std::int64_t most_ends() const {
    std::size_t most = 0;
    for (const std::vector<std::size_t>& row : rows_) {
      most = std::max(most, row.size() + (tokens_in(row) < length_ ? 1 : 0));
    }
    return static_cast<std::int64_t>(most);
  }

  void add_ends(const std::vector<std::size_t>& row, std::vector<std::pair<std::string, Value>>& out) const {
    Tensor ends = full({most_ends_ + 1}, static_cast<double>(length_), DType::int32);
    std::int32_t* next = ends.values<std::int32_t>().data();
    std::int64_t end = 0;
    std::int64_t longest = length_ - tokens_in(row);
    *next++ = 0;
    for (const std::size_t piece : row) {
      end += pieces_[piece].count;
      longest = std::max(longest, pieces_[piece].count);
      *next++ = static_cast<std::int32_t>(end);
    }
    out.emplace_back("cu_seqlens", Value::tensor(std::move(ends)));
    out.emplace_back("max_seqlen", Value::integer(longest));
  }

  void plan(const PackSequencesOptions& options) {
    const std::vector<Header> headers = read_headers(options);
    for (std::size_t i = 0; i < headers.size(); ++i)
      add_pieces(static_cast<std::int64_t>(i), headers, options.too_long);
    rows_ = best_fit(pieces_, length_);
  }

  std::vector<Header> read_headers(const PackSequencesOptions& options) const {
    const LengthsOptions wanted{.key = options.key, .num_workers = options.num_workers, .stop = options.stop};
    std::vector<Header> out(static_cast<std::size_t>(dataset_.size()));
    data::visit_headers(dataset_, wanted, [&](std::int64_t index, const data::Layout& layout) {
      const data::TensorLayout& tensor = data::meant_tensor(layout, wanted);
      if (tensor.shape.rank() != 1) {
        throw Error(ErrorCode::kShapeMismatch,
                    core::format("the sequence has shape {}; sequences have one dimension", tensor.shape.to_string()));
      }
      out[static_cast<std::size_t>(index)] = {tensor.shape[0], tensor.dtype};
    });
    return out;
  }

  void add_pieces(std::int64_t index, const std::vector<Header>& headers, LongSequence too_long) {
    const Header& header = headers[static_cast<std::size_t>(index)];
    if (index == 0) dtype_ = header.dtype;
    if (header.dtype != dtype_) {
      throw data::of_sample(Error(ErrorCode::kDTypeMismatch,
                                  core::format("the sequence is {}, and that of sample 0 {}; write them in one "
                                               "type, or cast the dataset before",
                                               header.dtype.name(), dtype_.name())),
                            dataset_, index);
    }
    if (header.length > length_ && too_long == LongSequence::kRaise) {
      throw data::of_sample(
          Error(ErrorCode::kInvalidArgument,
                core::format("the sequence has {}, and a row {}; choose longer rows, or "
                             "with too_long whether it is cut or split",
                             core::counted(static_cast<std::uint64_t>(header.length), "element"), length_)),
          dataset_, index);
    }
    const std::int64_t end = too_long == LongSequence::kCut ? std::min(header.length, length_) : header.length;
    for (std::int64_t begin = 0; begin < end; begin += length_) {
      pieces_.push_back({index, begin, std::min(length_, end - begin), header.length});
    }
  }

  void copy(const SequencePiece& piece, std::byte* to, const data::Work& work) const {
    const Tensor sequence = sequence_of(piece, work);
    std::memcpy(to, sequence.data() + static_cast<std::size_t>(piece.begin) * dtype_.itemsize(),
                static_cast<std::size_t>(piece.count) * dtype_.itemsize());
  }

  /// The sequence itself, as its header said that it is.
  Tensor sequence_of(const SequencePiece& piece, const data::Work& work) const {
    try {
      const Value sample = dataset_.impl().value(piece.index, work);
      const Tensor sequence = tensor_in(sample).contiguous();
      if (sequence.rank() == 1 && sequence.shape()[0] == piece.whole && sequence.dtype() == dtype_) return sequence;
      throw Error(ErrorCode::kChanged,
                  core::format("the sequence is {} of shape {}, and was {} of shape ({},) when rows were planned; plan "
                               "them again",
                               sequence.dtype().name(), sequence.shape().to_string(), dtype_.name(), piece.whole));
    } catch (const data::SampleError& error) {
      throw data::of_sample(error.error(), dataset_, piece.index);
    } catch (const Error& error) {
      throw data::of_sample(error, dataset_, piece.index);
    }
  }

  /// As data::meant_tensor finds it in the layout.
  Tensor tensor_in(const Value& sample) const {
    data::StructureInterner structures;
    const data::LayoutPtr layout = data::layout_of_value(sample, structures);
    const LengthsOptions wanted{.key = key_};
    const auto number = &data::meant_tensor(*layout, wanted) - layout->tensors.data();
    std::vector<Tensor> tensors;
    data::collect_tensors(sample, tensors);
    return tensors[static_cast<std::size_t>(number)];
  }

  Dataset dataset_;
  std::int64_t length_;
  std::string key_;
  DType dtype_;
  Tensor filling_;
  std::int64_t most_ends_ = 0;  ///< of the ends of sequences that each row tells; 0: it tells none
  std::vector<SequencePiece> pieces_;
  std::vector<std::vector<std::size_t>> rows_;  ///< numbers of pieces
};

}  // namespace

Dataset pack_sequences(const Dataset& dataset, Integer length, const PackSequencesOptions& options) {
  if (length < 1) refuse(core::format("the length of rows is {}; it must be 1 or more", length));
  if (options.cu_seqlens && length > std::numeric_limits<std::int32_t>::max()) {
    refuse(core::format(
        "the length of rows is {}, more than cu_seqlens, which is int32, can count; choose shorter rows", length));
  }
  return Dataset(std::make_shared<SequenceRows>(dataset, length, options));
}

}  // namespace penstock
