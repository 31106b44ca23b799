// A batch is made in four steps: locate the samples, plan where each tensor goes, take a block of memory, and fill it.
// Two guesses make this fast. The block is taken before the samples are located when the batch will be like the last
// one (BatchPrediction), so that files can be read straight into it. And files like earlier ones are taken to have the
// same layout. If a guess about a file was wrong, the batch is made again without guesses, so guesses never change the
// result.

#include "data/batch/batch_maker.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/stop_scope.h"
#include "core/text.h"
#include "data/batch/batch_value.h"
#include "data/batch/mover.h"
#include "data/batch/prediction.h"
#include "data/collate/rule.h"
#include "data/sample/blame.h"
#include "data/sample/user_call.h"
#include "data/sample/value_samples.h"
#include "data/stream/cell.h"
#include "penstock/ops.h"

namespace penstock::data {

namespace {

struct PlanState final : Scratch::State {
  BatchPlan plan;
  BatchPrediction prediction;
  DeviceSteps steps;
};

/// Memory in which a thread copies one sample at a time. It is separate from that of the batch at hand, because it is
/// reset after each sample.
struct SingleState final : Scratch::State {
  Scratch scratch;
  BatchPlan plan;
};

/// While it lives, the inner Scratch works under the settings, the clock and the statistics of the outer one.
class BorrowedContext {
 public:
  BorrowedContext(Scratch& outer, Scratch& inner) : outer_(outer), inner_(inner) {
    inner.verify = outer.verify;
    inner.whole_file_bytes = outer.whole_file_bytes;
    inner.epoch_seed = outer.epoch_seed;
    inner.cancelled = outer.cancelled;
    inner.items = outer.items;
    swap();
  }
  ~BorrowedContext() {
    swap();
    inner_.reset();
  }
  BorrowedContext(const BorrowedContext&) = delete;
  BorrowedContext& operator=(const BorrowedContext&) = delete;

 private:
  void swap() {
    std::swap(outer_.clock, inner_.clock);
    std::swap(outer_.stats, inner_.stats);
  }

  Scratch& outer_;
  Scratch& inner_;
};

/// The error of a function of whole batches, with the batch and its first samples in front.
Error with_batch(const Error& error, std::span<const std::int64_t> indices, std::int64_t number) {
  if (error.code() == ErrorCode::kCancelled) return error;
  constexpr std::size_t kNamed = 4;
  std::string samples;
  for (const std::int64_t index : indices.first(std::min(indices.size(), kNamed))) {
    samples += core::format("{}{}", samples.empty() ? "" : ", ", index);
  }
  return error.prefixed(core::format("batch {} ({} {}{}): ", number, indices.size() == 1 ? "sample" : "samples",
                                     samples, indices.size() > kNamed ? ", ..." : ""));
}

/// An error about the memory of a batch, with the batch and its size in front.
Error with_batch(const Error& error, std::uint64_t bytes, std::size_t samples, std::int64_t number) {
  return error.prefixed(
      core::format("batch {} ({}, {}): ", number, core::counted(samples, "sample"), core::format_bytes(bytes)));
}

void check_indices(std::span<const std::int64_t> indices, const Dataset& dataset, std::int64_t number) {
  const std::int64_t size = dataset.size();
  for (const std::int64_t index : indices) {
    if (index >= 0 && index < size) continue;
    throw Error(ErrorCode::kIndexOutOfRange,
                core::format("batch {} asks for sample {}, but the dataset has {}, counted from 0; check the sampler",
                             number, index, core::counted(static_cast<std::uint64_t>(size), "sample")));
  }
}

/// Locates the samples. The result points into the Scratch and to `indices`.
Located locate(const Dataset& dataset, std::span<const std::int64_t> indices, Scratch& scratch) {
  const std::span<Sample> samples = scratch.arena.array<Sample>(indices.size());
  // What sets single samples aside has to know each of them.
  const std::optional<EvenRows> rows = scratch.sets_aside ? std::nullopt : dataset.impl().even_rows(indices, scratch);
  if (rows) {
    std::fill(samples.begin(), samples.end(), Sample{.layout = rows->layout, .payloads = nullptr});
    return {dataset.impl(), indices, samples, true, rows->columns};
  }
  try {
    dataset.impl().locate(indices, scratch, samples);
  } catch (const SampleError& error) {
    throw of_sample(error.error(), dataset, indices[error.position()]);
  }
  const Layout* first = samples[0].layout;
  const bool uniform = std::all_of(samples.begin(), samples.end(), [&](const Sample& s) { return s.layout == first; });
  return {dataset.impl(), indices, samples, uniform};
}

/// The same samples, of which the one at `position` cannot be had.
void note_failure(Located& located, std::size_t position, const Error& error, Scratch& scratch) {
  const auto samples = scratch.arena.array<Sample>(located.size());
  std::copy(located.samples.begin(), located.samples.end(), samples.begin());
  fail(samples[position], position, error, scratch);
  located.samples = samples;
}

Tensor as_asked_for(std::span<const std::int64_t> wanted, std::span<const std::int64_t> chosen) {
  Tensor out = Tensor::empty(Shape{static_cast<std::int64_t>(wanted.size())}, DType::boolean);
  const auto flags = out.values<bool>();
  for (std::size_t i = 0; i < wanted.size(); ++i) flags[i] = wanted[i] == chosen[i];
  return out;
}

}  // namespace

BatchMaker::BatchMaker(Dataset dataset, Collate collate, Device device, std::size_t max_idle_bytes, OnError on_error)
    : dataset_(std::move(dataset)),
      collate_(std::move(collate)),
      pool_(Device{}, max_idle_bytes),
      target_(device),
      device_(has_functions() ? Device{} : device),
      policy_(on_error, dataset_.size() == kEndless) {}

bool BatchMaker::has_functions() const {
  return collate_.rule().function() != nullptr || !dataset_.impl().batch_functions().empty();
}

void BatchMaker::take_from(std::shared_ptr<StreamFeed> feed) {
  const std::scoped_lock lock(feed_mutex_);
  feed_.swap(feed);  // the old feed is released after the lock, because that may close the program's generator
}

Batch BatchMaker::make(std::span<const std::int64_t> indices, std::int64_t number, Scratch& scratch,
                       const Grant& grant) const {
  const std::shared_ptr<StreamFeed> feed = [&] {
    const std::scoped_lock lock(feed_mutex_);
    return feed_;
  }();
  if (!feed) return make_of(indices, number, scratch, grant);
  // After a stop, the feed may already be that of the next run.
  scratch.check_cancelled();
  return make_of(*feed, number, scratch, grant);
}

Batch BatchMaker::make_of(StreamFeed& feed, std::int64_t number, Scratch& scratch, const Grant& grant) const {
  const std::shared_ptr<const StreamBatch> given = feed.batch(number, scratch);
  if (given->error) throw *given->error;
  if (given->items.empty()) return {};
  const Lending lending(scratch, given->items);
  std::vector<std::int64_t> numbers;
  for (const StreamItemPtr& item : given->items) numbers.push_back(item->number);
  Batch out = make_of(numbers, number, scratch, grant);
  if (given->padded) {
    out.valid = full(Shape{out.size()}, true, DType::boolean);
    out.valid.values<bool>().back() = false;
  }
  return out;
}

Batch BatchMaker::make_of(std::span<const std::int64_t> indices, std::int64_t number, Scratch& scratch,
                          const Grant& grant) const {
  if (indices.empty()) throw Error(ErrorCode::kInvalidArgument, core::format("batch {} has no samples", number));
  check_indices(indices, dataset_, number);
  const core::StopScope stops(scratch.cancelled);
  struct Reset {
    Scratch& scratch;
    ~Reset() {
      scratch.clock.move_to(scratch.stats);
      scratch.reset();
      scratch.sets_aside = false;
    }
  } const reset{scratch};
  try {
    if (!policy_.is_lenient()) return make_assuming(indices, number, scratch, grant);
    scratch.sets_aside = true;
    const std::vector<std::int64_t> chosen = policy_.chosen(dataset_, indices, scratch.epoch_seed);
    Batch batch = chosen.empty() ? Batch{} : make_assuming(chosen, number, scratch, grant);
    if (policy_.on_error() != OnError::kMask) return batch;
    if (batch.indices.empty()) throw policy_.none_left();
    batch.valid = as_asked_for(indices, batch.indices);
    return batch;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory, core::format("there is no memory left to prepare batch {} ({}); use a smaller "
                                                      "batch_size or fewer workers",
                                                      number, core::counted(indices.size(), "sample")));
  }
}

/// Guesses about files change neither the batch nor the error. If one was wrong, or if anything fails in a batch that
/// used one, the batch is made again without them. So the error is the one that comes from parsing each file in turn.
Batch BatchMaker::make_assuming(std::span<const std::int64_t> indices, std::int64_t number, Scratch& scratch,
                                const Grant& grant) const {
  scratch.may_assume = true;
  try {
    return prepare(indices, number, scratch, grant);
  } catch (const Misjudged&) {
    // A guess was wrong: make the batch again without any.
  } catch (const Error& error) {
    const bool is_final = error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kChanged;
    if (scratch.assumed == 0 || is_final) throw;
  }
  scratch.reset();
  scratch.may_assume = false;
  return prepare(indices, number, scratch, grant);
}

Batch BatchMaker::prepare(std::span<const std::int64_t> indices, std::int64_t number, Scratch& scratch,
                          const Grant& grant) const {
  auto& [plan, prediction, steps] = scratch.state<PlanState>(this);
  Buffer host;
  if (const std::uint64_t bytes = prediction.bytes(indices.size())) {
    host = take(bytes, indices.size(), number, scratch, grant);
    scratch.expected = prediction.expected(&dataset_.impl(), host.data());
  }
  const Buffer foreseen = host;  // kept alive, because samples may be read into it
  scratch.clock.start();
  Located located = locate(dataset_, indices, scratch);
  scratch.clock.lap(Stage::kDecode);
  while (true) {
    if (scratch.sets_aside) settle(located, scratch);
    if (located.size() == 0) return {};
    try {
      return fill(located, host, number, scratch, grant);
    } catch (const SampleError& error) {
      const bool is_raised = !scratch.sets_aside || is_of_surroundings(error.error());
      if (is_raised) throw of_sample(error.error(), dataset_, located.indices[error.position()]);
      note_failure(located, error.position(), error.error(), scratch);
    }
  }
}

void BatchMaker::settle(Located& located, Scratch& scratch) const {
  for (std::size_t i = 0; i < located.size(); ++i) {
    if (!located.samples[i].failed()) continue;
    if (scratch.assumed > 0) throw Misjudged();  // the sample may be good
    const Error& failure = *located.samples[i].failure;
    const bool is_raised = raises_unsupported_ && failure.code() == ErrorCode::kUnsupported;
    if (is_raised) throw of_sample(failure, dataset_, located.indices[i]);
  }
  policy_.settle(dataset_, located, scratch);
}

Buffer BatchMaker::take(std::uint64_t bytes, std::size_t samples, std::int64_t number, Scratch& scratch,
                        const Grant& grant) const {
  grant(bytes);
  scratch.clock.start();
  Buffer block = allocate(bytes, samples, number);
  scratch.clock.lap(Stage::kCollate);
  return block;
}

/// The batch of located samples, in `host` where that was foreseen and fits. Throws SampleError.
Batch BatchMaker::fill(Located located, Buffer& host, std::int64_t number, Scratch& scratch,
                       const Grant& grant) const {
  auto& [plan, prediction, steps] = scratch.state<PlanState>(this);
  plan_batch(located, collate_.rule(), plan, scratch.arena);
  const bool leaves_steps = device_ && steps.take(located, plan, scratch);
  if (leaves_steps) plan_batch(located, collate_.rule(), plan, scratch.arena);
  prediction.note(located, plan);
  scratch.clock.lap(Stage::kCollate);
  if (!host || !fits(located, plan, {host.data(), host.size()})) {
    host = take(plan.bytes, located.size(), number, scratch, grant);
  }
  fill_block(located, plan, host.data(), scratch);
  if (scratch.confirmed != scratch.assumed) throw Misjudged();
  scratch.clock.lap(Stage::kCopy);
  const std::span<const std::int64_t> indices = located.indices;
  Batch batch(device_ ? sent(located, plan, host, leaves_steps ? &steps : nullptr, number, scratch)
                      : batch_value(located, plan, host),
              {indices.begin(), indices.end()});
  scratch.clock.lap(Stage::kCollate);
  if (has_functions()) batch.value = called(std::move(batch.value), indices, number, scratch);
  scratch.stats.payload_bytes += plan.payload;
  ++scratch.stats.batches;
  scratch.stats.samples += indices.size();
  return batch;
}

Value BatchMaker::called(Value batch, std::span<const std::int64_t> indices, std::int64_t number,
                         Scratch& scratch) const {
  try {
    batch = result_of_functions(std::move(batch), indices, scratch);
  } catch (const Error& error) {
    throw with_batch(error, indices, number);
  }
  scratch.clock.lap(Stage::kFunction);
  if (target_.type != DeviceType::kCpu) batch = batch.to(target_);
  scratch.clock.lap(Stage::kSend);
  return batch;
}

Value BatchMaker::result_of_functions(Value batch, std::span<const std::int64_t> indices, Scratch& scratch) const {
  if (const detail::CollateFunction* const function = collate_.rule().function()) {
    std::vector<Value> samples;
    samples.reserve(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) samples.push_back(batch[i]);
    batch = call_user("the function of collation", [&] { return (*function)(samples); });
  }
  const RandomKey key{.seed = scratch.epoch_seed.seed, .epoch = scratch.epoch_seed.epoch, .index = indices.front()};
  for (const UserFunction& function : dataset_.impl().batch_functions()) batch = function(batch, key);
  return batch;
}

Buffer BatchMaker::allocate(std::uint64_t bytes, std::size_t samples, std::int64_t number) const {
  try {
    return device_ ? DeviceBatches::host_block(bytes) : pool_.take(bytes);
  } catch (const Error& error) {
    throw with_batch(error, bytes, samples, number);
  }
}

Value BatchMaker::sent(const Located& located, const BatchPlan& plan, const Buffer& host, DeviceSteps* steps,
                       std::int64_t number, Scratch& scratch) const {
  try {
    const Buffer block = device_.send(host);
    DeviceSteps::Made made;
    if (steps != nullptr) {
      const StreamGuard guard(device_.steps());
      made = steps->run(plan, block);
    }
    scratch.clock.lap(Stage::kSend);
    return batch_value(located, plan, block, made);
  } catch (const Error& error) {
    throw with_batch(error, host.size(), located.size(), number);
  }
}

Value copied_sample(const detail::DatasetImpl& dataset, std::int64_t index, Scratch& scratch) {
  auto& [inner, plan] = scratch.state<SingleState>(&dataset);
  const BorrowedContext borrowed(scratch, inner);
  Sample sample;
  dataset.locate({&index, 1}, inner, {&sample, 1});
  const Located located{dataset, {&index, 1}, {&sample, 1}, true};
  plan_single(located, plan);
  const Buffer block = Buffer::allocate(static_cast<std::size_t>(plan.bytes));
  fill_block(located, plan, block.data(), inner);
  Value out = batch_value(located, plan, block);
  inner.clock.lap(Stage::kCopy, index);
  return out;
}

Value read_sample(const Dataset& dataset, std::int64_t index) {
  Scratch scratch;
  return read_sample(dataset, index, scratch);
}

Value read_sample(const Dataset& dataset, std::int64_t index, Scratch& scratch) {
  try {
    Value out = dataset.impl().value(index, scratch);
    static_cast<void>(layout_of_value(out, scratch.structures));
    return out;
  } catch (const SampleError& error) {
    throw of_sample(error.error(), dataset, index);
  } catch (const Error& error) {
    throw of_sample(
        dataset.impl().samples_are_files() ? error.within({.path = dataset.impl().describe(index)}) : error, dataset,
        index);
  }
}

}  // namespace penstock::data
