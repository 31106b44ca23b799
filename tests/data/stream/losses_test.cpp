// An item that was taken of a source is kept until it is delivered: whatever throws or is stopped meanwhile.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>

#include "data/stream/numbers.h"
#include "data/support.h"
#include "penstock/ops.h"
#include "penstock/sample_stream.h"

namespace penstock {
namespace {

using test::flat;
using test::Numbers;
using test::options;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// 0, 1, ... of so many; those of `bad` throw.
auto next_of(std::int64_t size, std::set<std::int64_t> bad, std::int64_t start = 0) {
  return [=, next = start]() mutable -> std::optional<Value> {
    if (next >= size) return std::nullopt;
    const std::int64_t number = next++;
    if (bad.contains(number)) throw std::runtime_error("no sample");
    return Value::integer(number);
  };
}
SampleStream failing(std::int64_t size, const std::set<std::int64_t>& bad) {
  return stream([=] { return next_of(size, bad); });
}
SampleStream failing_anywhere(std::int64_t size, const std::set<std::int64_t>& bad) {
  return stream([=](std::int64_t start) { return next_of(size, bad, start); });
}

/// Batch by batch; an error is an empty one.
std::vector<Numbers> outcomes(DataLoader& loader) {
  std::vector<Numbers> out;
  while (true) {
    try {
      const auto batch = loader.next();
      if (!batch) return out;
      out.push_back(test::values_of<std::int64_t>(batch->tensor()));
    } catch (const Error&) {
      out.emplace_back();
    }
  }
}

TEST(StreamLosses, WhatWasReadBeforeAnErrorOfTheSourceComesAfterIt) {
  for (const std::size_t workers : {0U, 1U, 3U}) {
    for (const OnError on_error : {OnError::kRaise, OnError::kSkip}) {
      DataLoader loader(failing(13, {7}), options(5, workers, on_error));
      EXPECT_THAT(outcomes(loader),
                  ElementsAre(Numbers{0, 1, 2, 3, 4}, Numbers{}, Numbers{5, 6, 8, 9, 10}, Numbers{11, 12}))
          << workers;
    }
  }
}

TEST(StreamLosses, AFilterThatThrowsLosesItsSampleAlone) {
  const SampleStream one = failing(13, {}).filter([](const Value& sample) {
    if (sample.as_int() == 7) throw std::runtime_error("no");
    return true;
  });
  DataLoader loader(one, options(5, 2));
  EXPECT_THAT(outcomes(loader),
              ElementsAre(Numbers{0, 1, 2, 3, 4}, Numbers{}, Numbers{5, 6, 8, 9, 10}, Numbers{11, 12}));
}

TEST(StreamLosses, RanksKeepTheirsToo) {
  std::multiset<std::int64_t> seen;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    LoaderOptions of_rank = options(2, 1);
    of_rank.ranks = Ranks{.rank = rank, .size = 2};
    of_rank.remainder = Remainder::kDrop;
    DataLoader loader(failing(13, {3, 8}), of_rank);
    for (const Numbers& batch : outcomes(loader)) seen.insert(batch.begin(), batch.end());
  }
  EXPECT_EQ(seen, (std::multiset<std::int64_t>{0, 1, 2, 4, 5, 6, 7, 9, 10, 11}));
}

TEST(StreamLosses, APositionKnowsWhatIsHeld) {
  const std::set<std::int64_t> bad = {7, 8, 21};
  for (const SampleStream& one : {failing(33, bad), failing_anywhere(33, bad), failing(33, bad).shuffle(4)}) {
    DataLoader whole(one, options(5, 0));
    std::vector<LoaderPosition> positions;
    std::vector<Numbers> expected;
    while (expected.empty() || whole.epoch() == 0) {
      positions.push_back(LoaderPosition::from_json(whole.position().to_json()));
      try {
        const auto batch = whole.next();
        if (!batch) break;
        expected.push_back(test::values_of<std::int64_t>(batch->tensor()));
      } catch (const Error&) {
        expected.emplace_back();
      }
    }
    for (std::size_t taken = 0; taken < positions.size(); ++taken) {
      DataLoader loader(one, options(5, taken % 3));
      loader.seek(positions[taken]);
      EXPECT_EQ(outcomes(loader),
                std::vector<Numbers>(expected.begin() + static_cast<std::ptrdiff_t>(taken), expected.end()))
          << taken;
    }
  }
}

/// Stops once, at the sample of that number.
struct Interruption {
  std::shared_ptr<bool> done = std::make_shared<bool>(false);
  std::int64_t at = 0;

  void operator()(std::int64_t number) const {
    if (number != at || *done) return;
    *done = true;
    throw Error(ErrorCode::kCancelled, "stopped by hand");
  }
};

const Numbers kEight = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(StreamLosses, AnInterruptedFilterIsAskedAgain) {
  for (std::int64_t at = 0; at < 8; ++at) {
    const SampleStream one = failing(8, {}).filter([stop = Interruption{.at = at}](const Value& sample) {
      stop(sample.as_int());
      return true;
    });
    DataLoader loader(one, options(3, 0));
    EXPECT_EQ(flat(outcomes(loader)), kEight);
  }
}

TEST(StreamLosses, AnInterruptedMapBelowAFilterIsCalledAgain) {
  for (std::int64_t at = 0; at < 8; ++at) {
    const SampleStream one = failing(8, {})
                                 .map([stop = Interruption{.at = at}](const Value& sample) {
                                   stop(sample.as_int());
                                   return sample;
                                 })
                                 .filter([](const Value&) { return true; });
    DataLoader loader(one, options(3, 0));
    EXPECT_EQ(flat(outcomes(loader)), kEight);
  }
}

TEST(StreamLosses, AnInterruptedSourceGoesOnWhereItWas) {
  for (std::int64_t at = 0; at < 8; ++at) {
    const Interruption stop{.at = at};
    const auto source = [stop](std::int64_t start) {
      return [stop, next = start, dead = false]() mutable -> std::optional<Value> {
        if (dead || next == 8) return std::nullopt;
        dead = true;  // as a generator is that an exception went through
        stop(next);
        dead = false;
        return Value::integer(next++);
      };
    };
    DataLoader anywhere(stream(source), options(3, 0));
    EXPECT_EQ(flat(outcomes(anywhere)), kEight);
    *stop.done = false;
    DataLoader anew(stream([source] { return source(0); }), options(3, 0));
    EXPECT_EQ(flat(outcomes(anew)), kEight);
    *stop.done = false;
    DataLoader once(stream(source(0)), options(3, 0));
    Numbers seen;
    std::optional<Error> lost;
    for (bool more = true; more;) {
      try {
        const auto batch = once.next();
        more = batch.has_value();
        if (!more) break;
        const Numbers values = test::values_of<std::int64_t>(batch->tensor());
        seen.insert(seen.end(), values.begin(), values.end());
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCancelled) lost = error;
      }
    }
    EXPECT_EQ(seen, Numbers(kEight.begin(), kEight.begin() + at));
    ASSERT_TRUE(lost) << "it did not end silently";
    EXPECT_THAT(lost->message(), HasSubstr("are lost"));
  }
}

TEST(StreamLosses, ASourceThatGivesOtherSamplesAfterAnInterruptionIsAnError) {
  const Interruption stop{.at = 5};
  auto passes = std::make_shared<std::int64_t>(0);
  const SampleStream one = stream([stop, passes] {
    return [stop, begin = 100 * (*passes)++, next = std::int64_t{0}]() mutable -> std::optional<Value> {
      if (next == 8) return std::nullopt;
      stop(next);
      return Value::integer(begin + next++);
    };
  });
  DataLoader loader(one, options(2, 0));
  EXPECT_THAT(outcomes(loader), ElementsAre(Numbers{0, 1}, Numbers{2, 3}, Numbers{}, Numbers{}, Numbers{4}));
}

TEST(StreamLosses, AWalkGoesOnBehindErrorsAndInterruptions) {
  const SampleStream one = failing(8, {2}).map([stop = Interruption{.at = 5}](const Value& sample) {
    stop(sample.as_int());
    return sample;
  });
  SampleStream::Iterator it = one.begin();
  Numbers seen;
  int errors = 0;
  while (true) {
    try {
      if (it == one.end()) break;
      seen.push_back((*it).as_int());
      ++it;
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_EQ(seen, (Numbers{0, 1, 3, 4, 5, 6, 7}));
  EXPECT_EQ(errors, 2);
}

TEST(StreamLosses, ASourceThatEndsByAnErrorWhileItIsSkippedSaysSo) {
  const auto generator = [] {
    return [next = std::int64_t{0}]() mutable -> std::optional<Value> {
      if (next > 1) return std::nullopt;  // as a generator that an exception went through
      if (next++ == 1) throw std::runtime_error("no disk");
      return Value::integer(0);
    };
  };
  for (const std::int64_t count : {2, 5}) {
    DataLoader loader(stream(generator).skip(count), options(2, 0));
    EXPECT_THAT(test::error_of([&] { loader.next(); })->message(), HasSubstr("no disk")) << count;
    EXPECT_FALSE(loader.next());
  }
  const auto nothing = []() -> std::function<std::optional<Value>()> { throw std::runtime_error("no file"); };
  DataLoader unopened(stream(nothing).skip(1), options(2, 0));
  EXPECT_THAT(test::error_of([&] { unopened.next(); })->message(), HasSubstr("no file"));
  EXPECT_FALSE(unopened.next());
  DataLoader goes_on(failing(6, {1}).skip(3), options(5, 0));
  EXPECT_EQ(flat(outcomes(goes_on)), (Numbers{3, 4, 5})) << "what nobody wants may be bad";
}

TEST(StreamLosses, AFilterThatRefusesAllSamplesIsAnError) {
  const auto refuse = [](const Value&) -> bool { throw std::runtime_error("no"); };
  for (const std::size_t workers : {0U, 2U}) {
    DataLoader loader(failing(9, {}).filter(refuse), options(5, workers, OnError::kSkip));
    for (int epoch = 0; epoch < 2; ++epoch) {
      EXPECT_THAT(test::error_of([&] { loader.next(); })->message(), HasSubstr("no sample of the epoch")) << workers;
      EXPECT_FALSE(loader.next());
    }
    const auto late = [](const Value& sample) { return sample.as_int() < 5 ? true : throw std::runtime_error("no"); };
    DataLoader some(failing(9, {}).filter(late), options(5, workers, OnError::kSkip));
    EXPECT_EQ(flat(outcomes(some)), (Numbers{0, 1, 2, 3, 4}));
    EXPECT_EQ(some.set_aside().size(), 4U);
  }
}

TEST(StreamLosses, APositionOfAStreamWithoutWhatWasReadIsRefused) {
  DataLoader loader(failing_anywhere(40, {}), options(4, 0));
  const auto missing = test::error_of([] {
    LoaderPosition::from_json(R"({"seed":0,"epoch":0,"batch":2,"samples":0,"batch_size":4,"order":"stream"})");
  });
  EXPECT_THAT(missing->message(), HasSubstr("'read'"));
  loader.seek({.batch = 2, .batch_size = 4, .order = "stream"});
  const auto changed = test::error_of([&] { loader.next(); });
  EXPECT_THAT(changed->message(), HasSubstr("0 samples had been read for 2 batches, but now 8 were read"));
}

}  // namespace
}  // namespace penstock
