#include "data/loader/dealing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/support.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Indices = std::vector<std::int64_t>;

constexpr std::int64_t kSamples = 50;

/// What makes the loaders of a test, all alike but for rank and batch size.
struct Program {
  std::string name;
  LoaderOptions options;
};

DataLoader loader_of(const Program& program, std::int64_t rank, std::int64_t size, std::int64_t batch_size) {
  LoaderOptions options = program.options;
  options.ranks = Ranks{.rank = rank, .size = size};
  if (!options.batch_sampler) options.batch_size = batch_size;
  return {rows(test::numbered_rows(kSamples, 1)), options};
}

/// What all ranks read together in up to `steps` steps, in the order that they share; and where they stand then.
struct Read {
  Indices order;
  LoaderPosition position;
};
Read read(const Program& program, std::int64_t size, std::int64_t batch_size, std::int64_t steps,
          const std::optional<LoaderPosition>& from = {}) {
  std::vector<DataLoader> loaders;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    loaders.push_back(loader_of(program, rank, size, batch_size));
    if (from) loaders.back().seek(*from);
  }
  Read out;
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<std::optional<Batch>> batches;
    for (DataLoader& loader : loaders) batches.push_back(loader.next());
    if (!batches[0]) break;
    const bool whole = program.options.batch_sampler.has_value();
    for (std::size_t i = 0; i < (whole ? 1 : batches[0]->indices.size()); ++i) {
      for (const auto& batch : batches) {
        EXPECT_EQ(batch->indices.size(), batches[0]->indices.size()) << program.name;
        for (std::size_t j = whole ? 0 : i; j < (whole ? batch->indices.size() : i + 1); ++j) {
          if (!batch->valid.defined() || batch->valid.values<bool>()[j]) out.order.push_back(batch->indices[j]);
        }
      }
    }
  }
  out.position = loaders[0].position();
  for (DataLoader& loader : loaders) EXPECT_EQ(loader.position().to_json(), out.position.to_json());
  return out;
}

std::vector<Program> programs() {
  const std::vector<double> weights(kSamples, 1.5);
  std::vector<Indices> given;
  for (std::int64_t i = 0; i < kSamples; i += 2) given.push_back({i, i + 1});
  return {{"sequential", {.num_workers = 0}},
          {"shuffled", {.shuffle = true, .num_workers = 0, .seed = 5}},
          {"weighted", {.sampler = sampler::weighted(weights, 70), .num_workers = 0}},
          {"batches", {.batch_sampler = sampler::batches(given), .num_workers = 0}}};
}

TEST(Dealing, AnyNumberOfRanksGoesOnWhereAnotherStopped) {
  constexpr std::int64_t kAll = 24;  // samples of a step of all ranks
  for (Program program : programs()) {
    program.options.remainder = Remainder::kExact;
    const Indices unstopped = read(program, 1, kAll, 1000).order;
    const bool whole = program.options.batch_sampler.has_value();
    for (const std::int64_t before : {1, 2, 4, 6}) {
      for (const std::int64_t after : {1, 2, 3, 8}) {
        const std::int64_t steps = whole ? 24 / before : 1;  // 24 batches divide among all
        const Read first = read(program, before, kAll / before, steps);
        const Read second = read(program, after, kAll / after, 1000, first.position);
        Indices all = first.order;
        all.insert(all.end(), second.order.begin(), second.order.end());
        EXPECT_EQ(all, unstopped) << program.name << ": " << before << " ranks, then " << after;
        EXPECT_EQ(second.position.epoch, 1U);
      }
    }
  }
}

TEST(Dealing, WhatCannotGoOnExactlySaysWhy) {
  const Program program = programs()[1];
  const auto refused = [&](std::int64_t after, std::int64_t batch_size) {
    const LoaderPosition position = read(program, 2, 4, 3).position;
    return test::error_of([&] { loader_of(program, 0, after, batch_size).seek(position); })->message();
  };
  EXPECT_THAT(refused(4, 4),
              HasSubstr("after batch 3 of each of 2 ranks, and these batches do not divide among 4 ranks"));
  EXPECT_THAT(refused(4, 3),
              HasSubstr("batches of 4 on each of 2 ranks, but this loader makes batches of 3 on each of 4"));
  EXPECT_THAT(refused(2, 3), HasSubstr("batches of 4, but this loader makes batches of 3"));
}

TEST(Dealing, TheEndOfAnEpochIsOneForAllNumbersOfRanks) {
  Program program = programs()[1];
  for (const Remainder remainder : {Remainder::kPad, Remainder::kDrop, Remainder::kExact}) {
    program.options.remainder = remainder;
    const std::int64_t steps = remainder == Remainder::kDrop ? 3 : 4;  // for 12 or 13 samples
    const LoaderPosition end = read(program, 4, 4, steps).position;
    EXPECT_EQ(end.batch, end.batches);
    const Read rest = read(program, 3, 4, 1, end);
    EXPECT_THAT(rest.order, ElementsAre());
    EXPECT_EQ(rest.position.epoch, 1U);
  }
}

TEST(Dealing, RemaindersGiveAllRanksAsManySteps) {
  const auto order = [](Remainder remainder, std::int64_t size) {
    return read({"", {.num_workers = 0, .remainder = remainder}}, size, 4, 1000).order;
  };
  Indices all(kSamples);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  EXPECT_EQ(order(Remainder::kExact, 4), all);
  EXPECT_EQ(order(Remainder::kExact, 64), all) << "more ranks than samples";
  EXPECT_EQ(order(Remainder::kDrop, 4), Indices(all.begin(), all.begin() + 48));
  Indices padded = all;
  padded.insert(padded.end(), {0, 1});
  EXPECT_EQ(order(Remainder::kPad, 4), padded);
}

TEST(Dealing, AMaskOfBadSamplesIsKept) {
  const test::TemporaryFolder folder;
  std::vector<std::string> paths;
  for (char name = 'a'; name < 'd'; ++name) {
    paths.push_back(folder / (std::string(1, name) + ".npy"));
    save(test::numbered_tensor(Shape{2}, DType::uint8), paths.back(), {.sync = false});
  }
  test::write_file(paths[1], "damaged");
  const auto valid = [&](std::int64_t rank) {
    DataLoader loader(files(paths), {.batch_size = 2,
                                     .num_workers = 0,
                                     .on_error = OnError::kMask,
                                     .ranks = Ranks{.rank = rank, .size = 2},
                                     .remainder = Remainder::kExact});
    return test::values_of<bool>(loader.next()->valid);
  };
  EXPECT_THAT(valid(0), ElementsAre(true, true));
  EXPECT_THAT(valid(1), ElementsAre(false, false)) << "a damaged one and a repeated one";
}

TEST(Dealing, RefusesWhatIsNotAlikeOnAllRanks) {
  const auto refused = [](LoaderOptions options, std::int64_t samples = kSamples) {
    const Dataset dataset = rows(test::numbered_rows(samples, 1));
    return test::error_of([&] { DataLoader(dataset, options); })->message();
  };
  const Ranks two{.rank = 0, .size = 2};
  EXPECT_THAT(refused({.sampler = sampler::distributed(kSamples, {.num_replicas = 2}), .ranks = two}),
              HasSubstr("deals its order out to 2 ranks itself"));
  EXPECT_THAT(refused({.on_error = OnError::kSkip, .ranks = two}), HasSubstr("leave a batch out on one rank alone"));
  EXPECT_THAT(refused({.ranks = Ranks{.rank = 2, .size = 2}}), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(refused({.ranks = Ranks{.rank = 0, .size = 0}}), HasSubstr("rank 0 of 0"));
  EXPECT_THAT(refused({.ranks = Ranks{.rank = 0, .size = std::int64_t{1} << 62}}), HasSubstr("of 4611686018427387904"));
  EXPECT_THAT(refused({.drop_last = true, .ranks = two, .remainder = Remainder::kExact}), HasSubstr("drop_last"));
  EXPECT_THAT(refused({.remainder = Remainder::kExact}), HasSubstr("give the loader its `ranks`"));
  EXPECT_THAT(refused({.ranks = Ranks{.rank = 0, .size = 4}, .remainder = Remainder::kDrop}, 3),
              HasSubstr("3 samples for 4 ranks"));
  EXPECT_THAT(test::error_of([] { sampler::distributed(3, {.remainder = Remainder::kExact}); })->message(),
              HasSubstr("the loader's option `ranks`"));
}

}  // namespace
}  // namespace penstock
