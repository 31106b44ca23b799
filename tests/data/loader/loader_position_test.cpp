#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "data/support.h"
#include "penstock/loader.h"
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

}  // namespace
}  // namespace penstock
