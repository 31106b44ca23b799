#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "data/support.h"
#include "penstock/ops.h"
#include "penstock/pack.h"

namespace penstock {
namespace {

using testing::ElementsAre;

/// A file of five rows under a name of each type that a program may hold a path in.
class PathTest : public testing::Test {
 protected:
  void SetUp() override { save(rows_, path_, {.sync = false}); }

  template <class Path>
  void expect_taken(const Path& path) const {
    save(rows_, path, {.sync = false});
    save(Value::tensor(rows_), path, {.sync = false});
    EXPECT_EQ(open(path).entry(0).shape(), rows_.shape());
    EXPECT_TRUE(Tensor::identical(load_tensor(path), rows_));
    EXPECT_TRUE(Tensor::identical(load(path).as_tensor(), rows_));
    EXPECT_EQ(rows(path).size(), 5);
    EXPECT_EQ(rows(path, "", false).size(), 5);
    EXPECT_EQ(files(path).size(), 1);
  }

  test::TemporaryFolder folder_;
  Tensor rows_ = test::numbered_rows(5, 3);
  std::filesystem::path path_ = std::filesystem::path(folder_.path()) / "rows.npy";
};

TEST_F(PathTest, EveryTypeOfAPathIsTaken) {
  expect_taken(path_);
  expect_taken(path_.string());
  expect_taken(std::string_view(path_.native()));
  expect_taken(path_.c_str());
}

TEST_F(PathTest, ListsOfPathsAreTaken) {
  const std::vector<std::filesystem::path> paths = {path_, path_};
  EXPECT_EQ(files(paths).paths(), (std::vector<std::string>{path_, path_}));
  EXPECT_EQ(files(std::vector<std::string>{path_}).size(), 1);
}

TEST_F(PathTest, APackedFolderIsTakenAsAPath) {
  const std::filesystem::path shards = path_.parent_path() / "shards";
  EXPECT_EQ(pack(rows(rows_), shards).samples, 5);
  EXPECT_EQ(packed(shards).size(), 5);
  EXPECT_EQ(packed(shards.native(), false).size(), 5);
}

// What a class of a program's own needs, and no more.
struct Backwards final : SamplerInterface {
  explicit Backwards(std::int64_t size) : size_(size) {}
  std::int64_t size() const noexcept override { return size_; }
  Order order(std::uint64_t, std::uint64_t) const override {
    std::vector<std::int64_t> out;
    for (std::int64_t i = size_; i > 0; --i) out.push_back(i - 1);
    return out;
  }

 private:
  std::int64_t size_;
};

struct Halves final : BatchSamplerInterface {
  std::int64_t size() const noexcept override { return 2; }
  BatchOrder batches(std::uint64_t, std::uint64_t) const override { return {Order::range(4), {2, 4}}; }
};

TEST(OwnSamplers, AreGivenToALoaderAsTheyAre) {
  const Dataset dataset = rows(test::numbered_rows(4, 1));
  DataLoader backwards(dataset, {.batch_size = 4, .sampler = Backwards(4)});
  EXPECT_THAT(backwards.next()->indices, ElementsAre(3, 2, 1, 0));
  DataLoader halves(dataset, {.batch_sampler = Halves()});
  EXPECT_THAT(halves.next()->indices, ElementsAre(0, 1));
  DataLoader part(dataset, {.batch_size = 4, .sampler = sampler::distributed(Backwards(4), {.num_replicas = 2})});
  EXPECT_THAT(part.next()->indices, ElementsAre(3, 1));
  DataLoader shared(dataset, {.batch_size = 2, .sampler = Sampler(std::make_shared<const Backwards>(4))});
  EXPECT_THAT(shared.next()->indices, ElementsAre(3, 2));
}

TEST(OwnSamplers, KindAndReplicasPassThroughTheHandles) {
  EXPECT_EQ(Sampler(Backwards(2)).kind(), "own");
  const BatchSampler dealt = sampler::batches(sampler::distributed(8, {.num_replicas = 4}), 2);
  EXPECT_EQ(dealt.replicas(), 4);
  EXPECT_EQ(dealt.kind(), "random");
}

TEST(Names, OneMeaningAWord) {
  // Beside `using namespace penstock`, `stack` and `subset` are operations on tensors and datasets alone.
  const std::vector<Tensor> two(2, Tensor::of<float>({1, 2}));
  EXPECT_EQ(stack(two).shape(), (Shape{2, 2}));
  EXPECT_EQ(subset(rows(stack(two)), {1}).size(), 1);
  static_assert(std::is_same_v<decltype(collate::stack()), Collate>);
  static_assert(std::is_same_v<decltype(sampler::subset({1})), Sampler>);
}

}  // namespace
}  // namespace penstock
