#pragma once

/// Samples without a length: what a function of yours gives one by one until it says that there are no more. `stream`
/// makes one, members transform, shuffle, cut and filter it, `mix` mixes several, and a DataLoader makes batches of it,
/// with workers, as of any dataset.
///
/// What is serial and what is not: the source, `shuffle`, `take`, `skip`, `repeat` and `mix` are walked by one thread
/// at a time, in order, and so are functions of `filter` and what stands before them. `map` and native transforms that
/// no `filter` follows run in all workers at once. Put costly steps there.
///
/// Where a loader goes on: its position says how many batches were taken and how many samples were read of the sources
/// (LoaderPosition::read). What lay in the window of a shuffle follows from both and the seeds, so that no list is
/// kept. To go on, the stream is read again up to that place without calling functions of `map`; a source that can
/// begin anywhere is not read again where no shuffle, filter, mixture or repetition lies before the loader. It is
/// kChanged when another number of samples was read on the way, or when the stream ends before.

#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/mix.h"
#include "penstock/value.h"

namespace penstock {

namespace data {
class StreamNode;
class StreamWalk;
}  // namespace data

namespace detail {
/// The next sample, or nothing at the end.
using NextSample = std::function<std::optional<Value>()>;

template <class Type>
struct OptionalSample : std::false_type {};
template <SampleLike Sample>
struct OptionalSample<std::optional<Sample>> : std::true_type {};

/// Gives a sample with each call, or nothing at the end.
template <class Function>
concept NextFunction = std::invocable<Function&> && OptionalSample<std::invoke_result_t<Function&>>::value;
/// Gives such a function, which begins at the first sample.
template <class Function>
concept OpenFunction = std::invocable<Function&> && NextFunction<std::invoke_result_t<Function&>>;
/// Gives such a function, which begins at the sample of this number.
template <class Function>
concept OpenAtFunction =
    std::invocable<Function&, std::int64_t> && NextFunction<std::invoke_result_t<Function&, std::int64_t>>;
template <class Function>
concept StreamFunction = NextFunction<Function> || OpenFunction<Function> || OpenAtFunction<Function>;

template <NextFunction Function>
NextSample next_sample(Function function) {
  return [f = std::make_shared<Function>(std::move(function))]() -> std::optional<Value> {
    auto sample = (*f)();
    if (!sample) return std::nullopt;
    return as_value(std::move(*sample));
  };
}

enum class Begins : std::uint8_t { kOnce, kAnew, kAnywhere };
}  // namespace detail

struct StreamOptions {
  /// What the samples are, for messages: "clips.tar" gives "clips.tar[7]".
  std::string name = "<stream>";
};

struct WindowOptions {
  /// Bytes of tensors that the window may hold. Unset: half of the memory that this process may use.
  std::optional<Integer> memory = {};
};

/// Samples that come one by one. A value handle on an immutable description: copies cost nothing, and any number of
/// threads may use it. Each loader, and each range-for, reads the source from its beginning.
class SampleStream : public Transforms<SampleStream> {
 public:
  /// No samples.
  SampleStream();
  SampleStream(const SampleStream&) = default;
  SampleStream(SampleStream&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  SampleStream& operator=(const SampleStream&) & = default;
  SampleStream& operator=(SampleStream&&) & noexcept = default;
  ~SampleStream() = default;

  /// The first `count` samples; the one behind them is not asked for. kInvalidArgument below 0.
  SampleStream take(Integer count) const;
  /// All but the first `count` samples. kInvalidArgument below 0.
  SampleStream skip(Integer count) const;
  /// So many times one behind the other; without a number for ever. Samples are numbered on, so that random steps draw
  /// anew each time. kInvalidArgument below 0, and for a source that cannot begin again. A stream without samples that
  /// is repeated for ever is kInvalidArgument when it is read.
  SampleStream repeat(std::optional<Integer> times = {}) const;
  /// A window of so many samples is kept full, and each sample is drawn from it: by `seed`, the loader's seed and the
  /// epoch, the same for any number of workers. kInvalidArgument for a window below 1. kOutOfMemory when the samples in
  /// the window need more than WindowOptions::memory.
  SampleStream shuffle(Integer window, std::uint64_t seed = 0, const WindowOptions& options = {}) const;
  /// The samples for which `keep` is true, as they come. They keep their numbers.
  template <detail::TakesSample Function>
  SampleStream filter(Function keep) const {
    return filter_plain([f = detail::kept(std::move(keep))](const Value& sample) {
      return static_cast<bool>(detail::call_with(*f, sample));
    });
  }
  /// As Dataset::map; the index that random numbers are made from is the number of the sample.
  template <detail::MapFunction Function>
  SampleStream map(Function function, const MapOptions& options = {}) const {
    return with(samples_.map(std::move(function), options));
  }

  // Native transforms are the members of Transforms (transforms.h).

  /// Whether it can be read more than once.
  bool can_begin_again() const noexcept;

  /// For range-for: reads from the beginning, in this thread, as epoch 0 of seed 0. A sample is asked for when it is
  /// looked at or compared with the end. Errors name the sample.
  class Iterator {
   public:
    using value_type = Value;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using pointer = const Value*;
    using reference = const Value&;

    const Value& operator*() const& { return *operator->(); }
    Value operator*() const&& { return *operator->(); }
    const Value* operator->() const& {
      look();
      return &*sample_;
    }
    const Value* operator->() const&& = delete;
    Iterator& operator++() {
      look();
      sample_.reset();
      is_due_ = true;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) {
      it.look();
      return !it.sample_;
    }

   private:
    friend class SampleStream;
    explicit Iterator(std::shared_ptr<data::StreamWalk> walk) : walk_(std::move(walk)) {}
    void look() const;
    std::shared_ptr<data::StreamWalk> walk_;
    mutable bool is_due_ = true;
    mutable std::optional<Value> sample_;
  };
  Iterator begin() const;
  std::default_sentinel_t end() const noexcept { return {}; }

  /// For the library itself: where samples come from, and what is done to each of them, as a dataset of their numbers.
  SampleStream(std::shared_ptr<const data::StreamNode> node, Dataset samples) noexcept
      : node_(std::move(node)), samples_(std::move(samples)) {}
  explicit SampleStream(std::shared_ptr<const data::StreamNode> node);
  const std::shared_ptr<const data::StreamNode>& node() const& noexcept { return node_; }
  const std::shared_ptr<const data::StreamNode> node() const&& noexcept { return node_; }
  const Dataset& samples() const& noexcept { return samples_; }
  Dataset samples() const&& noexcept { return samples_; }
  SampleStream with(Dataset samples) const { return {node_, std::move(samples)}; }
  SampleStream transformed(detail::steps::TransformOp op, const std::vector<std::string>& keys) const {
    return with(samples_.transformed(std::move(op), keys));
  }
  SampleStream filter_plain(std::function<bool(const Value&)> keep) const;

 private:
  std::shared_ptr<const data::StreamNode> node_;
  Dataset samples_;
};

namespace detail {
SampleStream stream_of(std::function<NextSample(std::int64_t)> open, Begins begins, const StreamOptions& options);
}

/// Samples are what a function gives, called by one thread at a time until it gives nothing: Values or Tensors, as
/// DatasetInterface::get says it. What they point to is the stream's from then on, and must not be written to. Three
/// kinds of function will do:
/// - `std::optional<Value>()` gives the next sample. Such a stream can be read once: a second epoch, or a position in
///   one that is already being read, is kInvalidArgument.
/// - one without arguments that gives such a function, which begins at the first sample: called for each epoch.
/// - one that takes a number and gives such a function, which begins at the sample of that number.
/// What the function throws arrives from the loader as an Error that names the sample, with any OnError; the loader
/// asks for the sample behind it next.
template <detail::StreamFunction Function>
SampleStream stream(Function function, const StreamOptions& options = {}) {
  const auto shared = std::make_shared<Function>(std::move(function));
  if constexpr (detail::OpenAtFunction<Function>) {
    return detail::stream_of([shared](std::int64_t start) { return detail::next_sample((*shared)(start)); },
                             detail::Begins::kAnywhere, options);
  } else if constexpr (detail::OpenFunction<Function>) {
    return detail::stream_of([shared](std::int64_t) { return detail::next_sample((*shared)()); }, detail::Begins::kAnew,
                             options);
  } else {
    return detail::stream_of([shared](std::int64_t) { return detail::next_sample([shared] { return (*shared)(); }); },
                             detail::Begins::kOnce, options);
  }
}
/// The samples of a dataset, in their order.
SampleStream stream(const Dataset& dataset);

inline SampleStream take(const SampleStream& stream, Integer count) { return stream.take(count); }
inline SampleStream skip(const SampleStream& stream, Integer count) { return stream.skip(count); }
inline SampleStream repeat(const SampleStream& stream, Integer times) { return stream.repeat(times); }
/// Samples of several streams in shares of these weights, as the mixture of datasets. Where the mixture ends with
/// MixEnd::kAll, or by its size, streams that have ended begin again, which is kInvalidArgument for one that cannot;
/// that a stream has ended is known when its next sample is due. The samples are numbered anew, in their order.
SampleStream mix(const std::vector<SampleStream>& streams, const std::vector<double>& weights,
                 const MixOptions& options = {});

}  // namespace penstock
