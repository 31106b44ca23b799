#include "penstock/sample_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "data/stream/numbers.h"
#include "data/support.h"
#include "penstock/ops.h"
#include "penstock/windows.h"

namespace penstock {
namespace {

using test::flat;
using test::Numbers;
using test::options;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Samples begin, begin + 1, ... of so many; `calls` counts them.
SampleStream counting(std::int64_t size, std::int64_t begin = 0, std::atomic<int>* calls = nullptr) {
  return stream([=] {
    return [=, next = std::int64_t{0}]() mutable -> std::optional<Value> {
      if (calls) ++*calls;
      if (next == size) return std::nullopt;
      return Value::integer(begin + next++);
    };
  });
}

SampleStream counting_from_anywhere(std::int64_t size, std::atomic<int>* calls) {
  return stream([=](std::int64_t start) {
    return [=, next = start]() mutable -> std::optional<Value> {
      ++*calls;
      if (next >= size) return std::nullopt;
      return Value::integer(next++);
    };
  });
}

Numbers all_of(const SampleStream& stream) {
  Numbers out;
  for (const Value& sample : stream) out.push_back(sample.as_int());
  return out;
}

Numbers up_to(std::int64_t size, std::int64_t begin = 0) {
  Numbers out(static_cast<std::size_t>(size));
  std::iota(out.begin(), out.end(), begin);
  return out;
}

/// The batches until the end of the epoch, as lists.
std::vector<Numbers> batches_of(DataLoader& loader) {
  std::vector<Numbers> out;
  while (const auto batch = loader.next()) out.push_back(test::values_of<std::int64_t>(batch->tensor()));
  return out;
}

TEST(SampleStream, GivesWhatItsFunctionGives) {
  std::int64_t next = 0;
  const SampleStream once = stream([next]() mutable -> std::optional<Tensor> {
    if (next == 3) return std::nullopt;
    return Tensor::of<std::int64_t>({next++});
  });
  EXPECT_FALSE(once.can_begin_again());
  Numbers seen;
  for (const Value& sample : once) seen.push_back(sample.as_tensor().item<std::int64_t>());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2));
  EXPECT_THAT(test::error_of([&] { all_of(once); })->message(), HasSubstr("can be read once"));
  EXPECT_EQ(all_of(stream(dataset({Value::integer(4), Value::integer(9)}))), (Numbers{4, 9}));
  EXPECT_THAT(all_of(counting(0)), IsEmpty());
}

TEST(SampleStream, CutsRepeatsAndFilters) {
  EXPECT_EQ(all_of(take(counting(9), 3)), up_to(3));
  EXPECT_EQ(all_of(skip(counting(9), 7)), (Numbers{7, 8}));
  EXPECT_THAT(all_of(counting(2).skip(5)), IsEmpty());
  EXPECT_EQ(all_of(repeat(counting(2), 3)), (Numbers{0, 1, 0, 1, 0, 1}));
  EXPECT_THAT(all_of(counting(2).repeat(0)), IsEmpty());
  EXPECT_EQ(all_of(counting(3).repeat().take(7)), (Numbers{0, 1, 2, 0, 1, 2, 0}));
  const auto even = [](const Value& sample) { return sample.as_int() % 2 == 0; };
  EXPECT_EQ(all_of(counting(7).filter(even)), (Numbers{0, 2, 4, 6}));
  const auto plus = [](const Value& sample) { return Value::integer(sample.as_int() + 1); };
  EXPECT_EQ(all_of(counting(7).map(plus).filter(even).map(plus)), (Numbers{3, 5, 7}));
  std::atomic<int> calls = 0;
  EXPECT_EQ(all_of(counting(9, 0, &calls).take(4)), up_to(4));
  EXPECT_EQ(calls, 4);  // no call for what nobody wants
}

TEST(SampleStream, RefusesWhatCannotBe) {
  const SampleStream five = counting(5);
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { five.take(-1); },
           [&] { five.skip(-1); },
           [&] { five.repeat(-1); },
           [&] { five.shuffle(0); },
           [&] { five.shuffle(-3); },
           [&] { mix({five}, {std::nan("")}); },
           [&] { mix({five}, {-1.0}); },
           [&] {
             mix({five, five}, {1});
           },
           [&] { mix({five}, {0}); },
           [&] { mix(std::vector<SampleStream>{}, {}); },
           [&] { mix({five}, {1}, {.size = -1}); },
           [&] { all_of(counting(0).repeat()); },
           [&] {
             all_of(mix({counting(0), five}, {1, 1}, {.end = MixEnd::kAll}));
           },
           [&] { stream([]() -> std::optional<Value> { return std::nullopt; }).repeat(2); },
           [&] { DataLoader(five, {.shuffle = true}); },
           [&] { DataLoader(five, {.sampler = sampler::sequential(5)}); },
           [&] { DataLoader(five, {.on_error = OnError::kReplace}); },
           [&] { DataLoader(five, {.batch_size = 0}); },
           [&] { DataLoader(five, {.ranks = Ranks{.rank = 2, .size = 2}}); },
           [&] { static_cast<void>(DataLoader(five, {}).size()); },
           [&] { DataLoader(counting(0).repeat(), options(1, 1)).next(); }}) {
    EXPECT_EQ(test::code_of(call), ErrorCode::kInvalidArgument);
  }
  EXPECT_THAT(test::error_of([&] { mix({five}, {std::nan("")}); })->message(), HasSubstr("weight 0 is nan"));
}

TEST(SampleStream, MixesInExactShares) {
  const std::vector<double> weights = {5, 3, 2};
  const SampleStream mixed = mix({counting(1000), counting(1000, 1000), counting(1000, 2000)}, weights);
  std::array<int, 3> given{};
  int count = 0;
  for (const Value& sample : mixed.take(500)) {
    ++given[static_cast<std::size_t>(sample.as_int() / 1000)];
    ++count;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(std::abs(given[i] - weights[i] / 10 * count), 1) << count;
  }
  EXPECT_EQ(count, 500);
  // As the mixture of datasets of the same sizes.
  const auto of = [](std::int64_t size, std::int64_t begin) {
    return dataset(size, [begin](std::int64_t i) { return Value::integer(begin + i); });
  };
  for (const MixOptions& how : {MixOptions{}, MixOptions{.size = 23}}) {
    const Dataset expected = mix({of(5, 0), of(4, 100)}, {2, 1}, how);
    Numbers values;
    for (const Value& sample : expected) values.push_back(sample.as_int());
    EXPECT_EQ(all_of(mix({counting(5), counting(4, 100)}, {2, 1}, how)), values);
  }
  const Numbers both = all_of(mix({counting(2), counting(5, 100)}, {1, 1}, {.end = MixEnd::kAll}));
  EXPECT_EQ(std::count_if(both.begin(), both.end(), [](std::int64_t value) { return value >= 100; }), 5);
  EXPECT_EQ(std::count(both.begin(), both.end(), 0), 3);
}

TEST(SampleStream, ShufflesInAWindow) {
  const SampleStream shuffled = counting(100).shuffle(10, 7);
  const Numbers order = all_of(shuffled);
  EXPECT_NE(order, up_to(100));
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_LT(order[i], static_cast<std::int64_t>(i) + 10);
  Numbers sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, up_to(100));
  EXPECT_EQ(all_of(shuffled), order);
  EXPECT_NE(all_of(counting(100).shuffle(10, 8)), order);
  EXPECT_EQ(all_of(counting(9).shuffle(1)), up_to(9));
  EXPECT_EQ(all_of(counting(9).shuffle(std::numeric_limits<std::int64_t>::max())).size(), 9U);
  // Each place is as likely as the others: the first of 4 over many seeds.
  std::array<int, 4> first{};
  for (std::uint64_t seed = 0; seed < 800; ++seed)
    ++first[static_cast<std::size_t>(all_of(counting(4).shuffle(4, seed))[0])];
  for (const int count : first) EXPECT_NEAR(count, 200, 60);
}

TEST(SampleStream, AWindowBeyondItsMemoryIsRefused) {
  const SampleStream large = stream([] {
    return []() -> std::optional<Tensor> { return full({1000}, 0, DType::uint8); };  // which never ends
  });
  const auto error = test::error_of([&] { all_of(large.shuffle(1 << 20, 0, {.memory = 50'000})); });
  EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error->message(), HasSubstr("smaller window"));
}

TEST(StreamLoader, BatchesAreTheSameForAnyNumberOfWorkers) {
  const auto noisy = [](const Value& sample, Generator& generator) {
    return Value::integer(sample.as_int() * 1000 + randint(0, 1000, Shape{}, generator).item<std::int64_t>());
  };
  const auto odd = [](const Value& sample) { return sample.as_int() % 3 != 0; };
  const std::vector<SampleStream> streams = {
      counting(50),
      counting(50).shuffle(8, 3).map(noisy),
      counting(50).map(noisy).filter(odd).map(noisy),
      mix({counting(20).map(noisy), counting(30, 100).shuffle(4)}, {1, 2}, {.size = 50}).map(noisy),
      counting(10).shuffle(4).repeat(5).map(noisy),
  };
  for (const SampleStream& one : streams) {
    std::vector<std::vector<Numbers>> expected;
    for (const std::size_t workers : {0U, 1U, 4U}) {
      DataLoader loader(one, options(4, workers));
      std::vector<std::vector<Numbers>> epochs = {batches_of(loader), batches_of(loader)};
      if (expected.empty()) expected = epochs;
      EXPECT_EQ(epochs, expected);
      EXPECT_EQ(loader.epoch(), 2U);
      EXPECT_GT(loader.stats().samples, 0U);
    }
  }
  DataLoader drops(counting(10), {.batch_size = 4, .num_workers = 2, .drop_last = true});
  EXPECT_EQ(batches_of(drops), (std::vector<Numbers>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  DataLoader empty(counting(0), options(4, 2));
  EXPECT_THAT(batches_of(empty), IsEmpty());
}

TEST(StreamLoader, GoesOnFromAnyPosition) {
  const auto odd = [](const Value& sample) { return sample.as_int() % 3 != 0; };
  const std::vector<SampleStream> streams = {
      counting(30), counting(30).shuffle(7, 1), counting(30).shuffle(5).filter(odd),
      mix({counting(9), counting(30, 100)}, {1, 3}, {.end = MixEnd::kAll}).shuffle(3), counting(9).skip(2).repeat(3)};
  for (const SampleStream& one : streams) {
    DataLoader whole(one, options(4, 0));
    whole.set_epoch(3);
    const std::vector<Numbers> expected = batches_of(whole);
    for (std::size_t taken = 0; taken <= expected.size(); ++taken) {
      DataLoader first(one, options(4, 3));
      first.set_epoch(3);
      for (std::size_t i = 0; i < taken; ++i) first.next();
      DataLoader second(one, options(4, 2));
      second.seek(LoaderPosition::from_json(first.position().to_json()));
      EXPECT_EQ(batches_of(second),
                std::vector<Numbers>(expected.begin() + static_cast<std::ptrdiff_t>(taken), expected.end()));
      EXPECT_EQ(second.epoch(), 4U);
    }
  }
}

TEST(StreamLoader, ASourceThatBeginsAnywhereIsNotReadAgain) {
  std::atomic<int> calls = 0;
  for (const SampleStream& one : {counting_from_anywhere(100, &calls), counting_from_anywhere(120, &calls).skip(20)}) {
    DataLoader first(one, options(10, 0));
    const Numbers expected = flat(batches_of(first));
    DataLoader second(one, options(10, 0));
    for (int i = 0; i < 6; ++i) second.next();
    const LoaderPosition position = second.position();
    calls = 0;
    DataLoader third(one, options(10, 0));
    third.seek(position);
    EXPECT_EQ(flat(batches_of(third)), Numbers(expected.begin() + 60, expected.end()));
    EXPECT_EQ(calls, 41);
  }
}

TEST(StreamLoader, APositionOfAnotherStreamIsRefused) {
  DataLoader loader(counting(40), options(4, 1));
  for (int i = 0; i < 5; ++i) loader.next();
  const LoaderPosition position = loader.position();
  EXPECT_EQ(position.read, 20);
  EXPECT_EQ(position.order, "stream");
  for (const SampleStream& other :
       {counting(13), counting(40).filter([](const Value& v) { return v.as_int() % 2 == 1; })}) {
    DataLoader changed(other, options(4, 1));
    changed.seek(position);
    const auto error = test::error_of([&] { changed.next(); });
    EXPECT_EQ(error->code(), ErrorCode::kChanged);
    EXPECT_THAT(error->message(), HasSubstr("has changed: at the saved position"));
    EXPECT_FALSE(changed.next());
  }
  DataLoader sizes(counting(40), options(5, 1));
  EXPECT_EQ(test::code_of([&] { sizes.seek(position); }), ErrorCode::kInvalidArgument);
  DataLoader rows_of(dataset(40, [](std::int64_t i) { return Value::integer(i); }), options(4, 1));
  EXPECT_EQ(test::code_of([&] { rows_of.seek(position); }), ErrorCode::kInvalidArgument);
}

SampleStream only_once(std::int64_t size) {
  return stream([size, next = std::int64_t{0}]() mutable -> std::optional<Value> {
    if (next == size) return std::nullopt;
    return Value::integer(next++);
  });
}

TEST(StreamLoader, ASourceThatCannotGoBackIsReadOnceAndUpToThePlace) {
  DataLoader loader(only_once(10), options(4, 2));
  EXPECT_EQ(flat(batches_of(loader)), up_to(10));
  EXPECT_THAT(test::error_of([&] { loader.next(); })->message(), HasSubstr("can be read once"));
  DataLoader second(only_once(10), options(4, 2));
  second.seek({.epoch = 5, .batch = 2, .batch_size = 4, .order = "stream", .read = 8});
  EXPECT_EQ(flat(batches_of(second)), up_to(2, 8));
  DataLoader third(only_once(10), options(4, 2));
  third.next();
  EXPECT_EQ(test::code_of([&] { third.seek({.batch = 2, .batch_size = 4, .order = "stream", .read = 8}); }),
            ErrorCode::kInvalidArgument);
  third.seek(third.position());  // where it is
  EXPECT_EQ(flat(batches_of(third)), up_to(6, 4));
}

TEST(StreamLoader, StoppingLosesNothing) {
  for (const std::size_t workers : {0U, 3U}) {
    DataLoader loader(only_once(100), options(3, workers));
    Numbers seen;
    while (const auto batch = loader.next()) {
      const Numbers values = test::values_of<std::int64_t>(batch->tensor());
      seen.insert(seen.end(), values.begin(), values.end());
      loader.stop();
    }
    EXPECT_EQ(seen, up_to(100));
  }
}

TEST(StreamLoader, AnEndlessStreamIsStoppedAndLeft) {
  std::atomic<bool> asked = false;
  const SampleStream none = stream([&asked] {
                              return [&asked]() -> std::optional<Value> {
                                asked = true;
                                return Value::integer(1);
                              };
                            }).filter([](const Value&) { return false; });
  DataLoader loader(none, options(1, 2));
  std::thread stopper([&] {
    while (!asked) std::this_thread::yield();
    loader.stop();
  });
  EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kCancelled);
  stopper.join();
  EXPECT_TRUE(loader.next_for(0.01).timed_out);
}

TEST(StreamLoader, ErrorsNameTheSampleAndTheLoaderGoesOn) {
  const SampleStream failing = stream(
      [] {
        return [next = std::int64_t{0}]() mutable -> std::optional<Value> {
          if (next == 12) return std::nullopt;
          if (next++ == 5) throw Error(ErrorCode::kIo, "no disk", {.path = "clip.tar"});
          return Value::integer(next - 1);
        };
      },
      {.name = "clips"});
  for (const std::size_t workers : {0U, 2U}) {
    for (const OnError on_error : {OnError::kRaise, OnError::kSkip}) {
      DataLoader loader(failing, {.batch_size = 4, .num_workers = workers, .on_error = on_error});
      EXPECT_THAT(test::values_of<std::int64_t>(loader.next()->tensor()), ElementsAre(0, 1, 2, 3));
      const auto error = test::error_of([&] { loader.next(); });
      EXPECT_EQ(error->code(), ErrorCode::kIo);
      EXPECT_STREQ(error->what(), "clip.tar: sample 5 (clips[5]): no disk");
      const LoaderPosition position = loader.position();
      const Numbers rest = {4, 6, 7, 8, 9, 10, 11};  // 4 was read before the source threw
      EXPECT_EQ(flat(batches_of(loader)), rest);
      DataLoader again(failing, {.batch_size = 4, .num_workers = workers, .on_error = on_error});
      again.seek(position);
      EXPECT_EQ(flat(batches_of(again)), rest);
    }
  }
}

TEST(StreamLoader, BadSamplesAreNamedOrSkipped) {
  const auto refuse = [](const Value& sample) {
    if (sample.as_int() % 4 == 1) throw std::runtime_error("it is bad");
    return sample;
  };
  const auto all = [](const Value&) { return true; };
  for (const SampleStream& one : {counting(10).map(refuse), counting(10).map(refuse).filter(all)}) {
    DataLoader raising(one, options(5, 2));
    const auto error = test::error_of([&] { raising.next(); });
    EXPECT_EQ(error->code(), ErrorCode::kUserCode);
    EXPECT_THAT(error->what(), AllOf(HasSubstr("sample 1 (<stream>[1])"), HasSubstr("it is bad")));
    for (const std::size_t workers : {0U, 2U}) {
      DataLoader loader(one, {.batch_size = 5, .num_workers = workers, .on_error = OnError::kSkip});
      EXPECT_EQ(flat(batches_of(loader)), (Numbers{0, 2, 3, 4, 6, 7, 8}));
      ASSERT_EQ(loader.set_aside().size(), 3U);
      EXPECT_EQ(loader.set_aside()[2].index, 9);
      EXPECT_EQ(loader.set_aside()[2].what, "<stream>[9]");
    }
  }
  DataLoader mixed(mix({counting(5), counting(5, 10).map(refuse)}, {1, 1}), options(10, 1));
  EXPECT_THAT(test::error_of([&] { mixed.next(); })->what(),
              AllOf(HasSubstr("<mixture>["), HasSubstr("<stream>["), HasSubstr("it is bad")));
}

TEST(StreamLoader, RanksShareAStreamInTurn) {
  for (const Remainder remainder : {Remainder::kPad, Remainder::kDrop, Remainder::kExact}) {
    std::vector<Numbers> seen;
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      LoaderOptions how = options(2, 2);
      how.ranks = Ranks{.rank = rank, .size = 3};
      how.remainder = remainder;
      DataLoader loader(counting(16), how);
      Numbers values;
      int valid = 0;
      while (const auto batch = loader.next()) {
        const Numbers some = test::values_of<std::int64_t>(batch->tensor());
        values.insert(values.end(), some.begin(), some.end());
        EXPECT_EQ(batch->valid.defined(), remainder == Remainder::kExact);
        if (batch->valid.defined()) {
          for (const bool flag : batch->valid.values<bool>()) valid += flag ? 1 : 0;
        }
      }
      if (remainder == Remainder::kExact) {
        EXPECT_EQ(valid, rank == 0 ? 6 : 5);
      }
      seen.push_back(values);
    }
    if (remainder == Remainder::kDrop) {
      EXPECT_THAT(seen, ElementsAre(Numbers{0, 3, 6, 9, 12}, Numbers{1, 4, 7, 10, 13}, Numbers{2, 5, 8, 11, 14}));
    } else {
      EXPECT_THAT(seen,
                  ElementsAre(Numbers{0, 3, 6, 9, 12, 15}, Numbers{1, 4, 7, 10, 13, 0}, Numbers{2, 5, 8, 11, 14, 1}));
    }
  }
}

TEST(StreamLoader, AnotherNumberOfRanksGoesOn) {
  const auto ranked = [](std::int64_t rank, std::int64_t size, std::int64_t batch) {
    LoaderOptions how = options(batch, 1);
    how.ranks = Ranks{.rank = rank, .size = size};
    return how;
  };
  DataLoader two(counting(48).shuffle(6), ranked(0, 2, 2));
  for (int i = 0; i < 4; ++i) two.next();
  const LoaderPosition position = two.position();  // 16 samples of both
  DataLoader whole(counting(48).shuffle(6), options(1, 0));
  const Numbers order = flat(batches_of(whole));
  Numbers rest;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    DataLoader four(counting(48).shuffle(6), ranked(rank, 4, 2));
    four.seek(position);
    const Numbers some = flat(batches_of(four));
    for (std::size_t i = 0; i < some.size(); ++i)
      EXPECT_EQ(some[i], order[16 + i * 4 + static_cast<std::size_t>(rank)]);
    rest.insert(rest.end(), some.begin(), some.end());
  }
  EXPECT_EQ(rest.size(), 32U);
}

TEST(StreamLoader, TransformsCollationAndBatchFunctionsWork) {
  const SampleStream images = stream([] {
    return [next = 0]() mutable -> std::optional<Tensor> {
      if (next == 6) return std::nullopt;
      return full({2, 2 + next++}, 10.0, DType::uint8);
    };
  });
  const auto total = [](const Value& batch) { return Value::tensor(sum(batch.as_tensor())); };
  LoaderOptions how = options(3, 2);
  how.collate = collate::pad({.dim = 1});
  DataLoader loader(images.cast(DType::float32).scale(0.5).map(total, {.batched = true}), how);
  EXPECT_EQ(loader.next()->tensor().item<float>(), 5.0F * 2 * (2 + 3 + 4));
  EXPECT_EQ(test::code_of([&] { images.map(total, {.batched = true}).filter([](const Value&) { return true; }); }),
            ErrorCode::kInvalidArgument);
  DataLoader unequal(images, options(2, 1));
  EXPECT_EQ(test::code_of([&] { unequal.next(); }), ErrorCode::kShapeMismatch);
}

TEST(SampleStream, IsAskedForNoMoreThanIsLookedAt) {
  std::int64_t asked = 0;
  const SampleStream counted = stream([&asked]() -> std::optional<Value> { return Value(asked++); });
  auto at = counted.begin();
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(at->as_int(), 0);
  ++at;
  EXPECT_EQ(asked, 1);
  EXPECT_EQ((*at).as_int(), 1);
  EXPECT_EQ(asked, 2);
}

TEST(StreamLoader, ADatasetIsReadWithTheRandomNumbersThatALoaderOfItDraws) {
  const Dataset drawn = random_windows(rows(Tensor::of(up_to(400))), 1, 12);
  DataLoader expected(drawn, {.batch_size = 5, .num_workers = 0, .seed = 6});
  DataLoader loader(stream(drawn), {.batch_size = 5, .num_workers = 2, .seed = 6});
  std::vector<std::vector<std::string>> epochs;
  for (int epoch = 0; epoch < 2; ++epoch) {
    epochs.push_back(test::rest_of_epoch(expected));
    EXPECT_EQ(test::rest_of_epoch(loader), epochs.back());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  std::int64_t index = 0;
  for (const Value& sample : stream(drawn)) EXPECT_EQ(test::bits_of(sample), test::bits_of(drawn.get(index++)));
}

TEST(StreamLoader, AFunctionMayWriteToWhatItGetsAndIsGivenTheSameAgain) {
  const SampleStream one = stream([] {
    return [next = std::int64_t{0}]() mutable -> std::optional<Tensor> {
      if (next == 8) return std::nullopt;
      return Tensor::of<std::int64_t>({next++});
    };
  });
  const auto doubled = [](const Tensor& sample) {
    sample.values<std::int64_t>()[0] *= 2;
    if (sample.item<std::int64_t>() == 10) throw std::runtime_error("bad");
    return sample;
  };
  // The first try fails, each sample is tried by itself, and the batch is made of those that are good.
  DataLoader loader(one.map(doubled), {.batch_size = 8, .num_workers = 1, .on_error = OnError::kSkip});
  EXPECT_THAT(test::values_of<std::int64_t>(loader.next()->tensor().reshape({7})), ElementsAre(0, 2, 4, 6, 8, 12, 14));
}

}  // namespace
}  // namespace penstock
