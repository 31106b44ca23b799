#include "penstock/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "data/support.h"
#include "penstock/sample_stream.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::bits_of;
using test::rest_of_epoch;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Indices = std::vector<std::int64_t>;

const std::vector<std::size_t> kWorkers = {0, 1, 2, 8};

/// Datasets of each kind, with what collates them.
struct Case {
  std::string name;
  Dataset dataset;
  Collate collate;
};

std::vector<Case> cases(const TemporaryFolder& folder) {
  std::filesystem::create_directories(folder / "equal");
  std::filesystem::create_directories(folder / "ragged");
  std::vector<std::string> equal;
  std::vector<std::string> ragged_paths;
  for (std::int64_t i = 0; i < 37; ++i) {
    const Value dict = Value::dict(
        {{"x", Value::tensor(test::numbered_tensor(Shape{6}, DType::float32, static_cast<std::uint64_t>(i)))},
         {"y", Value::integer(i % 3)}});
    equal.push_back(folder / ("equal/" + std::to_string(i) + ".pt"));
    save(dict, equal.back(), {.sync = false});
    ragged_paths.push_back(folder / ("ragged/" + std::to_string(i) + ".npy"));
    save(test::numbered_tensor(Shape{1 + i % 7, 2}, DType::int16, static_cast<std::uint64_t>(i)), ragged_paths.back(),
         {.sync = false});
  }
  const Dataset array = rows(test::numbered_rows(37, 5));
  const Dataset labels = rows(test::numbered_rows(37, 1));
  return {
      {"rows", array, collate::stack()},
      {"zip", zip(array, labels), collate::stack()},
      {"files", files(equal), collate::stack()},
      {"padded", files(ragged_paths), collate::pad({.value = 3, .lengths = true, .mask = true})},
      {"cut", files(ragged_paths), collate::pad_to(4, {.mode = PadMode::kReplicate})},
      {"ragged", files(ragged_paths), collate::ragged()},
      {"mixed", zip(concat({subset(array, {3, 2, 1}), subset(array, std::vector<std::int64_t>(34, 5))}), files(equal)),
       collate::stack()}};
}

TEST(Loader, BatchesAreTheSameUnderAnyNumberOfWorkers) {
  TemporaryFolder folder;
  for (const Case& c : cases(folder)) {
    std::vector<std::string> expected;
    for (const std::size_t workers : kWorkers) {
      DataLoader loader(c.dataset,
                        {.batch_size = 5, .shuffle = true, .num_workers = workers, .collate = c.collate, .seed = 3});
      std::vector<std::string> batches = rest_of_epoch(loader);
      const std::vector<std::string> second = rest_of_epoch(loader);
      batches.insert(batches.end(), second.begin(), second.end());
      ASSERT_EQ(batches.size(), 16u);
      if (expected.empty()) expected = batches;
      EXPECT_EQ(batches, expected) << c.name << " with " << workers << " workers";
    }
  }
}

TEST(Loader, ResumesExactlyFromEveryPosition) {
  TemporaryFolder folder;
  for (const Case& c : cases(folder)) {
    const LoaderOptions options{.batch_size = 8, .shuffle = true, .num_workers = 2, .collate = c.collate, .seed = 7};
    DataLoader whole(c.dataset, options);
    whole.set_epoch(2);
    std::vector<std::string> expected;
    std::vector<std::string> positions = {whole.position().to_json()};
    for (int i = 0; i < 4 * whole.size(); ++i) {
      auto batch = whole.next();
      if (!batch) batch = whole.next();
      expected.push_back(bits_of(*batch));
      if (i < 2 * whole.size()) positions.push_back(whole.position().to_json());  // with two epochs more behind them
    }
    for (std::size_t at = 0; at < positions.size(); ++at) {
      LoaderOptions other = options;
      other.num_workers = kWorkers[at % kWorkers.size()];
      other.seed = 99;  // the position brings its own
      DataLoader resumed(c.dataset, other);
      resumed.seek(LoaderPosition::from_json(positions[at]));
      EXPECT_EQ(resumed.position().to_json(), positions[at]);
      std::vector<std::string> rest;
      while (rest.size() < expected.size() - at) {
        if (const auto batch = resumed.next()) rest.push_back(bits_of(*batch));
      }
      ASSERT_EQ(rest, std::vector<std::string>(expected.begin() + static_cast<std::ptrdiff_t>(at), expected.end()))
          << c.name << " from batch " << at;
    }
  }
}

TEST(Loader, IteratesOneEpochARound) {
  const Dataset dataset = rows(test::numbered_rows(10, 2));
  DataLoader loader(dataset, {.batch_size = 4, .shuffle = true, .num_workers = 2, .seed = 1});
  EXPECT_EQ(loader.size(), 3);
  std::vector<std::vector<std::int64_t>> epochs;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(loader.epoch(), epoch);
    std::vector<std::int64_t> seen;
    for (Batch& batch : loader) seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
    EXPECT_EQ(seen, sampler::random(10).order(1, epoch).to_vector());
    epochs.push_back(seen);
  }
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST(Loader, ABrokenOffEpochBeginsAgain) {
  DataLoader loader(rows(test::numbered_rows(10, 2)), {.batch_size = 2, .shuffle = true, .num_workers = 2});
  std::vector<std::int64_t> first;
  for (Batch& batch : loader) {
    first = batch.indices;
    if (loader.position().batch == 3) break;
  }
  EXPECT_EQ(loader.epoch(), 0u);
  const std::vector<std::int64_t> order = sampler::random(10).order(0, 0).to_vector();
  EXPECT_THAT((*loader.begin()).indices, ElementsAre(order[0], order[1]));
}

TEST(Loader, DropLastAndSizes) {
  const Dataset dataset = rows(test::numbered_rows(10, 2));
  DataLoader kept(dataset, {.batch_size = 4});
  EXPECT_EQ(kept.size(), 3);
  EXPECT_EQ(rest_of_epoch(kept).size(), 3u);
  DataLoader dropped(dataset, {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(dropped.size(), 2);
  EXPECT_EQ(rest_of_epoch(dropped).size(), 2u);
  DataLoader none(dataset, {.batch_size = 11, .drop_last = true});
  EXPECT_EQ(none.size(), 0);
  EXPECT_FALSE(none.next());
}

TEST(Loader, AnEmptyDatasetHasNoBatches) {
  for (const std::size_t workers : kWorkers) {
    DataLoader loader(rows(test::numbered_rows(0, 2)), {.shuffle = true, .num_workers = workers});
    EXPECT_EQ(loader.size(), 0);
    EXPECT_FALSE(loader.next());
    EXPECT_FALSE(loader.next());
    EXPECT_EQ(loader.epoch(), 2u);
  }
}

TEST(Loader, TakesSamplersAndBatchSamplers) {
  const Dataset dataset = rows(test::numbered_rows(6, 1));
  DataLoader sampled(dataset, {.batch_size = 2, .sampler = sampler::subset({5, 5, 0}), .num_workers = 1});
  EXPECT_THAT(sampled.next()->indices, ElementsAre(5, 5));
  EXPECT_THAT(test::values_of<std::int32_t>(sampled.next()->tensor()), ElementsAre(0));
  DataLoader batched(dataset, {.batch_sampler = sampler::batches({{4}, {1, 2, 3}})});
  EXPECT_THAT(batched.next()->indices, ElementsAre(4));
  EXPECT_THAT(test::values_of<std::int32_t>(batched.next()->tensor()), ElementsAre(1000, 2000, 3000));
  EXPECT_FALSE(batched.next());
}

class OddBatches final : public BatchSamplerInterface {
 public:
  explicit OddBatches(BatchOrder batches) : batches_(std::move(batches)) {}
  BatchOrder batches(std::uint64_t, std::uint64_t) const override { return batches_; }
  std::int64_t size() const noexcept override { return batches_.size(); }

 private:
  BatchOrder batches_;
};

TEST(Loader, RefusesOrdersThatMakeNoSense) {
  const Dataset dataset = rows(test::numbered_rows(6, 1));
  const auto first_error = [&](const Indices& order, const Indices& ends, std::size_t workers) {
    const OddBatches odd(BatchOrder(order, ends));
    DataLoader loader(dataset, {.batch_sampler = odd, .num_workers = workers});
    return test::error_of([&] { loader.next(); });
  };
  for (const std::size_t workers : kWorkers) {
    EXPECT_THAT(first_error({0, 6}, {2}, workers)->message(), AllOf(HasSubstr("batch 0"), HasSubstr("sample 6")));
    EXPECT_EQ(first_error({0, 6}, {2}, workers)->code(), ErrorCode::kIndexOutOfRange);
    EXPECT_EQ(first_error({-1}, {1}, workers)->code(), ErrorCode::kIndexOutOfRange);
    EXPECT_EQ(first_error({0, 1, 2}, {0, 3}, workers)->code(), ErrorCode::kInvalidArgument);
  }
}

TEST(Loader, RefusesOptionsThatExcludeEachOther) {
  const Dataset dataset = rows(test::numbered_rows(6, 1));
  const Sampler sampler = sampler::sequential(6);
  const BatchSampler batch_sampler = sampler::batches(sampler, 2);
  const std::vector<std::pair<LoaderOptions, std::string>> wrong = {
      {{.batch_size = 0}, "batch_size"},
      {{.batch_size = -3}, "batch_size"},
      {{.shuffle = true, .sampler = sampler}, "mutually exclusive with shuffle"},
      {{.batch_size = 2, .batch_sampler = batch_sampler}, "mutually exclusive"},
      {{.shuffle = true, .batch_sampler = batch_sampler}, "mutually exclusive"},
      {{.sampler = sampler, .batch_sampler = batch_sampler}, "mutually exclusive"},
      {{.batch_sampler = batch_sampler, .drop_last = true}, "mutually exclusive"},
      {{.num_workers = 5000}, "num_workers is 5000; it must be from 0 to 4096"},
      {{.num_workers = -2}, "num_workers is -2; it must be from 0 to 4096"},
      {{.prefetch_factor = 0}, "prefetch_factor"},
      {{.prefetch_factor = -1}, "prefetch_factor is -1; it must be from 1 to"},
      {{.timeout = -1}, "timeout"},
      {{.timeout = std::numeric_limits<double>::quiet_NaN()}, "timeout"},
  };
  for (const auto& [options, word] : wrong) {
    const auto error = test::error_of([&, o = options] { DataLoader(dataset, o); });
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->message(), HasSubstr(word));
  }
  EXPECT_EQ(test::code_of([&] { DataLoader(dataset, {.device = "cuda:99"}); }), ErrorCode::kNoDevice);
  // A number of threads that went below 0 is not kAutoWorkers.
  EXPECT_EQ(test::code_of([&] { DataLoader(dataset, {.num_workers = std::size_t{0} - 1}); }),
            ErrorCode::kInvalidArgument);
}

/// Rows of which some are bad.
Dataset with_bad(std::set<std::int64_t> bad) {
  return test::watched(rows(test::numbered_rows(20, 3)), [bad](std::int64_t index, const data::CallContext&) {
    if (bad.contains(index)) throw Error(ErrorCode::kCorrupt, "it is bad", {.path = "some.pt"});
  });
}

TEST(Loader, AnErrorBelongsToItsBatchAndTheNextOneComes) {
  for (const std::size_t workers : kWorkers) {
    DataLoader loader(with_bad({0, 9, 10, 19}), {.batch_size = 2, .num_workers = workers});
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<std::int64_t> good;
      std::vector<std::string> errors;
      for (std::int64_t batch = 0; batch < 10; ++batch) {
        try {
          const Batch prepared = loader.next().value();
          good.insert(good.end(), prepared.indices.begin(), prepared.indices.end());
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
          errors.emplace_back(error.message());
        }
        EXPECT_EQ(loader.position().batch, batch + 1);
      }
      EXPECT_FALSE(loader.next());
      EXPECT_THAT(good, ElementsAre(2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17));
      EXPECT_THAT(
          errors,
          ElementsAre("sample 0 (watched <tensor>[0]): it is bad", "sample 9 (watched <tensor>[9]): it is bad",
                      "sample 10 (watched <tensor>[10]): it is bad", "sample 19 (watched <tensor>[19]): it is bad"));
    }
  }
}

TEST(Loader, ForeignExceptionsComeThrough) {
  for (const std::size_t workers : kWorkers) {
    const Dataset dataset =
        test::watched(rows(test::numbered_rows(4, 1)), [](std::int64_t index, const data::CallContext&) {
          if (index == 0) throw std::runtime_error("not ours");
          if (index == 1) throw std::bad_alloc();
          if (index == 2) throw 7;
        });
    DataLoader loader(dataset, {.num_workers = workers});
    EXPECT_THROW(loader.next(), std::runtime_error);
    EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kOutOfMemory);
    EXPECT_THROW(loader.next(), int);
    EXPECT_TRUE(loader.next());
  }
}

class FailingSampler final : public SamplerInterface {
 public:
  std::int64_t size() const noexcept override { return 4; }
  Order order(std::uint64_t, std::uint64_t epoch) const override {
    if (epoch == 1) throw std::runtime_error("no order today");
    return Order::range(4);
  }
};

TEST(Loader, ASamplersExceptionReachesTheCaller) {
  DataLoader loader(rows(test::numbered_rows(4, 1)), {.batch_size = 4, .sampler = FailingSampler(), .num_workers = 2});
  EXPECT_EQ(rest_of_epoch(loader).size(), 1u);
  EXPECT_TRUE(test::error_of([&] { loader.next(); }));
  loader.set_epoch(2);
  EXPECT_EQ(rest_of_epoch(loader).size(), 1u);
}

TEST(Loader, SetEpochAndRestart) {
  DataLoader loader(rows(test::numbered_rows(10, 1)), {.batch_size = 2, .shuffle = true, .num_workers = 2});
  loader.set_epoch(5);
  EXPECT_EQ(loader.epoch(), 5u);
  const std::vector<std::string> fifth = rest_of_epoch(loader);
  EXPECT_EQ(loader.epoch(), 6u);
  loader.next();
  loader.set_epoch(5);
  loader.next();
  loader.next();
  loader.restart();
  EXPECT_EQ(rest_of_epoch(loader), fifth);
  loader.set_epoch(5);
  loader.next();
  loader.set_epoch(5);
  EXPECT_EQ(rest_of_epoch(loader), fifth);
}

TEST(Loader, APositionJustLoadedSurvivesTheStartOfALoop) {
  const Dataset dataset = rows(test::numbered_rows(10, 1));
  const LoaderOptions options{.batch_size = 2, .shuffle = true, .num_workers = 2};
  DataLoader loader(dataset, options);
  loader.set_epoch(3);
  loader.next();
  loader.next();
  const LoaderPosition position = loader.position();
  DataLoader resumed(dataset, options);
  resumed.seek(position);
  for (const std::uint64_t epoch : {3, 4, 5}) {
    const std::vector<std::string> expected = rest_of_epoch(loader);
    resumed.set_epoch(epoch);  // what a training loop says at the start of each epoch
    std::vector<std::string> rest;
    for (Batch& batch : resumed) rest.push_back(bits_of(batch));
    EXPECT_EQ(rest, expected);
  }
  resumed.seek(position);
  resumed.set_epoch(4);
  EXPECT_EQ(resumed.position().batch, 0);
}

TEST(Loader, ThePositionAtTheEndOfAnEpoch) {
  const Dataset dataset = rows(test::numbered_rows(4, 1));
  DataLoader loader(dataset, {.batch_size = 2});
  loader.next();
  loader.next();
  const LoaderPosition end = loader.position();
  EXPECT_EQ(end.batch, 2);
  EXPECT_EQ(end.epoch, 0u);
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(loader.position().epoch, 1u);
  EXPECT_EQ(loader.position().batch, 0);
  DataLoader resumed(dataset, {.batch_size = 2, .num_workers = 1});
  resumed.seek(end);
  EXPECT_FALSE(resumed.next());
  EXPECT_TRUE(resumed.next());
}

TEST(Loader, RefusesAPositionOfAnotherDataset) {
  DataLoader loader(rows(test::numbered_rows(4, 1)), {.batch_size = 2});
  loader.next();
  EXPECT_THAT(test::error_of([&] { loader.seek({.samples = 5}); })->message(), HasSubstr("5 samples"));
  EXPECT_EQ(test::code_of([&] { loader.seek({.batch = 3, .samples = 4}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { loader.seek({.batch = -1, .samples = 4}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(loader.position().batch, 1) << "a refused position changes nothing";
  EXPECT_THAT(loader.next()->indices, ElementsAre(2, 3));
}

TEST(Loader, RefusesAPositionOfAnotherOrder) {
  const Dataset dataset = rows(test::numbered_rows(12, 1));
  const auto of = [&](Sampler sampler) {
    return DataLoader(dataset, {.batch_size = 2, .sampler = std::move(sampler)});
  };
  DataLoader shuffled(dataset, {.batch_size = 2, .shuffle = true});
  shuffled.next();
  LoaderPosition position = shuffled.position();
  const auto refused = [&](DataLoader loader) -> std::string {
    try {
      loader.seek(position);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_THAT(refused(DataLoader(dataset, {.batch_size = 2})), HasSubstr("random, but this loader's is sequential"));
  EXPECT_NE(refused(of(sampler::random(12, {.replacement = true}))), "");
  EXPECT_NE(refused(of(sampler::subset({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, true))), "");
  EXPECT_NE(refused(DataLoader(dataset, {.batch_sampler = sampler::batches({{0, 1}, {2, 3}})})), "");
  EXPECT_EQ(refused(of(sampler::random(12))), "");
  EXPECT_EQ(refused(of(sampler::distributed(12, {}))), "") << "the same order, dealt out to one rank";
  EXPECT_EQ(refused(DataLoader(dataset, {.batch_sampler = sampler::batches(sampler::random(12), 2)})), "");
  position.order.clear();
  EXPECT_EQ(refused(DataLoader(dataset, {.batch_size = 2})), "") << "a state that does not say";
  position = shuffled.position();
  position.batch = 0;
  EXPECT_EQ(refused(DataLoader(dataset, {.batch_size = 2})), "") << "from the beginning of an epoch";
}

TEST(Loader, GoesOnWithOtherRanksWhereAllHaveTakenWholeBatches) {
  const Dataset dataset = rows(test::numbered_rows(120, 1));
  const auto rank = [&](std::int64_t number, std::int64_t of) {
    return DataLoader(dataset,
                      {.batch_size = 4, .sampler = sampler::distributed(120, {.rank = number, .num_replicas = of})});
  };
  for (const std::int64_t before : {1, 2, 3, 6}) {
    for (const std::int64_t after : {1, 2, 3, 6}) {
      std::multiset<std::int64_t> seen;
      LoaderPosition position;
      for (std::int64_t number = 0; number < before; ++number) {
        DataLoader loader = rank(number, before);
        for (int i = 0; i < 2; ++i) {
          const std::optional<Batch> batch = loader.next();
          seen.insert(batch->indices.begin(), batch->indices.end());
        }
        position = loader.position();
      }
      if (2 * before % after != 0) {
        DataLoader loader = rank(0, after);
        EXPECT_THAT(test::error_of([&] { loader.seek(position); })->message(),
                    HasSubstr("these batches do not divide among"));
        continue;
      }
      for (std::int64_t number = 0; number < after; ++number) {
        DataLoader loader = rank(number, after);
        loader.seek(position);
        while (const auto batch = loader.next()) seen.insert(batch->indices.begin(), batch->indices.end());
        DataLoader unstopped = rank(number, after);
        unstopped.set_epoch(1);
        for (int further = 0; further < 2; ++further) EXPECT_EQ(rest_of_epoch(loader), rest_of_epoch(unstopped));
      }
      EXPECT_EQ(seen.size(), 120U) << before << " ranks, then " << after;
      EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 120U);
    }
  }
  DataLoader loader = rank(0, 2);
  LoaderPosition position = loader.position();
  position.batch = std::numeric_limits<std::int64_t>::max();
  position.num_replicas = 4;
  EXPECT_EQ(test::code_of([&] { loader.seek(position); }), ErrorCode::kInvalidArgument);
  position.num_replicas = -4;
  EXPECT_EQ(test::code_of([&] { loader.seek(position); }), ErrorCode::kInvalidArgument);
}

TEST(Loader, CountsWhatItDid) {
  TemporaryFolder folder;
  test::write_tensors(folder, test::equal_tensors(12, Shape{100}), ".npy");
  for (const std::size_t workers : kWorkers) {
    DataLoader loader(files(folder.path().string()), {.batch_size = 4, .num_workers = workers});
    rest_of_epoch(loader);
    const LoaderStats stats = loader.stats();
    EXPECT_EQ(stats.batches, 3u);
    EXPECT_EQ(stats.samples, 12u);
    EXPECT_EQ(stats.payload_bytes, 12u * 400);
    EXPECT_EQ(stats.read_bytes, 12u * (400 + 128));
    EXPECT_EQ(stats.files_opened, 12u);
    for (const double seconds : {stats.open_seconds, stats.read_seconds, stats.decode_seconds, stats.collate_seconds,
                                 stats.copy_seconds, stats.compute_seconds, stats.caller_seconds}) {
      EXPECT_GT(seconds, 0);
    }
    EXPECT_GT(stats.wait_seconds, 0);
    EXPECT_GT(stats.first_batch_seconds, 0);
    EXPECT_GE(stats.buffers_allocated, 1u);
  }
}

TEST(Loader, ASteadyStreamAllocatesNothing) {
  TemporaryFolder folder;
  test::write_tensors(folder, test::equal_tensors(64, Shape{1000}), ".npy");
  for (const std::size_t workers : kWorkers) {
    DataLoader loader(files(folder.path().string()), {.batch_size = 8, .shuffle = true, .num_workers = workers});
    for (int epoch = 0; epoch < 3; ++epoch) {
      while (loader.next()) {
      }
    }
    const std::uint64_t before = loader.stats().buffers_allocated;
    EXPECT_LE(before, 2 * workers + 2);
    for (int epoch = 0; epoch < 10; ++epoch) {
      while (loader.next()) {
      }
    }
    EXPECT_LE(loader.stats().buffers_allocated, 2 * workers + 2) << workers;
  }
}

TEST(Loader, BatchesOutliveTheLoader) {
  std::optional<Batch> batch;
  {
    DataLoader loader(rows(test::numbered_rows(4, 2)), {.batch_size = 4, .num_workers = 2});
    batch = loader.next();
  }
  EXPECT_EQ(bits_of(batch->value), bits_of(Value::tensor(test::numbered_rows(4, 2))));
}

TEST(Loader, CanBeMoved) {
  DataLoader a(rows(test::numbered_rows(6, 2)), {.batch_size = 2, .num_workers = 2});
  a.next();
  DataLoader b(std::move(a));
  EXPECT_THAT(b.next()->indices, ElementsAre(2, 3));
  DataLoader c(rows(test::numbered_rows(6, 2)), {.num_workers = 1});
  c.next();
  c = std::move(b);
  EXPECT_THAT(c.next()->indices, ElementsAre(4, 5));
}

TEST(Loader, TheProcessorTimeOfManyShortEpochsIsCounted) {
  DataLoader loader(rows(test::numbered_rows(4, 4)), {.batch_size = 2, .num_workers = 0});
  const auto started = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - started < std::chrono::milliseconds(200)) {
    for (const Batch& batch : loader) static_cast<void>(batch);
  }
  EXPECT_GT(loader.stats().process_seconds, 0);
}

TEST(Loader, ItsStopTokenEndsItForGood) {
  std::stop_source stop;
  DataLoader loader(rows(test::numbered_rows(100, 2)), {.num_workers = 1, .stop = stop.get_token()});
  EXPECT_TRUE(loader.next());
  stop.request_stop();
  EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kCancelled);
  EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kCancelled);
  // One that waits for a batch is woken.
  std::stop_source second;
  std::atomic<bool> begun = false;
  std::atomic<bool> go_on = false;
  const Dataset slow = dataset(1, [&](std::int64_t) {
    begun = true;
    begun.notify_all();
    go_on.wait(false);
    return Value(1);
  });
  DataLoader waiting(slow, {.num_workers = 1, .stop = second.get_token()});
  std::thread taker([&] { EXPECT_EQ(test::code_of([&] { waiting.next(); }), ErrorCode::kCancelled); });
  begun.wait(false);
  second.request_stop();
  taker.join();
  go_on = true;
  go_on.notify_all();
}

TEST(Loader, GivesEachBatchOnceToThreadsThatAskAtOnce) {
  DataLoader loader(rows(test::numbered_rows(1000, 1)), {.batch_size = 3, .num_workers = 2});
  std::mutex mutex;
  std::multiset<std::int64_t> seen;
  std::vector<std::thread> threads;
  const auto batches = loader.size();
  std::atomic<std::int64_t> wanted = batches;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (wanted.fetch_sub(1) > 0) {
        const std::optional<Batch> batch = loader.next();
        const std::lock_guard lock(mutex);
        seen.insert(batch->indices.begin(), batch->indices.end());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen.size(), 1000U);
  EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 1000U);
}

TEST(Loader, TellsEachThreadThatTookBatchesTheEndOfTheEpoch) {
  DataLoader loader(rows(test::numbered_rows(60, 1)), {.batch_size = 1, .num_workers = 1});
  std::atomic<int> seen = 0;
  std::barrier all_have_one(4);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int epoch = 0; epoch < 2; ++epoch) {
        seen += loader.next().has_value() ? 1 : 0;
        all_have_one.arrive_and_wait();
        while (loader.next()) ++seen;
        all_have_one.arrive_and_wait();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(seen, 2 * 60);
  EXPECT_EQ(loader.epoch(), 2U);
  // A thread that took none of it begins the next one.
  EXPECT_TRUE(loader.next());
  // So does one that has not heard of an end, where the loader was told to begin.
  std::jthread([&] {
    while (loader.next()) {
    }
  }).join();
  loader.restart();
  EXPECT_TRUE(loader.next());
}

TEST(Loader, MadeOfNothingRefusesUntilOneIsAssigned) {
  DataLoader loader;
  EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { static_cast<void>(loader.size()); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { static_cast<void>(loader.position()); }), ErrorCode::kInvalidArgument);
  loader.stop();
  EXPECT_EQ(loader.epoch(), 0U);
  loader = DataLoader(rows(test::numbered_rows(2, 1)));
  EXPECT_EQ(loader.size(), 2);
  EXPECT_EQ(Dataset().size(), 0);
  EXPECT_FALSE(DataLoader(Dataset()).next());
  EXPECT_FALSE(DataLoader(SampleStream(), {}).next());
  EXPECT_EQ(Archive().size(), 0U);
  EXPECT_EQ(test::code_of([&] { Archive()["w"]; }), ErrorCode::kKeyNotFound);
  EXPECT_EQ(test::code_of([&] { static_cast<void>(LazyTensor().load()); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Source().size(), 0U);
}

TEST(Batch, ThatIsNoTensorNamesItsParts) {
  const Batch tuple(Value::tuple({Tensor::of({1}), Tensor::of({2})}), {0});
  EXPECT_THAT(test::error_of([&] { static_cast<void>(tuple.tensor()); })->message(), HasSubstr("batch[0]"));
  EXPECT_EQ(tuple[std::uint8_t{1}].at<int>(0), 2);
  const Batch dict({{"x", Tensor::of({1})}}, {0});
  EXPECT_THAT(test::error_of([&] { static_cast<void>(dict.tensor()); })->message(), HasSubstr("batch['x']"));
}

}  // namespace
}  // namespace penstock
