// Functions of the program behind a dataset. One of samples is called where samples are fetched, in the worker that
// prepares the batch: so order, prefetching, limits of memory, positions and errors are those of every dataset, and a
// function that follows another is given its result without a copy. One of batches travels with the dataset, as
// DatasetImpl::batch_functions, to the BatchMaker, which calls it behind collation.
#include "data/dataset/map.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/format.h"
#include "data/forwarding.h"
#include "data/sample/require_samples.h"
#include "data/sample/runner.h"
#include "data/sample/value_samples.h"
#include "ops/philox.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock {

namespace {

using data::RandomKey;
using data::UserFunction;
using data::Work;

class Mapped : public data::Forwarding {
 public:
  Mapped(Dataset dataset, UserFunction function, bool random)
      : Forwarding(std::move(dataset)),
        function_(std::move(function)),
        stage_(below().random_stages()),
        stages_(stage_ + (random ? 1 : 0)) {}

  std::uint32_t random_stages() const noexcept override { return stages_; }

 protected:
  UserFunction function_;
  std::uint32_t stage_;
  std::uint32_t stages_;
};

/// What `runner` makes of the samples of `under` by that run.
std::vector<data::Called> called_by(data::Runner& runner, std::span<const data::Runner::Step> run,
                                    const detail::DatasetImpl& under, std::span<const std::int64_t> indices,
                                    const Work& work, const data::ExpectedSlots& slots) {
  std::vector<data::Called> out(indices.size());
  std::vector<Value> samples;
  std::vector<std::int64_t> numbers;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    try {
      samples.push_back(under.value(indices[i], work));
      numbers.push_back(indices[i]);
      places.push_back(i);
    } catch (const data::SampleError& error) {
      out[i].error = error.error();
    } catch (const Error& error) {
      out[i].error = error;
    }
    if (out[i].error && !work.call.sets_aside) break;  // those behind it are not asked for
  }
  std::vector<data::Called> called;
  if (!samples.empty()) {
    // Behind one that cannot be had, samples are not at the place of their slot.
    const bool in_order = samples.size() == indices.size();
    called = runner.call(run, samples, numbers, work.call.epoch_seed, in_order ? slots : data::ExpectedSlots{});
  }
  for (std::size_t i = 0; i < places.size(); ++i) out[places[i]] = std::move(called[i]);
  work.figures.clock.lap(data::Stage::kFunction, indices.back());
  return out;
}

/// Functions of samples that follow each other are called in one run, each with what the one before it gave.
class MappedSamples final : public Mapped {
 public:
  MappedSamples(Dataset dataset, UserFunction function, bool random, data::Around around)
      : Mapped(std::move(dataset), std::move(function), random), around_(around) {
    const auto* const before = dynamic_cast<const MappedSamples*>(&below());
    if (before == nullptr || before->around_ != around_) return;
    before_ = before;
    run_ = before->run_ + 1;
  }

  std::function<SampleStream()> in_order() const override {
    return in_order_by([function = function_, random = stages_ > stage_, around = around_](const Dataset& samples) {
      return Dataset(std::make_shared<MappedSamples>(samples, function, random, around));
    });
  }

  Value value(std::int64_t index, const Work& work) const override {
    std::vector<const MappedSamples*> run(run_);
    const MappedSamples* each = this;
    for (auto place = run.rbegin(); place != run.rend(); ++place, each = each->before_) *place = each;
    Value sample = run[0]->below().value(index, work);
    const auto call_all = [&] {
      for (const MappedSamples* const stage : run) {
        sample = stage->result_of(std::move(sample), index, work.call, work.figures);
      }
    };
    if (around_ != nullptr && run_ > 1) {
      around_(call_all);
    } else {
      call_all();
    }
    return sample;
  }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<data::Sample> out) const override {
    data::Runner* const runner = data::RunnerScope::current();
    if (runner == nullptr || !is_taken_by(*runner)) {
      data::fetch_values(*this, indices, work, out);
      return;
    }
    data::fetch_values_together(*this, indices, work, out,
                                [&](std::span<const std::int64_t> several, const data::ExpectedSlots& slots) {
                                  std::vector<data::Runner::Step> run;
                                  const detail::DatasetImpl& under = steps(run);
                                  return called_by(*runner, run, under, several, work, slots);
                                });
  }

 private:
  friend std::optional<std::vector<data::Called>> data::judged_by(data::Runner&, const Dataset&, const UserFunction&,
                                                                  std::span<const std::int64_t>, const Work&);

  bool is_taken_by(const data::Runner& runner) const {
    const MappedSamples* each = this;
    for (std::size_t i = 0; i < run_; ++i, each = each->before_) {
      if (!runner.takes(each->function_)) return false;
    }
    return true;
  }

  /// The functions of the run, in their order, and what is below it.
  const detail::DatasetImpl& steps(std::vector<data::Runner::Step>& out) const {
    out.resize(run_);
    const MappedSamples* each = this;
    const detail::DatasetImpl* under = nullptr;
    for (auto step = out.rbegin(); step != out.rend(); ++step, each = each->before_) {
      *step = {&each->function_, each->stage_};
      under = &each->below();
    }
    return *under;
  }

  Value result_of(Value given, std::int64_t index, const data::CallContext& call, data::Figures& figures) const {
    // The function may write to its tensors, and must not change what a dataset of the program, or the function before
    // it, keeps.
    const Value sample = without_sharing(std::move(given));
    const RandomKey key{.seed = call.epoch_seed.seed, .epoch = call.epoch_seed.epoch, .index = index, .stage = stage_};
    Value out = data::call_user("the function of map", [&] { return function_(sample, key); });
    figures.clock.lap(data::Stage::kFunction, index);
    return out;
  }

  data::Around around_;
  const MappedSamples* before_ = nullptr;  ///< `below()`, where that is one of the same run
  std::size_t run_ = 1;                    ///< how many there are in the run, this one included
};

class MappedBatches final : public Mapped {
 public:
  MappedBatches(Dataset dataset, UserFunction function, bool random)
      : Mapped(std::move(dataset), std::move(function), random) {
    const auto before = below().batch_functions();
    functions_.assign(before.begin(), before.end());
    functions_.push_back([f = function_, stage = stage_](const Value& batch, RandomKey key) {
      key.stage = stage;
      return data::call_user("the function of map", [&] { return f(batch, key); });
    });
  }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<data::Sample> out) const override {
    below().fetch(indices, work.with(work.slots.handed_on(this, &below())), out);
  }
  Value value(std::int64_t index, const Work& work) const override { return below().value(index, work); }
  std::span<const UserFunction> batch_functions() const noexcept override { return functions_; }

 private:
  std::vector<UserFunction> functions_;
};

}  // namespace

Dataset data::mapped(const Dataset& dataset, UserFunction function, Of of, bool random, Around around) {
  if (of == Of::kBatches) return Dataset(std::make_shared<MappedBatches>(dataset, std::move(function), random));
  require_samples(dataset, "a function of samples behind it");
  return Dataset(std::make_shared<MappedSamples>(dataset, std::move(function), random, around));
}

std::optional<std::vector<data::Called>> data::judged_by(Runner& runner, const Dataset& samples,
                                                         const UserFunction& keep,
                                                         std::span<const std::int64_t> indices, const Work& work) {
  const auto* const mapped = dynamic_cast<const MappedSamples*>(&samples.impl());
  if (!runner.takes(keep) || (mapped != nullptr && !mapped->is_taken_by(runner))) return std::nullopt;
  std::vector<Runner::Step> run;
  const detail::DatasetImpl& under = mapped == nullptr ? samples.impl() : mapped->steps(run);
  run.push_back({.function = &keep, .keeps = true});
  return called_by(runner, run, under, indices, work, {});
}

Tensor detail::tensor_of(const Value& sample) {
  if (sample.is(Value::Kind::kTensor)) return sample.as_tensor();
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("the function takes a Tensor, but the sample is {}; let it take a const Value&, and its "
                           "parts out of that",
                           sample.to_string()));
}

Generator data::generator_of(const RandomKey& key) noexcept {
  // Blocks of the cipher under keys that differ: nothing that goes in is lost before it is mixed.
  const std::uint64_t of_epoch = ops::philox(key.seed, key.epoch).low();
  const std::uint64_t of_stage = ops::philox(of_epoch, key.stage).high();
  return Generator(ops::philox(of_stage, static_cast<std::uint64_t>(key.index)).low());
}

std::uint32_t data::most_of(std::span<const Dataset> datasets,
                            std::uint32_t (detail::DatasetImpl::*count)() const noexcept) noexcept {
  std::uint32_t most = 0;
  for (const Dataset& dataset : datasets) most = std::max(most, (dataset.impl().*count)());
  return most;
}

Dataset Dataset::map_plain(std::function<Value(const Value&)> function, const MapOptions& options) const {
  const auto of = options.batched ? data::Of::kBatches : data::Of::kSamples;
  return data::mapped(
      *this, [f = std::move(function)](const Value& sample, const data::RandomKey&) { return f(sample); }, of, false);
}

Dataset Dataset::map_seeded(std::function<Value(const Value&, Generator&)> function, const MapOptions& options) const {
  const auto of = options.batched ? data::Of::kBatches : data::Of::kSamples;
  return data::mapped(
      *this,
      [f = std::move(function)](const Value& sample, const data::RandomKey& key) {
        Generator generator = data::generator_of(key);
        return f(sample, generator);
      },
      of, true);
}

}  // namespace penstock
