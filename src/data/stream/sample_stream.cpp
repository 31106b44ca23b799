#include "penstock/sample_stream.h"

#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "data/dataset_impl.h"
#include "data/sample/blame.h"
#include "data/sample/require_samples.h"
#include "data/sample/value_samples.h"
#include "data/stream/cell.h"
#include "data/stream/node.h"
#include "penstock/error.h"

namespace penstock {

std::string data::StreamNode::identity() const { return core::escaped(name()); }
Dataset data::StreamNode::samples() const { return stream_cell(name()); }

data::SampleError data::renumbered(const SampleError& error, std::string_view name, std::int64_t number) {
  return {static_cast<std::size_t>(number), error.error().prefixed(core::format("{}[{}]: ", name, error.position()))};
}

SampleStream::SampleStream() : SampleStream(stream(Dataset())) {}
SampleStream::SampleStream(std::shared_ptr<const data::StreamNode> node) : SampleStream(node, node->samples()) {}

SampleStream SampleStream::take(Integer count) const { return {data::taken_node(node_, count), samples_}; }
SampleStream SampleStream::skip(Integer count) const { return {data::skipped_node(node_, count), samples_}; }
SampleStream SampleStream::repeat(std::optional<Integer> times) const {
  return {data::repeated_node(node_, times), samples_};
}
SampleStream SampleStream::shuffle(Integer window, std::uint64_t seed, const WindowOptions& options) const {
  return {data::shuffled_node(node_, window, seed, options), samples_};
}
SampleStream SampleStream::filter_plain(std::function<bool(const Value&)> keep) const {
  return SampleStream(data::filtered_node(
      *this, [f = std::move(keep)](const Value& sample, const data::RandomKey&) { return Value::boolean(f(sample)); }));
}
bool SampleStream::can_begin_again() const noexcept { return node_->can_begin_again(); }

SampleStream detail::stream_of(std::function<NextSample(std::int64_t)> open, Begins begins,
                               const StreamOptions& options) {
  return SampleStream(data::source_node(std::move(open), begins, options));
}

SampleStream stream(const Dataset& dataset) {
  data::require_samples(dataset, "a stream of its samples");
  if (const auto in_order = dataset.impl().in_order()) return in_order();
  return SampleStream(data::dataset_node(dataset));
}

SampleStream mix(const std::vector<SampleStream>& streams, const std::vector<double>& weights,
                 const MixOptions& options) {
  return SampleStream(data::mixed_node(streams, weights, options));
}

data::StreamWalk::StreamWalk(const SampleStream& stream, const EpochSeed& seed, std::int64_t part, std::int64_t parts,
                             bool keeps_order)
    : stream_(stream), reader_(stream.node()->open(seed)), parts_(parts), before_(part) {
  require_samples(stream.samples(), "a sample by itself");
  own_.call.epoch_seed = seed;
  own_.call.keeps_order = keeps_order;
}

data::StreamItemPtr data::StreamWalk::next_item() {
  while (true) {
    StreamItemPtr item;
    const bool is_own = before_ == 0;
    const auto count = [&] { before_ = is_own ? parts_ - 1 : before_ - 1; };
    try {
      item = reader_->next(own_.work());
    } catch (const SampleError& error) {
      count();
      throw of_sample(error.error(), stream_.samples(), static_cast<std::int64_t>(error.position()));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) count();
      throw;
    }
    count();
    if (is_own || !item) return item;
  }
}

std::optional<Value> data::StreamWalk::next() {
  struct Reset {
    Scratch& scratch;
    ~Reset() { scratch.reset(); }
  } const reset{own_.scratch};
  if (!item_) item_ = next_item();
  if (!item_) return std::nullopt;
  const auto fail = [this](const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw error;  // the item is still to come
    throw of_sample(error, stream_.samples(), std::exchange(item_, nullptr)->number);
  };
  Value out;
  try {
    out = made_of(stream_, item_, own_.work());
    static_cast<void>(layout_of_value(out, own_.scratch.structures));
  } catch (const SampleError& error) {
    fail(error.error());
  } catch (const Error& error) {
    fail(error);
  }
  item_ = nullptr;
  return out;
}

SampleStream::Iterator SampleStream::begin() const { return Iterator(std::make_shared<data::StreamWalk>(*this)); }

void SampleStream::Iterator::look() const {
  if (is_due_) sample_ = walk_->next();
  is_due_ = false;
}

}  // namespace penstock
