// Functions of the program in the pipeline: what they are called with, and what becomes of what they throw.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>
#include <stdexcept>
#include <thread>

#include "data/dataset/map.h"
#include "data/support.h"
#include "penstock/ops.h"
#include "penstock/sample_stream.h"

namespace penstock {
namespace {

using test::bits_of;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

Dataset numbers(std::int64_t size) {
  return dataset(size, [](std::int64_t i) { return full({2}, static_cast<double>(i), DType::float32); });
}

/// Throws for one sample, by its first element.
auto failing_at(std::int64_t index) {
  return [index](const Tensor& sample) {
    if (sample[0].item<std::int64_t>() == index) throw std::runtime_error("seven is not a number");
    return sample;
  };
}

TEST(DatasetOfAFunction, SaysWhatIsWrong) {
  EXPECT_EQ(test::code_of([] { dataset(-1, [](std::int64_t) { return Value::integer(1); }); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([] { Dataset(std::shared_ptr<const DatasetInterface>()); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(dataset(0, [](std::int64_t) { return Value::integer(1); }).size(), 0);
}

TEST(DatasetOfAFunction, WithFewerSamplesThanItSaysNamesTheFirstThatIsNotThere) {
  const std::vector<int> there = {1, 2, 3};
  const Dataset lies =
      dataset(5, [&](std::int64_t i) { return Value::integer(there.at(static_cast<std::size_t>(i))); });
  DataLoader loader(lies, {.batch_size = 2, .num_workers = 2});
  EXPECT_TRUE(loader.next());
  const auto error = test::error_of([&] { loader.next(); });
  EXPECT_EQ(error->code(), ErrorCode::kUserCode);
  EXPECT_THAT(error->message(), AllOf(HasSubstr("sample 3 (<dataset>[3])"), HasSubstr("at")));
}

/// Grows after it was given.
struct Growing final : DatasetInterface {
  std::int64_t size() const override { return ++asked; }
  Value get(std::int64_t index) const override { return Value::integer(index); }
  mutable std::atomic<std::int64_t> asked = 3;
};

TEST(OwnDataset, IsAskedForItsSizeOnce) {
  const Dataset growing(std::make_shared<const Growing>());
  EXPECT_EQ(growing.size(), 4);
  EXPECT_EQ(growing.size(), 4);
}

TEST(Values, AreCopiedForWhoeverGetsThem) {
  const Dataset kept = dataset({Tensor::of<float>({1, 2}), Tensor::of<float>({3})});
  const Dataset written = kept.map([](const Tensor& x) {
    x.values<float>()[0] = -1;
    return x;
  });
  EXPECT_EQ(bits_of(written.get(0)), bits_of(Value::tensor(Tensor::of<float>({-1, 2}))));
  EXPECT_EQ(bits_of(kept.get(0)), bits_of(Value::tensor(Tensor::of<float>({1, 2}))));
}

TEST(Values, OfUnequalLengthArePadded) {
  const Dataset lengths = dataset({Tensor::of<float>({1, 2}), Tensor::of<float>({3})});
  DataLoader loader(lengths, {.batch_size = 2, .num_workers = 1, .collate = collate::pad()});
  EXPECT_EQ(bits_of(loader.next()->value), bits_of(Value::tensor(Tensor::of<float>({1, 2, 3, 0}).reshape({2, 2}))));
}

TEST(Values, ThatAreNoSamplesAreRefusedAtOnce) {
  const auto error = test::error_of([] { dataset({Value::integer(1), Value::set({Value::integer(1)})}); });
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), HasSubstr("value 1: "));
  EXPECT_EQ(test::code_of([] { dataset({Tensor()}); }), ErrorCode::kInvalidArgument);
}

TEST(Map, IsCalledOnceForEachSampleByTheWorkers) {
  std::atomic<int> calls = 0;
  std::atomic<bool> in_caller = false;
  const std::thread::id caller = std::this_thread::get_id();
  const Dataset counted = numbers(100).map([&](const Tensor& x) {
    ++calls;
    if (std::this_thread::get_id() == caller) in_caller = true;
    return x;
  });
  DataLoader loader(counted, {.batch_size = 7, .num_workers = 2});
  EXPECT_EQ(calls, 0);
  for (const Batch& batch : loader) EXPECT_EQ(batch.tensor().dtype(), DType::float32);
  EXPECT_EQ(calls, 100);
  EXPECT_FALSE(in_caller);
}

TEST(Map, ADecoderSeesTheFileAndNamesIt) {
  const TemporaryFolder folder;
  test::write_tensors(folder, test::equal_tensors(5, Shape{3}), ".npy");
  const Dataset decoded = files(folder.path().string()).map([](const Tensor& x) {
    if (x[0].item<int>() == test::equal_tensors(5, Shape{3})[3][0].item<int>()) throw std::runtime_error("not a clip");
    return x;
  });
  EXPECT_EQ(decoded.paths().size(), 5U);
  for (const std::size_t workers : {0U, 1U, 2U, 4U}) {
    DataLoader loader(decoded, {.batch_size = 2, .num_workers = workers});
    EXPECT_TRUE(loader.next());
    const auto error = test::error_of([&] { loader.next(); });
    EXPECT_EQ(error->code(), ErrorCode::kUserCode);
    EXPECT_EQ(error->path(), folder / "0003.npy");
    EXPECT_THAT(error->message(), AllOf(HasSubstr("sample 3: "), HasSubstr("the function of map threw: not a clip")));
    EXPECT_THROW(std::rethrow_exception(error->cause()), std::runtime_error);
    EXPECT_TRUE(loader.next()) << "the loader goes on";
    EXPECT_FALSE(loader.next());
  }
}

TEST(Map, AnErrorOfPenstockKeepsItsCode) {
  const Dataset picky = numbers(3).map([](const Tensor&) -> Tensor { throw Error(ErrorCode::kCorrupt, "bad magic"); });
  const auto error = test::error_of([&] { picky.get(1); });
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error->message(), AllOf(HasSubstr("sample 1 "), HasSubstr("bad magic")));
  EXPECT_TRUE(error->cause());
}

TEST(Map, WhateverIsThrownArrives) {
  const auto code = [](auto thrown) {
    return test::code_of([&] { numbers(1).map([thrown](const Tensor&) -> Tensor { throw thrown; }).get(0); });
  };
  EXPECT_EQ(code(7), ErrorCode::kUserCode);
  EXPECT_EQ(code(std::bad_alloc()), ErrorCode::kOutOfMemory);
  EXPECT_EQ(code(std::out_of_range("x")), ErrorCode::kUserCode);
}

TEST(Map, NoneAndUndefinedTensorsAreErrorsThatNameTheSample) {
  const auto none = test::error_of([] { numbers(4).map([](const Value&) { return Value(); }).get(2); });
  EXPECT_EQ(none->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(none->message(), AllOf(HasSubstr("sample 2 "), HasSubstr("None"), HasSubstr("filter")));
  const auto undefined = test::error_of([] { numbers(4).map([](const Tensor&) { return Tensor(); }).get(2); });
  EXPECT_EQ(undefined->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(undefined->message(), HasSubstr("sample 2 "));
}

TEST(Map, OfOtherShapesNamesTheSamples) {
  const Dataset uneven = numbers(4).map([](const Tensor& x) { return x[0].item<float>() == 2 ? x.slice(0, 0, 1) : x; });
  DataLoader loader(uneven, {.batch_size = 4, .num_workers = 1});
  const auto error = test::error_of([&] { loader.next(); });
  EXPECT_EQ(error->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(error->message(), AllOf(HasSubstr("sample 2 "), HasSubstr("pad")));
}

TEST(Map, RefusesWhatItCannotBeGiven) {
  const Dataset text = dataset({Value::string("a")});
  EXPECT_EQ(test::code_of([&] { text.map([](const Tensor& x) { return x; }).get(0); }), ErrorCode::kDTypeMismatch);
  const Dataset batched = numbers(4).map([](const Value& batch) { return batch; }, {.batched = true});
  EXPECT_EQ(test::code_of([&] { batched.map([](const Value& x) { return x; }); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { batched.filter([](const Value&) { return true; }); }), ErrorCode::kInvalidArgument);
}

TEST(MapOfBatches, FollowsCollationAndEachOther) {
  const auto twice = [](const Tensor& batch) { return batch * 2; };
  const Dataset mapped =
      numbers(4).map([](const Tensor& batch) { return sum(batch); }, {.batched = true}).map(twice, {.batched = true});
  DataLoader loader(mapped, {.batch_size = 4, .num_workers = 1});
  EXPECT_EQ(loader.next()->tensor().item<float>(), 2 * 2 * (0 + 1 + 2 + 3));
}

TEST(MapOfBatches, WhatItThrowsBelongsToTheBatch) {
  const Dataset mapped = numbers(6).map(
      [](const Tensor& batch) {
        if (batch[0][0].item<float>() == 2) throw std::runtime_error("odd batch");
        return batch;
      },
      {.batched = true});
  for (const OnError on_error : {OnError::kRaise, OnError::kSkip, OnError::kReplace, OnError::kMask}) {
    DataLoader loader(mapped, {.batch_size = 2, .num_workers = 2, .on_error = on_error});
    EXPECT_TRUE(loader.next());
    const auto error = test::error_of([&] { loader.next(); });
    EXPECT_EQ(error->code(), ErrorCode::kUserCode);
    EXPECT_THAT(error->message(), HasSubstr("batch 1 (samples 2, 3): the function of map threw: odd batch"));
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.set_aside().empty());
  }
}

TEST(CollateFunction, MakesTheBatchOfTheSamples) {
  const Collate longest = collate::function([](const std::vector<Value>& samples) {
    return Value::dict({{"count", Value::integer(static_cast<std::int64_t>(samples.size()))}, {"first", samples[0]}});
  });
  DataLoader loader(numbers(5), {.batch_size = 3, .num_workers = 2, .collate = longest});
  EXPECT_EQ(loader.next()->value["count"].as_int(), 3);
  const auto last = loader.next();
  EXPECT_EQ(last->value["count"].as_int(), 2);
  EXPECT_EQ(bits_of(last->value["first"]), bits_of(numbers(5).get(3)));
}

TEST(OwnFunctions, MayHoldWhatOnlyMoves) {
  const auto two = [] { return std::make_unique<float>(2.0F); };
  const Dataset doubled = dataset(4, [by = two()](std::int64_t i) { return full({2}, static_cast<double>(i) * *by); });
  const Dataset large = doubled.map([by = two()](const Tensor& x) { return x * *by; })
                            .map([by = two()](const auto& sample, auto&) { return Value(sample.as_tensor() + *by); })
                            .filter([by = two()](const Tensor& x) { return x[0].item<float>() > *by; });
  ASSERT_EQ(large.size(), 3);
  const Collate first = collate::function([by = two()](const auto& all) { return all[0].as_tensor() * *by; });
  DataLoader loader(large, {.batch_size = 3, .num_workers = 2, .collate = first});
  EXPECT_EQ(loader.next()->tensor()[0].item<float>(), 12);  // ((1 * 2) * 2 + 2) * 2
  const SampleStream few = stream(large).filter(
      [by = two()](const auto& x) { return x.as_tensor()[0].template item<float>() > 8 * *by / 2; });
  int count = 0;
  for (const Value& sample : few) count += sample.as_tensor().numel() == 2 ? 1 : 0;
  EXPECT_EQ(count, 2);
}

TEST(CollateFunction, WhatItThrowsNamesTheBatchAndItsFirstSamples) {
  const Collate failing =
      collate::function([](const std::vector<Value>&) -> Value { throw std::runtime_error("odd"); });
  const auto message_of = [&](std::int64_t batch_size) {
    DataLoader loader(subset(numbers(9), {7, 8, 0, 3, 5}), {.batch_size = batch_size, .collate = failing});
    return test::error_of([&] { loader.next(); })->message();
  };
  EXPECT_THAT(message_of(5), HasSubstr("batch 0 (samples 0, 1, 2, 3, ...): the function of collation threw: odd"));
  EXPECT_THAT(message_of(1), HasSubstr("batch 0 (sample 0): "));
}

TEST(Filter, KeepsTheOrderAndFindsItsSizeOnce) {
  std::atomic<int> calls = 0;
  const Dataset odd = numbers(200).filter([&](const Tensor& x) {
    ++calls;
    return x[0].item<std::int64_t>() % 2 == 1;
  });
  EXPECT_EQ(calls, 200);
  ASSERT_EQ(odd.size(), 100);
  EXPECT_EQ(bits_of(odd.get(7)), bits_of(numbers(200).get(15)));
  EXPECT_EQ(odd.describe(7), "<dataset>[15]");
  EXPECT_EQ(calls, 200);
  EXPECT_THAT(
      test::error_of([] { numbers(20).map(failing_at(7)).filter([](const Value&) { return true; }); })->message(),
      HasSubstr("sample 7 "));
}

TEST(Filter, CanBeStopped) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(test::code_of([&] { numbers(9).filter([](const Value&) { return true; }, {.stop = stop.get_token()}); }),
            ErrorCode::kCancelled);
}

std::vector<float> drawn(const Dataset& dataset, std::uint64_t seed, std::uint64_t epoch) {
  DataLoader loader(dataset, {.batch_size = 4, .num_workers = 2, .seed = seed});
  loader.set_epoch(epoch);
  std::vector<float> out;
  while (const auto batch = loader.next()) {
    const auto values = batch->tensor().values<const float>();
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

TEST(RandomMap, DrawsOtherNumbersForEachSeedEpochSampleAndStage) {
  const auto number = [](const Tensor&, Generator& g) { return rand({1}, g); };
  const auto both = [](const Tensor& x, Generator& g) { return cat(std::vector<Tensor>{x, rand({1}, g)}); };
  const Dataset once = numbers(50).map(number);
  std::set<float> seen;
  std::size_t count = 0;
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    for (const std::uint64_t epoch : {0U, 1U, 2U}) {
      for (const float value : drawn(once, seed, epoch)) seen.insert(value), ++count;
    }
  }
  for (const float value : drawn(once.map(both), 3, 0)) seen.insert(value), ++count;
  EXPECT_EQ(seen.size(), count) << "24 bits each, so few enough that none meets another";
  EXPECT_EQ(drawn(once, 2, 1), drawn(once, 2, 1));
}

TEST(RandomMap, DatasetsThatAreZippedDrawTheSame) {
  const auto number = [](const Tensor&, Generator& g) { return rand({1}, g); };
  const Value pair = zip(numbers(9).map(number), numbers(9).map(number)).get(5);
  EXPECT_EQ(bits_of(pair[0]), bits_of(pair[1]));
}

TEST(RandomMap, NumbersStayTheSameFromReleaseToRelease) {
  const Dataset random = numbers(3).map([](const Tensor&, Generator& g) { return randint(0, 1'000'000, {2}, g); });
  DataLoader loader(random, {.batch_size = 3, .num_workers = 1, .seed = 11});
  loader.set_epoch(2);
  EXPECT_THAT(test::values_of<std::int64_t>(loader.next()->tensor().reshape({6})),
              ::testing::ElementsAre(634998, 646662, 174056, 971004, 578560, 416234));
}

TEST(Loader, CountsFunctions) {
  const Dataset slow = numbers(8).map([](const Tensor& x) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return x;
  });
  DataLoader loader(slow, {.batch_size = 4, .num_workers = 1});
  while (loader.next()) continue;
  const LoaderStats stats = loader.stats();
  EXPECT_GE(stats.function_seconds, 8 * 0.002);
  EXPECT_GE(stats.worked_seconds(), stats.function_seconds);
}

TEST(Loader, StopsBetweenTwoCalls) {
  std::atomic<int> calls = 0;
  std::atomic<bool> go_on = false;
  const Dataset waiting = numbers(1000).map([&](const Tensor& x) {
    ++calls;
    calls.notify_all();
    go_on.wait(false);
    return x;
  });
  {
    DataLoader loader(waiting, {.batch_size = 1000, .num_workers = 1});
    std::thread taker([&] { EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kCancelled); });
    calls.wait(0);
    loader.stop();
    go_on = true;
    go_on.notify_all();
    taker.join();
  }
  EXPECT_EQ(calls, 1);
}

std::atomic<int> g_runs = 0;

void counted_run(const std::function<void()>& calls) {
  ++g_runs;
  calls();
}

Dataset plus_one(const Dataset& dataset, bool random = false) {
  const data::UserFunction add = [](const Value& sample, const data::RandomKey& key) {
    return Value::integer(sample.as_int() * 10 + 1 + key.stage);
  };
  return data::mapped(dataset, add, data::Of::kSamples, random, counted_run);
}

TEST(RunsOfMaps, AreCalledInOneForEachSample) {
  const Dataset digits = dataset(3, [](std::int64_t i) { return i; });
  g_runs = 0;
  EXPECT_EQ(plus_one(plus_one(plus_one(digits)))[2].as_int(), 2111);
  EXPECT_EQ(g_runs, 1);
  EXPECT_EQ(plus_one(digits)[2].as_int(), 21);
  EXPECT_EQ(g_runs, 1) << "one alone needs nothing around it";
  EXPECT_EQ(plus_one(plus_one(subset(plus_one(plus_one(digits)), {1})))[0].as_int(), 11111);
  EXPECT_EQ(g_runs, 3);
  EXPECT_EQ(plus_one(plus_one(plus_one(digits, true), true))[1].as_int(), 1123) << "each with its own stage";
}

TEST(RunsOfMaps, NameTheSampleThatAnyOfThemRefuses) {
  const Dataset digits = dataset(3, [](std::int64_t i) { return i; });
  const data::UserFunction refuse = [](const Value&, const data::RandomKey&) -> Value {
    throw std::runtime_error("no");
  };
  const Dataset run = plus_one(data::mapped(plus_one(digits), refuse, data::Of::kSamples, false, counted_run));
  const auto error = test::error_of([&] { run[1]; });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUserCode);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("sample 1"), HasSubstr("the function of map threw: no")));
}

TEST(DatasetIteration, ReadsEachSampleInOrder) {
  const Dataset dataset = numbers(4);
  double expected = 0;
  for (const Value& sample : dataset) EXPECT_EQ(sample.as_tensor()[0].item<double>(), expected++);
  EXPECT_EQ(expected, 4);
  EXPECT_EQ(dataset[-1].as_tensor()[1].item<double>(), 3);
  EXPECT_EQ(test::code_of([&] { dataset[4]; }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(DataLoader(dataset).size(), DataLoader(dataset, {}).size());
}

TEST(DatasetOfTensors, IsWrittenInBraces) {
  const Tensor a = Tensor::of({1, 2});
  const Tensor b = Tensor::of({3});
  EXPECT_EQ(dataset({a, b})[1].as_tensor().at<int>(0), 3);
}

TEST(DatasetOfAFunction, GivesNumbersAndTextsAsTheyAre) {
  EXPECT_EQ(dataset(2, [](std::int64_t i) { return i * 10; })[1].as_int(), 10);
  EXPECT_EQ(numbers(2).map([](const Tensor&) { return "text"; })[0].as_string(), "text");
}

/// Keeps its samples, in the two ways that programs do it.
struct Keeps final : DatasetInterface {
  std::vector<Value> values = {Value(Tensor::of({1.0F, 2.0F})), Value({{"x", Tensor::of({1.0F})}})};
  std::vector<Tensor> tensors = {Tensor::of({1.0F, 2.0F}), Tensor::of({3.0F, 4.0F})};
  bool gives_values = false;
  std::int64_t size() const override { return 1; }
  Value get(std::int64_t index) const override {
    const auto i = static_cast<std::size_t>(index);
    return gives_values ? values[i] : Value(tensors[i]);
  }
};

TEST(Map, OfAFunctionThatWritesToItsSampleLeavesTheDatasetAsItIs) {
  for (const bool gives_values : {false, true}) {
    const auto own = std::make_shared<Keeps>();
    own->gives_values = gives_values;
    const auto add = [](Tensor t) {
      t += 1;
      return t;
    };
    const Dataset changed = Dataset(std::shared_ptr<const DatasetInterface>(own)).map(add).map(add);
    DataLoader loader(changed, {.num_workers = 0});
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (const Batch& batch : loader) EXPECT_EQ(batch.tensor().at<float>(0, 0), 3);
    }
    EXPECT_EQ(changed[0].as_tensor().at<float>(0), 3);
    EXPECT_EQ(own->get(0).as_tensor().at<float>(0), 1);
  }
}

TEST(Map, OfAFunctionThatKeepsItsResultsLeavesThemAsTheyAre) {
  const Tensor kept = Tensor::of({1.0F});
  std::vector<float> memory = {5};
  const auto add = [](Tensor t) {
    t += 1;
    return t;
  };
  const Dataset of_kept = numbers(1).map([kept](const Value&) { return kept; }).map(add);
  const Dataset of_memory = dataset(1, [&](std::int64_t) { return Tensor::view(memory); }).map(add);
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(of_kept[0].as_tensor().at<float>(0), 2);
    EXPECT_EQ(of_memory[0].as_tensor().at<float>(0), 6);
  }
  EXPECT_EQ(memory[0], 5);
}

TEST(OwnDataset, GivesSamplesThatMayBeWrittenTo) {
  const auto own = std::make_shared<Keeps>();
  Tensor sample = Dataset(std::shared_ptr<const DatasetInterface>(own))[0].as_tensor();
  sample += 1;
  EXPECT_EQ(own->tensors[0].at<float>(0), 1);
}

TEST(Map, OfFreshSamplesCopiesNothing) {
  const std::byte* made = nullptr;
  const std::byte* seen = nullptr;
  const Dataset fresh = dataset(1, [&](std::int64_t) {
                          const Tensor out = Tensor::zeros({1000});
                          made = out.data();
                          return Value({{"x", out}});
                        }).map([&](const Value& sample) {
    const Tensor& tensor = sample["x"].as_tensor();
    seen = tensor.data();
    return sample;
  });
  static_cast<void>(fresh[0]);
  EXPECT_EQ(made, seen);
}

TEST(Map, OfATensorOverDictsSaysWhatToTake) {
  const auto own = dataset(1, [](std::int64_t) { return Value({{"x", Tensor::of({1.0F})}}); });
  const Dataset wrong = own.map([](const Tensor& t) { return t; });
  EXPECT_THAT(test::error_of([&] { wrong[0]; })->message(), HasSubstr("let it take a const Value&"));
}

/// Throws where it is asked for its size, a sample or a name.
struct Throws final : DatasetInterface {
  explicit Throws(bool in_size) : in_size_(in_size) {}
  std::int64_t size() const override { return in_size_ ? throw std::runtime_error("uncounted") : 2; }
  Value get(std::int64_t) const override { throw std::runtime_error("unread"); }
  std::string describe(std::int64_t) const override { throw std::runtime_error("unnamed"); }

 private:
  bool in_size_;
};

TEST(OwnDataset, WhateverItThrowsIsAnError) {
  const auto error = test::error_of([] { Dataset(Throws(true)); });
  EXPECT_EQ(error->code(), ErrorCode::kUserCode);
  EXPECT_THAT(error->message(), AllOf(HasSubstr("size"), HasSubstr("uncounted")));
  const Dataset dataset = Throws(false);
  EXPECT_THAT(dataset.describe(1), AllOf(HasSubstr("<dataset>[1]"), HasSubstr("unnamed")));
  for (const std::size_t workers : {0, 2}) {
    DataLoader loader(dataset, {.batch_size = 2, .num_workers = workers});
    const auto unread = test::error_of([&] { loader.next(); });
    EXPECT_EQ(unread->code(), ErrorCode::kUserCode);
    EXPECT_THAT(unread->message(), AllOf(HasSubstr("<dataset>[0]"), HasSubstr("unread")));
  }
  DataLoader masks(dataset, {.batch_size = 2, .on_error = OnError::kSkip});
  EXPECT_EQ(test::code_of([&] { masks.next(); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(masks.set_aside().size(), 2U);
}

TEST(Filter, IsNamedWhereItThrows) {
  const auto error = test::error_of([] {
    static_cast<void>(dataset({1, 2}).filter([](const Value&) -> bool { throw std::runtime_error("undecided"); }));
  });
  EXPECT_EQ(error->code(), ErrorCode::kUserCode);
  EXPECT_THAT(error->message(), HasSubstr("the function of filter threw: undecided"));
}

}  // namespace
}  // namespace penstock
