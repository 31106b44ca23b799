#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/format.h"
#include "data/support.h"
#include "penstock/loader.h"
#include "penstock/save.h"
#include "support/errors.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(LoaderPosition, SurvivesItsText) {
  const LoaderPosition position{.seed = std::numeric_limits<std::uint64_t>::max(),
                                .epoch = 3,
                                .batch = std::numeric_limits<std::int64_t>::max(),
                                .samples = 1000,
                                .batch_size = 5,
                                .num_replicas = 6,
                                .batches = 77,
                                .order = "random"};
  const LoaderPosition back = LoaderPosition::from_json(position.to_json());
  EXPECT_EQ(back.seed, position.seed);
  EXPECT_EQ(back.epoch, position.epoch);
  EXPECT_EQ(back.batch, position.batch);
  EXPECT_EQ(back.samples, position.samples);
  EXPECT_EQ(back.batch_size, position.batch_size);
  EXPECT_EQ(back.num_replicas, position.num_replicas);
  EXPECT_EQ(back.batches, position.batches);
  EXPECT_EQ(back.order, position.order);
  EXPECT_EQ(nlohmann::json::parse(position.to_json())["epoch"], 3);
}

TEST(LoaderPosition, NamesTheFieldThatIsWrong) {
  for (const char* field : {"seed", "epoch", "batch", "samples"}) {
    nlohmann::json json = {{"seed", 1}, {"epoch", 2}, {"batch", 3}, {"samples", 4}};
    for (const auto& wrong : std::vector<nlohmann::json>{"5", -1, 1.5, nullptr, nlohmann::json::array()}) {
      json[field] = wrong;
      const auto error = test::error_of([&] { LoaderPosition::from_json(json.dump()); });
      EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error->message(), HasSubstr("'" + std::string(field) + "'")) << wrong;
    }
    json.erase(field);
    EXPECT_THAT(test::error_of([&] { LoaderPosition::from_json(json.dump()); })->message(),
                HasSubstr("'" + std::string(field) + "'"));
  }
  nlohmann::json json = {
      {"seed", 1}, {"epoch", 2}, {"batch", std::numeric_limits<std::uint64_t>::max()}, {"samples", 4}};
  EXPECT_THAT(test::error_of([&] { LoaderPosition::from_json(json.dump()); })->message(), HasSubstr("'batch'"));
}

TEST(LoaderPosition, IsOneOfOneRankOrMore) {
  for (const std::int64_t ranks : {0, -2}) {
    const LoaderPosition position{.batch = 1, .samples = 64, .batch_size = 2, .num_replicas = ranks};
    EXPECT_THAT(test::error_of([&] { LoaderPosition::from_json(position.to_json()); })->message(),
                HasSubstr("'num_replicas'"));
    DataLoader loader(rows(test::numbered_rows(64, 3)), {.batch_size = 2});
    EXPECT_THAT(test::error_of([&] { loader.seek(position); })->message(), HasSubstr("expected 1 or more"));
  }
}

TEST(LoaderPosition, TakesStatesThatDoNotSayTheOrder) {
  nlohmann::json json = {{"seed", 1}, {"epoch", 2}, {"batch", 3}, {"samples", 4}};
  EXPECT_EQ(LoaderPosition::from_json(json.dump()).order, "");
  json["order"] = 3;
  EXPECT_THAT(test::error_of([&] { LoaderPosition::from_json(json.dump()); })->message(), HasSubstr("'order'"));
}

TEST(LoaderPosition, TextThatIsNotUtf8HasNoJson) {
  EXPECT_EQ(test::code_of([] { LoaderPosition{.dataset = "\xFF"}.to_json(); }), ErrorCode::kInvalidArgument);
}

TEST(LoaderPosition, RefusesWhatIsNoObject) {
  for (const char* text : {"", "{", "[]", "3", "null", "{\"seed\":1,}", "\xff"}) {
    EXPECT_EQ(test::code_of([&] { LoaderPosition::from_json(text); }), ErrorCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(test::code_of([] { LoaderPosition::from_json(std::string(100'000, '[')); }), ErrorCode::kInvalidArgument);
}

TEST(LoaderPosition, TheDepthOfAFieldIsAnError) {
  const std::string deep(1'000'000, '[');
  const std::string rest = R"(,"epoch":2,"batch":3,"samples":4})";
  for (const std::string& value : {deep + std::string(deep.size(), ']'), deep}) {
    for (const char* const name : {"seed", "order", "unknown"}) {
      const std::string json = "{\"" + std::string(name) + "\":" + value + rest;
      const auto error = test::error_of([&] { LoaderPosition::from_json(json); });
      ASSERT_TRUE(error) << name;
      EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
      EXPECT_LT(error->message().size(), 1000U);
    }
  }
  EXPECT_EQ(test::code_of([] { LoaderPosition::from_json(R"({"seed":1,"seed":1,"epoch":2,"batch":3,"samples":4})"); }),
            ErrorCode::kInvalidArgument);
}

Dataset files_of(const test::TemporaryFolder& folder, const char* kind) {
  std::vector<std::string> paths;
  for (std::int64_t i = 0; i < 12; ++i) {
    paths.push_back(folder / kind + core::format("/{:03}.npy", i));
    std::filesystem::create_directories(folder / kind);
    save(Tensor::of<std::int64_t>({i}), paths.back(), {.sync = false});
  }
  return files(paths);
}

TEST(LoaderPosition, OfAnotherDatasetOfEqualSizeIsRefused) {
  const test::TemporaryFolder folder;
  DataLoader first(files_of(folder, "a/train"), {.batch_size = 3});
  first.next();
  const LoaderPosition position = LoaderPosition::from_json(first.position().to_json());
  DataLoader other(files_of(folder, "a/test"), {.batch_size = 3});
  EXPECT_THAT(test::error_of([&] { other.seek(position); })->message(), HasSubstr("another dataset"));
  DataLoader moved(files_of(folder, "b/train"), {.batch_size = 3});
  moved.seek(position);
  EXPECT_EQ(moved.next()->indices, (std::vector<std::int64_t>{3, 4, 5}));
  LoaderPosition any = position;
  any.dataset.clear();
  other.seek(any);
}

/// An order that follows from neither seed nor epoch.
struct Restless final : SamplerInterface {
  explicit Restless(std::shared_ptr<std::int64_t> by) : shift(std::move(by)) {}
  std::int64_t size() const noexcept override { return 12; }
  Order order(std::uint64_t, std::uint64_t) const override {
    std::vector<std::int64_t> out(12);
    for (std::int64_t i = 0; i < 12; ++i) out[static_cast<std::size_t>(i)] = (i + *shift) % 12;
    return out;
  }
  std::shared_ptr<std::int64_t> shift;
};

TEST(LoaderPosition, OfASamplerThatGivesOtherIndicesIsRefused) {
  auto shift = std::make_shared<std::int64_t>(0);
  const auto make = [&] {
    return DataLoader(rows(test::numbered_rows(12, 3)),
                      {.batch_size = 3, .sampler = Restless(shift), .num_workers = 1});
  };
  DataLoader first = make();
  first.next();
  first.next();
  const LoaderPosition position = LoaderPosition::from_json(first.position().to_json());
  DataLoader same = make();
  same.seek(position);
  EXPECT_EQ(same.position().to_json(), position.to_json());
  EXPECT_EQ(same.next()->indices, (std::vector<std::int64_t>{6, 7, 8}));
  *shift = 5;
  DataLoader other = make();
  other.seek(position);
  for (int i = 0; i < 2; ++i) {
    const auto error = test::error_of([&] { other.next(); });
    EXPECT_EQ(error->code(), ErrorCode::kChanged);
    EXPECT_THAT(error->message(), HasSubstr("the sampler gives other indices"));
  }
  other.set_epoch(1);
  EXPECT_TRUE(other.next());
}

/// An order that follows from what its sampler was told.
LoaderOptions told(const std::string& kind, std::int64_t first) {
  std::vector<std::int64_t> indices(6);
  std::iota(indices.begin(), indices.end(), first);
  std::vector<double> weights(12);
  for (const std::int64_t index : indices) weights[static_cast<std::size_t>(index)] = 1;
  LoaderOptions out{.num_workers = 1};
  if (kind == "subset") out.sampler = sampler::subset(indices);
  if (kind == "shuffled") out.sampler = sampler::subset(indices, true);
  if (kind == "weighted") out.sampler = sampler::weighted(weights, 6);
  if (out.sampler) out.batch_size = 2;
  if (kind == "batches") out.batch_sampler = sampler::batches(sampler::sequential(12), first == 0 ? 2 : 3);
  if (kind == "given")
    out.batch_sampler = sampler::batches(std::vector<std::vector<std::int64_t>>{{first}, {first + 1}, {first + 2}});
  return out;
}

TEST(LoaderPosition, OfASamplerThatWasToldSomethingElseIsRefused) {
  for (const std::string kind : {"subset", "shuffled", "weighted", "batches", "given"}) {
    for (const bool dealt : {false, true}) {
      const auto make = [&](std::int64_t first) {
        LoaderOptions options = told(kind, first);
        if (dealt) options.ranks = Ranks{.rank = 0, .size = 2};
        return DataLoader(rows(test::numbered_rows(12, 3)), options);
      };
      DataLoader first = make(0);
      first.next();
      const LoaderPosition position = LoaderPosition::from_json(first.position().to_json());
      DataLoader same = make(0);
      same.seek(position);
      EXPECT_EQ(same.next()->indices, first.next()->indices) << kind << dealt;
      DataLoader other = make(6);
      const auto code = test::code_of([&] {
        other.seek(position);
        other.next();
      });
      EXPECT_EQ(code, ErrorCode::kChanged) << kind << dealt;
    }
  }
}

DataLoader restless(std::int64_t batch_size, const Ranks& ranks, const std::shared_ptr<std::int64_t>& shift,
                    Remainder remainder = Remainder::kPad) {
  return DataLoader(
      rows(test::numbered_rows(12, 3)),
      {.batch_size = batch_size, .sampler = Restless(shift), .num_workers = 1, .ranks = ranks, .remainder = remainder});
}

TEST(LoaderPosition, OfEachRankServesAllAndOtherNumbersOfThem) {
  const auto shift = std::make_shared<std::int64_t>(0);
  std::vector<std::string> states;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    DataLoader loader = restless(2, {.rank = rank, .size = 3}, shift);
    loader.next();
    states.push_back(loader.position().to_json());
    loader.next();  // its last one
    EXPECT_NE(loader.position().to_json(), states.back());
  }
  EXPECT_EQ(states[1], states[0]);
  EXPECT_EQ(states[2], states[0]);
  const LoaderPosition position = LoaderPosition::from_json(states[2]);
  const auto taken = [&](std::int64_t ranks) {
    DataLoader loader = restless(6 / ranks, {.rank = ranks - 1, .size = ranks}, shift);
    loader.seek(position);
    return loader.next()->indices;
  };
  EXPECT_EQ(taken(1), (std::vector<std::int64_t>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(taken(2), (std::vector<std::int64_t>{7, 9, 11}));
  EXPECT_EQ(taken(3), (std::vector<std::int64_t>{8, 11}));
  *shift = 5;
  for (const std::int64_t ranks : {1, 2, 3, 6}) {
    EXPECT_EQ(test::code_of([&] { taken(ranks); }), ErrorCode::kChanged) << ranks;
  }
}

TEST(LoaderPosition, OfRanksThatRepeatSamplesIsOneToo) {
  const auto shift = std::make_shared<std::int64_t>(0);
  std::vector<std::string> states;
  for (std::int64_t rank = 0; rank < 5; ++rank) {
    DataLoader loader = restless(2, {.rank = rank, .size = 5}, shift, Remainder::kExact);
    while (loader.position().batch < 2) loader.next();
    states.push_back(loader.position().to_json());
    EXPECT_EQ(states.back(), states.front());
  }
}

TEST(LoaderPosition, OfBatchesThatAreDealtOutIsOneToo) {
  struct Pairs final : BatchSamplerInterface {
    explicit Pairs(std::shared_ptr<std::int64_t> by) : shift(std::move(by)) {}
    std::int64_t size() const noexcept override { return 6; }
    BatchOrder batches(std::uint64_t seed, std::uint64_t epoch) const override {
      return BatchOrder::equal(Restless(shift).order(seed, epoch), 2);
    }
    std::shared_ptr<std::int64_t> shift;
  };
  const auto shift = std::make_shared<std::int64_t>(0);
  const auto make = [&](std::int64_t rank, std::int64_t size) {
    return DataLoader(rows(test::numbered_rows(12, 3)),
                      {.batch_sampler = Pairs(shift), .num_workers = 1, .ranks = Ranks{.rank = rank, .size = size}});
  };
  DataLoader first = make(0, 2);
  DataLoader second = make(1, 2);
  first.next();
  second.next();
  const LoaderPosition position = first.position();
  EXPECT_EQ(position.to_json(), second.position().to_json());
  DataLoader one = make(0, 1);
  one.seek(position);
  EXPECT_EQ(one.next()->indices, (std::vector<std::int64_t>{4, 5}));
  *shift = 5;
  DataLoader other = make(0, 1);
  other.seek(position);
  EXPECT_EQ(test::code_of([&] { other.next(); }), ErrorCode::kChanged);
}

TEST(LoaderPosition, WhatASamplerThrowsIsAnError) {
  struct Broken final : SamplerInterface {
    std::int64_t size() const noexcept override { return 12; }
    Order order(std::uint64_t, std::uint64_t) const override { throw std::runtime_error("no order"); }
  };
  DataLoader loader(rows(test::numbered_rows(12, 3)), {.batch_size = 3, .sampler = Broken(), .num_workers = 0});
  const auto error = test::error_of([&] { loader.next(); });
  EXPECT_EQ(error->code(), ErrorCode::kUserCode);
  EXPECT_THAT(error->message(), HasSubstr("the sampler threw: no order"));
}

}  // namespace
}  // namespace penstock
