// What becomes of samples that cannot be had: OnError.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

#include "data/support.h"
#include "penstock/ops.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Indices = std::vector<std::int64_t>;

/// `size` samples, some of which cannot be had.
Dataset with_bad(std::int64_t size, std::set<std::int64_t> bad) {
  return dataset(size, [bad = std::move(bad)](std::int64_t i) {
    if (bad.contains(i)) throw std::runtime_error("sample is bad");
    return Tensor::of<std::int64_t>({i});
  });
}

std::vector<Indices> indices_of(DataLoader& loader) {
  std::vector<Indices> out;
  while (const auto batch = loader.next()) {
    EXPECT_EQ(test::values_of<std::int64_t>(batch->tensor().reshape({batch->size()})), batch->indices);
    out.push_back(batch->indices);
  }
  return out;
}

LoaderOptions options(OnError on_error, std::size_t workers) {
  return {.batch_size = 3, .num_workers = workers, .on_error = on_error};
}

TEST(OnError, SkipLeavesOutSamplesAndEmptyBatches) {
  for (const std::size_t workers : {0U, 1U, 2U, 4U}) {
    DataLoader loader(with_bad(11, {1, 3, 4, 5, 10}), options(OnError::kSkip, workers));
    for (int epoch = 0; epoch < 2; ++epoch) {
      EXPECT_THAT(indices_of(loader), ElementsAre(Indices{0, 2}, Indices{6, 7, 8}, Indices{9})) << workers;
    }
    EXPECT_EQ(loader.set_aside().size(), 5U);
    EXPECT_EQ(loader.set_aside()[1].index, 3);
    EXPECT_EQ(loader.set_aside()[1].what, "<dataset>[3]");
    EXPECT_THAT(loader.set_aside()[1].why, HasSubstr("sample is bad"));
  }
}

TEST(OnError, ReplaceTakesTheNextGoodSample) {
  for (const std::size_t workers : {0U, 1U, 2U, 4U}) {
    DataLoader loader(with_bad(8, {1, 2, 7}), options(OnError::kReplace, workers));
    EXPECT_THAT(indices_of(loader), ElementsAre(Indices{0, 3, 3}, Indices{3, 4, 5}, Indices{6, 0})) << workers;
  }
}

TEST(OnError, MaskTellsWhichSamplesWereAskedFor) {
  DataLoader loader(with_bad(4, {2}), options(OnError::kMask, 2));
  const auto first = loader.next();
  EXPECT_EQ(first->indices, (Indices{0, 1, 3}));
  EXPECT_THAT(test::values_of<bool>(first->valid), ElementsAre(true, true, false));
  EXPECT_THAT(test::values_of<bool>(loader.next()->valid), ElementsAre(true));
  EXPECT_FALSE(DataLoader(with_bad(4, {}), options(OnError::kRaise, 2)).next()->valid.defined());
}

TEST(OnError, RaiseGoesOnWithTheNextBatch) {
  DataLoader loader(with_bad(9, {4}), options(OnError::kRaise, 2));
  EXPECT_TRUE(loader.next());
  EXPECT_THAT(test::error_of([&] { loader.next(); })->message(), HasSubstr("sample 4 "));
  EXPECT_EQ(loader.next()->indices, (Indices{6, 7, 8}));
  EXPECT_FALSE(loader.next());
}

TEST(OnError, AnEpochWithoutASampleIsAnError) {
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace}) {
    DataLoader loader(with_bad(4, {0, 1, 2, 3}), options(on_error, 2));
    for (int epoch = 0; epoch < 2; ++epoch) {
      const auto error = test::error_of([&] { loader.next(); });
      EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error->message(), AllOf(HasSubstr("no sample of the epoch can be read"), HasSubstr("<dataset>[0]")));
      EXPECT_FALSE(loader.next()) << "the epoch has ended";
    }
    EXPECT_EQ(loader.epoch(), 2U);
  }
  DataLoader masked(with_bad(4, {0, 1, 2, 3}), options(OnError::kMask, 2));
  for (int batch = 0; batch < 2; ++batch) {
    EXPECT_EQ(test::code_of([&] { masked.next(); }), ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(masked.next()) << "batches are counted";
}

TEST(OnError, TheIterationBehindAnEpochWithoutASampleIsNotEmpty) {
  for (const bool sets_epoch : {false, true}) {
    DataLoader loader(with_bad(4, {0, 1, 2, 3}), options(OnError::kSkip, 2));
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(loader.epoch(), epoch);
      if (sets_epoch) {
        loader.set_epoch(epoch);
        EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kInvalidArgument);
      } else {
        EXPECT_EQ(test::code_of([&] { static_cast<void>(loader.begin() == loader.end()); }),
                  ErrorCode::kInvalidArgument);
      }
    }
  }
}

TEST(OnError, ALoaderThatGoesOnWhereOnlyBadSamplesAreLeftEndsAsTheWholeOneDoes) {
  for (const std::size_t workers : {0U, 2U}) {
    DataLoader whole(with_bad(9, {6, 7, 8}), options(OnError::kSkip, workers));
    EXPECT_TRUE(whole.next() && whole.next());
    const LoaderPosition position = whole.position();
    EXPECT_FALSE(whole.next());
    DataLoader loader(with_bad(9, {6, 7, 8}), options(OnError::kSkip, workers));
    loader.seek(position);
    EXPECT_FALSE(loader.next());
    EXPECT_EQ(loader.epoch(), 1U);
  }
}

TEST(OnError, AnInterruptionDoesNotHideThatAllSamplesAreBad) {
  auto stopped = std::make_shared<std::atomic<bool>>(false);
  const Dataset bad = dataset(9, [=](std::int64_t i) -> Value {
    if (i == 4 && !stopped->exchange(true)) throw Error(ErrorCode::kCancelled, "stopped by hand");
    throw std::runtime_error("sample is bad");
  });
  DataLoader loader(bad, options(OnError::kSkip, 0));
  EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kCancelled);
  EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kInvalidArgument);
}

TEST(OnError, ResumesWithTheSameBatches) {
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace, OnError::kMask}) {
    LoaderOptions given = options(on_error, 2);
    given.shuffle = true;
    const Dataset dataset = with_bad(30, {1, 2, 3, 4, 5, 6, 17, 20});
    DataLoader whole(dataset, given);
    std::vector<LoaderPosition> positions = {whole.position()};
    std::vector<std::string> expected;
    while (const auto batch = whole.next()) {
      expected.push_back(test::bits_of(*batch));
      positions.push_back(whole.position());
    }
    for (std::size_t taken = 0; taken < positions.size(); ++taken) {
      given.num_workers = taken % 3;
      DataLoader loader(dataset, given);
      loader.seek(positions[taken]);
      EXPECT_EQ(test::rest_of_epoch(loader),
                std::vector<std::string>(expected.begin() + static_cast<std::ptrdiff_t>(taken), expected.end()));
    }
  }
}

TEST(OnError, DoesNotHideWhatIsWrongWithTheBatchOrTheProcess) {
  const Dataset uneven = dataset(4, [](std::int64_t i) { return Tensor::zeros({i + 1}); });
  DataLoader shapes(uneven, options(OnError::kSkip, 1));
  EXPECT_EQ(test::code_of([&] { shapes.next(); }), ErrorCode::kShapeMismatch);
  EXPECT_TRUE(shapes.set_aside().empty());
  const Dataset hungry = dataset(4, [](std::int64_t) -> Value { throw std::bad_alloc(); });
  DataLoader memory(hungry, options(OnError::kSkip, 1));
  EXPECT_EQ(test::code_of([&] { memory.next(); }), ErrorCode::kOutOfMemory);
  EXPECT_TRUE(memory.set_aside().empty());
  DataLoader outside(with_bad(4, {}), {.batch_sampler = sampler::batches({{9}}), .on_error = OnError::kSkip});
  EXPECT_EQ(test::code_of([&] { outside.next(); }), ErrorCode::kIndexOutOfRange);
}

TEST(OnError, DamagedFilesAreSetAside) {
  const test::TemporaryFolder folder;
  test::write_tensors(folder, test::equal_tensors(6, Shape{3}), ".npy");
  test::write_file(folder / "0002.npy", std::string_view("no array"));
  std::filesystem::remove(folder / "0005.npy");
  std::vector<std::string> paths;
  for (std::int64_t i = 0; i < 6; ++i) paths.push_back(test::numbered_path(folder, i, ".npy"));
  DataLoader loader(files(paths), options(OnError::kSkip, 2));
  EXPECT_EQ(loader.next()->indices, (Indices{0, 1}));
  EXPECT_EQ(loader.next()->indices, (Indices{3, 4}));
  EXPECT_EQ(loader.set_aside()[0].what, folder / "0002.npy");
  EXPECT_EQ(loader.set_aside()[1].index, 5);
}

/// Samples whose first call fails for every so many of them.
Dataset flaky(std::int64_t size, std::int64_t each, std::shared_ptr<std::atomic<std::int64_t>> calls) {
  return dataset(size, [=](std::int64_t i) {
    if ((*calls)++ % each == each - 1) throw std::runtime_error("not this time");
    return Tensor::of<std::int64_t>({i});
  });
}

/// Asks a loader what it set aside when the last copy goes, as an exception of Python waits for the interpreter's lock,
/// which a thread may hold that asks so.
struct AsksWhenReleased : std::runtime_error {
  explicit AsksWhenReleased(std::function<void()> ask)
      : std::runtime_error("no"), asks(static_cast<void*>(nullptr), [ask = std::move(ask)](void*) { ask(); }) {}
  std::shared_ptr<void> asks;
};

TEST(OnError, AnErrorIsReleasedWhereItMayWaitForWhoAsksTheLoader) {
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace, OnError::kMask}) {
    std::atomic<DataLoader*> asked = nullptr;
    std::atomic<int> answers = 0;
    const auto ask = [&] {
      DataLoader* const loader = asked;
      if (loader != nullptr && !loader->set_aside().empty()) ++answers;
    };
    const Dataset bad = dataset(64, [&](std::int64_t i) {
      if (i % 4 == 1) throw AsksWhenReleased(ask);
      return Tensor::of<std::int64_t>({i});
    });
    DataLoader loader(bad, {.batch_size = 4, .num_workers = 2, .on_error = on_error});
    asked = &loader;
    while (loader.next()) {
    }
    EXPECT_GT(answers, 0);
    asked = nullptr;
  }
}

TEST(OnError, AFailureThatDoesNotRepeatCostsItsSampleAlone) {
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace, OnError::kMask}) {
    auto calls = std::make_shared<std::atomic<std::int64_t>>(0);
    DataLoader loader(flaky(640, 50, calls), {.batch_size = 64, .num_workers = 2, .on_error = on_error});
    std::set<std::int64_t> seen;
    std::int64_t batches = 0;
    while (const auto batch = loader.next()) {
      seen.insert(batch->indices.begin(), batch->indices.end());
      ++batches;
    }
    EXPECT_EQ(batches, 10);
    const auto aside = static_cast<std::int64_t>(loader.set_aside().size());
    EXPECT_LE(aside, 13);
    EXPECT_GE(static_cast<std::int64_t>(seen.size()), 640 - aside);
    EXPECT_LE(*calls, 640 + (on_error == OnError::kSkip ? 0 : aside)) << "each is called once";
  }
}

TEST(OnError, SamplesBesideABadOneAreMadeOnceBehindOtherSteps) {
  auto calls = std::make_shared<std::atomic<std::int64_t>>(0);
  const Dataset made = flaky(64, 1000, calls);
  const Dataset bad = with_bad(64, {5, 20, 21, 63});
  const Dataset all = zip({concat({subset(made, {1, 2, 3}), subset(made, Indices(61, 7))}), bad});
  DataLoader loader(all.cast(DType::float32), {.batch_size = 16, .num_workers = 2, .on_error = OnError::kSkip});
  std::size_t seen = 0;
  while (const auto batch = loader.next()) seen += batch->indices.size();
  EXPECT_EQ(seen, 60U);
  EXPECT_EQ(*calls, 64);
}

TEST(OnError, AnOutageIsRaisedAndItsSamplesAreTriedAgain) {
  auto is_down = std::make_shared<std::atomic<bool>>(true);
  const Dataset store = dataset(1000, [=](std::int64_t i) {
    if (i >= 500 && *is_down) throw std::runtime_error("no answer");
    return Tensor::of<std::int64_t>({i});
  });
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace, OnError::kMask}) {
    *is_down = true;
    DataLoader loader(store, {.batch_size = 10, .num_workers = 0, .on_error = on_error});
    std::optional<Error> raised;
    int batches = 0;
    while (!raised) {
      try {
        ASSERT_TRUE(loader.next());
        ++batches;
      } catch (const Error& error) {
        raised = error;
      }
    }
    EXPECT_EQ(batches, 50);
    EXPECT_THAT(raised->message(), AllOf(HasSubstr("outage"), HasSubstr("no answer")));
    EXPECT_TRUE(loader.set_aside().empty());
    *is_down = false;
    while (loader.next()) ++batches;
    EXPECT_GE(batches, 88);
    EXPECT_TRUE(loader.set_aside().empty());
  }
}

/// A loader's second batch of two, whose sample 3 throws `error`.
std::optional<Batch> second_batch(const Error& error) {
  const Dataset samples = dataset(8, [error](std::int64_t i) -> Value {
    if (i == 3) throw error;
    return Tensor::of<std::int64_t>({i});
  });
  DataLoader loader(samples, {.batch_size = 2, .on_error = OnError::kSkip});
  EXPECT_TRUE(loader.next());
  return loader.next();
}

TEST(OnError, WhatTheProcessOrItsServerLacksIsRaised) {
  for (const int number : {EMFILE, ENFILE, ENOTCONN, EHOSTDOWN}) {
    const Error error(ErrorCode::kIo, "a text in any language", {.path = "3.npy", .system_error = number});
    EXPECT_EQ(test::code_of([&] { second_batch(error); }), ErrorCode::kIo) << number;
  }
  const Error unanswered(ErrorCode::kIo, "a function read a URL", {.http_status = 0});
  EXPECT_EQ(test::code_of([&] { second_batch(unanswered); }), ErrorCode::kIo);
}

TEST(OnError, AnErrorThatQuotesTheSystemIsOfItsSample) {
  for (const char* const text : {"the notes say: Too many open files", "Transport endpoint is not connected",
                                 "see https://example.com/format for what is wrong"}) {
    EXPECT_EQ(second_batch(Error(ErrorCode::kIo, text, {.path = "3.npy"}))->indices, Indices{2}) << text;
  }
}

TEST(OnError, WhatComesFromAStoreIsRaised) {
  for (const ErrorCode code : {ErrorCode::kPermission, ErrorCode::kIo, ErrorCode::kTimeout}) {
    const Dataset store = dataset(8, [code](std::int64_t i) -> Value {
      if (i == 3) throw Error(code, "the server answered 403", {.path = "s3://bucket/3.npy"});
      return Tensor::of<std::int64_t>({i});
    });
    DataLoader loader(store, options(OnError::kSkip, 1));
    EXPECT_TRUE(loader.next());
    EXPECT_EQ(test::code_of([&] { loader.next(); }), code);
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.set_aside().empty());
  }
  const Dataset gone = dataset(8, [](std::int64_t i) -> Value {
    if (i == 3) throw Error(ErrorCode::kNotFound, "the server answered 404", {.path = "s3://bucket/3.npy"});
    return Tensor::of<std::int64_t>({i});
  });
  DataLoader loader(gone, options(OnError::kSkip, 1));
  EXPECT_TRUE(loader.next());
  EXPECT_EQ(loader.next()->indices, (Indices{4, 5}));
}

}  // namespace
}  // namespace penstock
