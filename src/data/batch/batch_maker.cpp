// A batch is made in four steps: fetch the samples, plan where each tensor goes, take a block of memory, and complete
// it. Two guesses make this fast. The block is taken before the samples are fetched when the batch will be like the
// last one (BatchPrediction), so that files can be read straight into it. And files like earlier ones are taken to have
// the same layout. A wrong slot costs a copy, and where a large file has another layout the batch is made again without
// guesses, so guesses never change the result.

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
#include "data/dataset/with_runner.h"
#include "data/read_sample.h"
#include "data/sample/blame.h"
#include "data/sample/require_samples.h"
#include "data/sample/runner.h"
#include "data/sample/stream_items.h"
#include "data/sample/user_call.h"
#include "data/sample/value_samples.h"
#include "data/stream/cell.h"
#include "penstock/ops.h"
#include "value/graph.h"

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

/// Fetches the samples. The result points into the Scratch and to `indices`.
Fetched fetch(const Dataset& dataset, std::span<const std::int64_t> indices, const Work& work) {
  const std::span<Sample> samples = work.scratch.arena.array<Sample>(indices.size());
  // What sets single samples aside has to know each of them.
  const std::optional<EvenRows> rows =
      work.call.sets_aside ? std::nullopt : dataset.impl().even_rows(indices, work.scratch);
  if (rows) {
    std::fill(samples.begin(), samples.end(), Sample{.layout = rows->layout, .payloads = nullptr});
    return {dataset.impl(), indices, samples, true, rows->columns};
  }
  try {
    dataset.impl().fetch(indices, work, samples);
  } catch (const SampleError& error) {
    throw of_sample(error.error(), dataset, indices[error.position()]);
  }
  const Layout* first = samples[0].layout;
  const bool uniform = std::all_of(samples.begin(), samples.end(), [&](const Sample& s) { return s.layout == first; });
  return {dataset.impl(), indices, samples, uniform};
}

/// The same samples, of which the one at `position` cannot be had.
void note_failure(Fetched& fetched, std::size_t position, const Error& error, const CallContext& call,
                  Scratch& scratch) {
  const auto samples = scratch.arena.array<Sample>(fetched.size());
  std::copy(fetched.samples.begin(), fetched.samples.end(), samples.begin());
  fail(samples[position], position, error, call, scratch);
  fetched.samples = samples;
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
      shared_(max_idle_bytes,
              [runner = runner_of(dataset_)](std::size_t bytes) {
                return runner == nullptr || RunnerTurn::calls_here() ? Buffer{} : runner->batch_memory(bytes);
              }),
      target_(device),
      device_(has_functions() ? Device{} : device),
      policy_(on_error, dataset_.size() == kEndless || dataset_.impl().is_random()) {}

bool BatchMaker::has_functions() const {
  return collate_.rule().function() != nullptr || !dataset_.impl().batch_functions().empty();
}

void BatchMaker::take_from(std::shared_ptr<StreamFeed> feed) {
  const std::scoped_lock lock(feed_mutex_);
  feed_.swap(feed);  // the old feed is released after the lock, because that may close the program's generator
}

Batch BatchMaker::make(std::span<const std::int64_t> indices, std::int64_t number, Workspace& own,
                       const Grant& grant) const {
  const std::shared_ptr<StreamFeed> feed = [&] {
    const std::scoped_lock lock(feed_mutex_);
    return feed_;
  }();
  CallContext call = own.call;
  // Whether one bad sample ends the batch is decided here, for all that are below.
  call.sets_aside = policy_.is_lenient();
  call.keeps_order = collate_.rule().keeps_order();
  const Job job{number, call, own, grant};
  if (!feed) return make_of(indices, job);
  // After a stop, the feed may already be that of the next run.
  call.check_cancelled();
  const RunnerScope scope(runner_of(dataset_));  // of functions that stand before a filter
  const std::shared_ptr<const StreamBatch> given = feed->batch(number, own.work());
  if (given->error) throw *given->error;
  if (given->items.empty()) return {};
  StreamItems items(given->items);
  call.items = &items;
  std::vector<std::int64_t> numbers;
  for (const StreamItemPtr& item : given->items) numbers.push_back(item->number);
  Batch out = make_of(numbers, job);
  if (given->padded) {
    out.valid = full(Shape{out.size()}, true, DType::boolean);
    out.valid.values<bool>().back() = false;
  }
  return out;
}

Batch BatchMaker::make_of(std::span<const std::int64_t> indices, const Job& job) const {
  if (indices.empty()) throw Error(ErrorCode::kInvalidArgument, core::format("batch {} has no samples", job.number));
  check_indices(indices, dataset_, job.number);
  const core::StopScope stops(job.call.cancelled);
  // In every way out: the samples of this batch are the last to point into the Scratch.
  struct Reset {
    Workspace& own;
    ~Reset() {
      own.figures.clock.move_to(own.figures.stats);
      own.scratch.reset();
    }
  } const reset{job.own};
  try {
    if (!policy_.is_lenient()) return make_guessing(indices, job);
    const std::vector<std::int64_t> chosen = policy_.chosen(dataset_, indices, job.call.epoch_seed);
    Batch batch = chosen.empty() ? Batch{} : make_guessing(chosen, job);
    if (policy_.on_error() != OnError::kMask) return batch;
    if (batch.indices.empty()) throw none_left(policy_.listed());
    batch.valid = as_asked_for(indices, batch.indices);
    return batch;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory, core::format("there is no memory left to prepare batch {} ({}); use a smaller "
                                                      "batch_size or fewer workers",
                                                      job.number, core::counted(indices.size(), "sample")));
  }
}

/// Guesses about files change neither the batch nor the error. If one was wrong, or if anything fails in a batch that
/// used one, the batch is made again without them. So the error is the one that comes from parsing each file in turn.
Batch BatchMaker::make_guessing(std::span<const std::int64_t> indices, const Job& job) const {
  Guesses guesses(true);
  try {
    if (auto batch = try_once(indices, job, guesses)) return std::move(*batch);
  } catch (const Error& error) {
    // A stop is no fault of a guess. Neither is a file that changed, unless it was taken for one that it is not.
    const bool is_final =
        error.code() == ErrorCode::kCancelled || (error.code() == ErrorCode::kChanged && !guesses.refuted());
    if (!guesses.any() || is_final) throw;
  }
  job.own.scratch.reset();
  Guesses none;
  return *try_once(indices, job, none);
}

/// Nothing where a guess was wrong.
std::optional<Batch> BatchMaker::try_once(std::span<const std::int64_t> indices, const Job& job,
                                          Guesses& guesses) const {
  Work work{job.call, guesses, job.own.scratch, job.own.figures};
  const BatchPrediction& prediction = work.scratch.state<PlanState>(this).prediction;
  // The block comes before the samples where it can be foreseen: small files are then read straight into it.
  Buffer host;
  if (const std::uint64_t bytes = prediction.bytes(indices.size())) {
    host = take_block(bytes, indices.size(), job);
  }
  const Buffer foreseen = host;  // kept alive, because samples may be read into it
  if (foreseen) work.slots = prediction.expected(&dataset_.impl(), foreseen);
  work.figures.clock.start();
  const SamplePolicy::Asked asked = policy_.ask();
  Fetched fetched = fetch(dataset_, indices, work);
  work.figures.clock.lap(Stage::kDecode);
  // Once for each sample that turns out bad only when its payload is read; mostly once.
  while (true) {
    if (work.call.sets_aside) {
      const auto failed = [](const Sample& sample) { return sample.failed(); };
      // With a wrong guess the sample may be good.
      if (work.guesses.any() && std::any_of(fetched.samples.begin(), fetched.samples.end(), failed)) return {};
      require_supported(fetched);
      policy_.settle(dataset_, fetched, work, asked);
    }
    if (fetched.size() == 0) return Batch{};
    try {
      Batch batch = finish(fetched, host, job, work);
      return work.guesses.hold() ? std::optional(std::move(batch)) : std::nullopt;
    } catch (const SampleError& error) {
      // Missing memory or a server that is gone says nothing about the sample, and would empty every batch.
      const bool is_raised = !work.call.sets_aside || is_of_surroundings(error.error());
      if (is_raised) throw of_sample(error.error(), dataset_, fetched.indices[error.position()]);
      note_failure(fetched, error.position(), error.error(), work.call, work.scratch);
    }
  }
}

/// Throws where a sample of a kind that Penstock does not read is no bad sample (raise_unsupported).
void BatchMaker::require_supported(const Fetched& fetched) const {
  if (!raises_unsupported_) return;
  for (std::size_t i = 0; i < fetched.size(); ++i) {
    const Sample& sample = fetched.samples[i];
    const bool is_raised = sample.failed() && sample.failure->code() == ErrorCode::kUnsupported;
    if (is_raised) throw of_sample(*sample.failure, dataset_, fetched.indices[i]);
  }
}

/// Memory for a batch, once the loader's budget has room for it.
Buffer BatchMaker::take_block(std::uint64_t bytes, std::size_t samples, const Job& job) const {
  job.grant(bytes);
  StageClock& clock = job.own.figures.clock;
  clock.start();
  Buffer block = allocate(bytes, samples, job.number);
  clock.lap(Stage::kCollate);
  return block;
}

/// The batch of fetched samples, in `host` where that was foreseen and fits. Throws SampleError. Empty when a guess was
/// wrong.
Batch BatchMaker::finish(Fetched fetched, Buffer& host, const Job& job, const Work& work) const {
  auto& [plan, prediction, steps] = work.scratch.state<PlanState>(this);
  auto& [stats, clock] = work.figures;
  // Planned twice where the device takes over the last transforms, because that changes the types that are sent.
  plan_batch(fetched, collate_.rule(), plan, work.scratch.arena);
  const bool leaves_steps = device_ && steps.take(fetched, plan, work.scratch.arena);
  if (leaves_steps) plan_batch(fetched, collate_.rule(), plan, work.scratch.arena);
  prediction.note(fetched, plan);
  clock.lap(Stage::kCollate);
  // A batch unlike the last one gets another block. What was read into the first one is copied from there.
  if (!host || !fits(fetched, plan, {host.data(), host.size()})) {
    host = take_block(plan.bytes, fetched.size(), job);
  }
  complete_block(fetched, plan, host.data(), work);
  if (!work.guesses.hold()) return {};  // before the program's functions are called, or anything is sent
  clock.lap(Stage::kCopy);
  const std::span<const std::int64_t> indices = fetched.indices;
  Batch batch(
      device_ ? send(fetched, plan, host, leaves_steps ? &steps : nullptr, job) : batch_value(fetched, plan, host),
      {indices.begin(), indices.end()});
  clock.lap(Stage::kCollate);
  if (has_functions()) batch.value = call_functions(std::move(batch.value), indices, job);
  stats.payload_bytes += plan.payload;
  ++stats.batches;
  stats.samples += indices.size();
  return batch;
}

/// The batch as the program's functions give it: collation's first, then those of whole batches, on the host.
Value BatchMaker::call_functions(Value batch, std::span<const std::int64_t> indices, const Job& job) const {
  StageClock& clock = job.own.figures.clock;
  const auto& [seed, epoch] = job.call.epoch_seed;
  try {
    if (const detail::CollateFunction* const function = collate_.rule().function()) {
      std::vector<Value> samples;
      samples.reserve(batch.size());
      for (std::size_t i = 0; i < batch.size(); ++i) samples.push_back(batch[i]);
      batch = call_user("the function of collation", [&] { return (*function)(samples); });
    }
    const RandomKey key{.seed = seed, .epoch = epoch, .index = indices.front(), .batch = indices};
    for (const UserFunction& function : dataset_.impl().batch_functions()) batch = function(batch, key);
  } catch (const Error& error) {
    throw with_batch(error, indices, job.number);
  }
  clock.lap(Stage::kFunction);
  if (target_.type != DeviceType::kCpu) batch = batch.to(target_);
  clock.lap(Stage::kSend);
  return batch;
}

Buffer BatchMaker::allocate(std::uint64_t bytes, std::size_t samples, std::int64_t number) const {
  try {
    if (device_) return DeviceBatches::host_block(bytes);
    Buffer shared = shared_.take(static_cast<std::size_t>(bytes));
    return shared ? std::move(shared) : pool_.take(static_cast<std::size_t>(bytes));
  } catch (const Error& error) {
    throw with_batch(error, bytes, samples, number);
  }
}

/// The batch on its device: one copy of the block, and there the transforms that were left for it.
Value BatchMaker::send(const Fetched& fetched, const BatchPlan& plan, const Buffer& host, DeviceSteps* steps,
                       const Job& job) const {
  try {
    const Buffer block = device_.send(host);
    DeviceSteps::Made made;
    if (steps != nullptr) {
      const StreamGuard guard(device_.steps());
      made = steps->run(plan, block);
    }
    job.own.figures.clock.lap(Stage::kSend);
    return batch_value(fetched, plan, block, made);
  } catch (const Error& error) {
    throw with_batch(error, host.size(), fetched.size(), job.number);
  }
}

Value copied_sample(const detail::DatasetImpl& dataset, std::int64_t index, const Work& work) {
  auto& [scratch, plan] = work.scratch.state<SingleState>(&dataset);
  CallContext call = work.call;
  call.sets_aside = false;
  call.crew = nullptr;
  Guesses none;
  const Work single{call, none, scratch, work.figures};
  struct Reset {
    Scratch& scratch;
    ~Reset() { scratch.reset(); }
  } const reset{scratch};
  Sample sample;
  dataset.fetch({&index, 1}, single, {&sample, 1});
  const Fetched fetched{dataset, {&index, 1}, {&sample, 1}, true};
  plan_single(fetched, plan, call.keeps_order ? SlotOrder::kAsStored : SlotOrder::kRows);
  const Buffer block = Buffer::allocate(static_cast<std::size_t>(plan.bytes));
  complete_block(fetched, plan, block.data(), single);
  Value out = batch_value(fetched, plan, block);
  work.figures.clock.lap(Stage::kCopy, index);
  return out;
}

Value read_sample(const Dataset& dataset, std::int64_t given, bool keeps_order, const EpochSeed& seed) {
  require_samples(dataset, "a sample by itself");
  const std::int64_t index = from_start(given, dataset.size());
  Workspace own;
  own.call.keeps_order = keeps_order;
  own.call.epoch_seed = seed;
  try {
    Value out = dataset.impl().value(index, own.work());
    static_cast<void>(layout_of_value(out, own.scratch.structures));
    // The caller may write to it, and must not change what a dataset of the program keeps.
    return without_sharing(std::move(out));
  } catch (const SampleError& error) {
    throw of_sample(error.error(), dataset, index);
  } catch (const Error& error) {
    throw of_sample(dataset.impl().samples_are_files() ? error.within({.path = dataset.impl().describe(index)}) : error,
                    dataset, index);
  }
}

}  // namespace penstock::data
