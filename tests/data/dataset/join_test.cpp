#include "penstock/join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>

#include "data/dataset/pairs.h"
#include "penstock/labels.h"

namespace penstock {
namespace {

using test::NamedFiles;
using test::numbers_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Join, PairsByStemInTheOrderOfTheFirst) {
  const NamedFiles folder;
  folder.add("images", {1, 2, 3});
  folder.add("masks", {1, 2, 3});
  const Dataset masks = subset(folder.files("masks"), {2, 0, 1});
  const Dataset joined = join(folder.files("images"), masks);
  EXPECT_EQ(numbers_of(joined), "1|1 2|2 3|3");
  EXPECT_EQ(numbers_of(join(masks, folder.files("images"))), "3|3 1|1 2|2");
  EXPECT_EQ(joined.paths(), folder.files("images").paths());
  EXPECT_EQ(numbers_of(join({{"image", folder.files("images")}, {"mask", masks}})), "1|1 2|2 3|3");
  EXPECT_EQ(numbers_of(join({masks, joined.map([](const Value& pair) { return pair[0]; }), masks})),
            "3|3|3 1|1|1 2|2|2");
  DataLoader loader(joined, {.batch_size = 2, .shuffle = true, .num_workers = 2, .seed = 3});
  for (const Batch& batch : loader) EXPECT_EQ(test::bits_of(batch[0]), test::bits_of(batch[1]));
}

TEST(Join, NamesWhatIsMissingOnEachSideOrLeavesItOut) {
  const NamedFiles folder;
  folder.add("images", {1, 2, 3, 4, 5, 6});
  folder.add("masks", {2, 3, 9});
  const auto error = test::error_of([&] { join(folder.files("images"), folder.files("masks")); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), AllOf(HasSubstr("1 file has none in dataset 0: " + folder.at("masks/9.npy")),
                                      HasSubstr("4 files have none in dataset 1: " + folder.at("images/1.npy")),
                                      HasSubstr("images/5.npy, ..."), Not(HasSubstr("images/6.npy"))));
  const auto named = test::error_of([&] {
    join({{"image", folder.files("images")}, {"mask", folder.files("masks")}});
  });
  EXPECT_THAT(named->message(), HasSubstr("none in dataset 'mask'"));
  const Dataset dropped = join(folder.files("images"), folder.files("masks"), {.missing = Missing::kDrop});
  EXPECT_EQ(numbers_of(dropped), "2|2 3|3");
  EXPECT_EQ(dropped.paths(), std::vector<std::string>({folder.at("images/2.npy"), folder.at("images/3.npy")}));
}

TEST(Join, OfNoCommonNameIsAnErrorThatShowsTheNames) {
  const NamedFiles folder;
  folder.add("images", {1, 2});
  folder.add("masks", {1, 2}, "_mask");
  for (const Missing missing : {Missing::kError, Missing::kDrop}) {
    const auto error =
        test::error_of([&] { join(folder.files("images"), folder.files("masks"), {.missing = missing}); });
    EXPECT_THAT(error->message(), AllOf(HasSubstr("'1'"), HasSubstr("'1_mask'"), HasSubstr("function")));
  }
  const auto number = [](const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    return name.substr(0, name.find_first_of("_."));
  };
  EXPECT_EQ(numbers_of(join(folder.files("images"), folder.files("masks"), {.by = number})), "1|1 2|2");
  const auto thrower = [](const std::string&) -> std::string { throw std::range_error("no name"); };
  EXPECT_THROW(join(folder.files("images"), folder.files("masks"), {.by = thrower}), std::range_error);
}

TEST(Join, ByPathTellsFilesOfOneNameApart) {
  const NamedFiles folder;
  for (const std::string side : {"images", "masks"}) {
    folder.add(side + "/cat/1.npy", 1);
    folder.add(side + "/dog/1.npy", 2);
    folder.add(side + "/dog/deep.er/2.npy", 3);
  }
  const Dataset images = folder.files("images/**/*.npy");
  const Dataset masks = subset(folder.files("masks/**/*.npy"), {2, 1, 0});
  const auto error = test::error_of([&] { join(images, masks); });
  EXPECT_THAT(error->message(), AllOf(HasSubstr("dataset 0"), HasSubstr("cat/1.npy"), HasSubstr("dog/1.npy")));
  EXPECT_EQ(numbers_of(join(images, masks, {.by = JoinBy::kPath})), "1|1 2|2 3|3");
  const Dataset listed = files(std::vector<std::string>{folder.at("masks/dog/1.npy"), folder.at("masks/cat/1.npy")});
  EXPECT_EQ(numbers_of(join(images, listed, {.by = JoinBy::kPath, .missing = Missing::kDrop})), "1|1 2|2")
      << "below the folder of the list";
  const Dataset parts = concat({folder.files("masks/dog/*.npy"), folder.files("masks/cat/*.npy")});
  EXPECT_THAT(test::error_of([&] { join(images, parts, {.by = JoinBy::kPath}); })->message(), HasSubstr("two files"))
      << "each part has a folder of its own";
}

TEST(Join, OneClassOnOneSideIsNoOtherFolder) {
  const NamedFiles folder;
  folder.add("images/cat/1.npy", 1);
  folder.add("masks/cat/1.npy", 1);
  folder.add("masks/dog/1.npy", 2);
  const Dataset joined = join(folder.files("images/*/*.npy"), folder.files("masks/*/*.npy"),
                              {.by = JoinBy::kPath, .missing = Missing::kDrop});
  EXPECT_EQ(numbers_of(joined), "1|1");
}

TEST(Join, ByNameHasTheExtension) {
  const NamedFiles folder;
  folder.add("a/1.npy", 1);
  folder.add("b/1.pt", 1);
  folder.add("b/1.npy", 2);
  EXPECT_EQ(numbers_of(join(folder.files("a"), folder.files("b"), {.by = JoinBy::kName, .missing = Missing::kDrop})),
            "1|2");
  EXPECT_THAT(test::error_of([&] { join(folder.files("a"), folder.files("b")); })->message(), HasSubstr("two files"));
}

TEST(Join, TakesRawFilesClassFoldersTransformsAndJoins) {
  const NamedFiles folder;
  folder.add("images/x/1.npy", 1);
  folder.add("images/y/2.npy", 2);
  folder.add("masks", {1, 2});
  const Dataset classed = files(folder.at("images/*/*.npy"), {.class_folders = true});
  const Dataset raw = files(folder.at("masks/*.npy"), {.raw = true});
  const Value sample = join({classed, raw, folder.files("masks").cast(DType::float32)}).get(1);
  EXPECT_EQ(sample[0][1].as_int(), 1);
  EXPECT_EQ(sample[1].as_tensor().dtype(), DType::uint8);
  EXPECT_EQ(sample[2].as_tensor().dtype(), DType::float32);
  const Dataset labelled = with_labels(join(folder.files("masks"), raw), {{"1", "5"}, {"2", "6"}});
  EXPECT_EQ(labelled.get(1)[1].as_int(), 6);
}

TEST(Join, RefusesWhatHasNoNamesAndTwoWithDraws) {
  const NamedFiles folder;
  folder.add("a", {1, 2});
  folder.add("b", {1, 2});
  const Dataset a = folder.files("a");
  const Dataset b = folder.files("b");
  EXPECT_THAT(test::error_of([&] { join(a, rows(Tensor::zeros({2, 1}))); })->message(), HasSubstr("dataset 1"));
  EXPECT_EQ(test::code_of([] { join(std::vector<Dataset>()); }), ErrorCode::kInvalidArgument);
  EXPECT_THAT(test::error_of([&] { join(a.random_flip(), b.random_flip()); })->message(), HasSubstr("behind the join"));
  EXPECT_EQ(join(a.random_flip(), b).random_flip().size(), 2);
  EXPECT_EQ(test::code_of([&] { join({{"x", a}, {"x", b}}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(join(subset(a, {}), subset(b, {})).size(), 0);
}

/// Random names on three sides, compared with what maps say.
TEST(Join, IsTheIntersectionOfRandomNames) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::vector<std::string>> paths(3);
    for (std::size_t side = 0; side < 3; ++side) {
      for (int name = 0; name < 12; ++name) {
        if (random() % 4 != 0) paths[side].push_back("s" + std::to_string(side) + "/" + std::to_string(name) + ".npy");
      }
      std::shuffle(paths[side].begin(), paths[side].end(), random);
    }
    std::vector<Dataset> sides;
    for (const auto& side : paths) sides.push_back(files(side));
    std::vector<std::string> expected;
    for (const std::string& path : paths[0]) {
      const auto has = [&](std::size_t side) {
        return std::find(paths[side].begin(), paths[side].end(), "s" + std::to_string(side) + path.substr(2)) !=
               paths[side].end();
      };
      if (has(1) && has(2)) expected.push_back(path);
    }
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(join(sides, {.missing = Missing::kDrop}).paths(), expected);
  }
}

}  // namespace
}  // namespace penstock
