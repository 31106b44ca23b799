#include "data/files/own_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>

#include "data/support.h"
#include "penstock/ops.h"
#include "support/bytes.h"

namespace penstock {
namespace {

using test::bits_of;
using test::CountingSource;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

/// Files by names of the program's own, which no disk has.
struct Store {
  std::map<std::string, std::string> objects;
  std::atomic<int> opened = 0;

  Source open(const std::string& name) {
    ++opened;
    const auto found = objects.find(name);
    if (found == objects.end()) throw std::out_of_range("no object of that name");
    return std::make_shared<CountingSource>(found->second);
  }
};

std::string file_of(const Value& value, const TemporaryFolder& folder) {
  save(value, folder / "one.safetensors");
  return test::read_file(folder / "one.safetensors");
}

class OwnSource : public ::testing::Test {
 protected:
  OwnSource() {
    for (int i = 0; i < 6; ++i) {
      const Tensor x = full(Shape{i < 4 ? 8 : 300000}, i, DType::float32);
      const std::string name = "store://clips/" + std::string(i < 3 ? "a/" : "b/") + std::to_string(i);
      store_.objects[name] = file_of({{"x", x}, {"label", Tensor::of<std::int64_t>({i})}}, folder_);
      names_.push_back(name);
    }
  }
  FilesOptions options() {
    return {.source = [this](const std::string& name) { return store_.open(name); }};
  }

  TemporaryFolder folder_;
  Store store_;
  std::vector<std::string> names_;
};

TEST_F(OwnSource, GivesTheSamplesThatFilesWouldHave) {
  const Dataset clips = files(names_, options());
  EXPECT_EQ(clips.paths(), names_);
  EXPECT_EQ(store_.opened, 0) << "nothing is opened before it is wanted";
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(test::values_of<float>(clips.get(i)["x"].as_tensor())[7], static_cast<float>(i));
  for (const std::size_t workers : {0U, 2U}) {
    DataLoader loader(subset(clips, {3, 0, 1, 2}), {.batch_size = 2, .num_workers = workers});
    EXPECT_THAT(test::values_of<std::int64_t>(loader.next()->value["label"].as_tensor()), ElementsAre(3, 0));
    EXPECT_THAT(test::values_of<std::int64_t>(loader.next()->value["label"].as_tensor()), ElementsAre(1, 2));
  }
  DataLoader large(subset(clips, {5, 4}), {.batch_size = 2, .num_workers = 1});
  EXPECT_THAT(test::values_of<std::int64_t>(large.next()->value["label"].as_tensor()), ElementsAre(5, 4));
}

TEST_F(OwnSource, SmallFilesAreReadWholeAndOnce) {
  std::shared_ptr<CountingSource> last;
  const Dataset clips = files(Names{names_[0]}, {.source = [&](const std::string& name) {
                                last = std::make_shared<CountingSource>(store_.objects.at(name));
                                return Source(last);
                              }});
  DataLoader loader(clips, {.num_workers = 0});
  EXPECT_TRUE(loader.next());
  EXPECT_EQ(last->reads, 1U);
  EXPECT_EQ(loader.stats().read_bytes, last->size());
}

TEST_F(OwnSource, ServesKeysClassesAndRawFiles) {
  FilesOptions chosen = options();
  chosen.keys = {"label"};
  chosen.class_folders = true;
  const Dataset labelled = files(names_, chosen);
  EXPECT_THAT(labelled.classes(), ElementsAre("a", "b"));
  EXPECT_EQ(labelled.get(4)[0].size(), 1U);
  EXPECT_EQ(labelled.get(4)[1].as_int(), 1);
  FilesOptions raw = options();
  raw.raw = true;
  const Tensor bytes = files(names_, raw).get(2).as_tensor();
  EXPECT_EQ(bytes.numel(), static_cast<std::int64_t>(store_.objects[names_[2]].size()));
  EXPECT_EQ(static_cast<char>(bytes.values<std::uint8_t>()[8]), store_.objects[names_[2]][8]);
}

TEST_F(OwnSource, MayGiveFilesAndMemoryToo) {
  save(Tensor::of<int>({7}), folder_ / "7.npy");
  const Dataset mixed = files(Names{"file", "memory"}, {.source = [&](const std::string& name) {
                                if (name == "file") return open_source(folder_ / "7.npy");
                                const std::string bytes = test::read_file(folder_ / "7.npy");
                                return test::source_of(bytes);
                              }});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(test::values_of<int>(mixed.get(i).as_tensor())[0], 7);
}

TEST_F(OwnSource, WhatItThrowsNamesTheSample) {
  for (const bool raw : {false, true}) {
    FilesOptions how = options();
    how.raw = raw;
    DataLoader loader(files(Names{"store://missing"}, how), {.num_workers = 1});
    const auto error = test::error_of([&] { loader.next(); });
    EXPECT_EQ(error->code(), ErrorCode::kUserCode);
    EXPECT_EQ(error->path(), "store://missing");
    EXPECT_THAT(error->message(), HasSubstr("sample 0: the source of files threw: no object of that name"));
    EXPECT_TRUE(error->cause());
  }
}

TEST_F(OwnSource, ListsNoPatterns) {
  const auto error = test::error_of([&] { files("store://clips/*", options()); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), HasSubstr("list of the paths"));
}

}  // namespace
}  // namespace penstock
