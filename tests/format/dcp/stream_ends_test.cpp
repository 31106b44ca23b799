// What a store gives many streams at a time must end up at the streams that it is of: every layout that is read by path
// is read by URL.

#include "format/dcp/stream_ends.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "format/dcp/checkpoint.h"
#include "format/dcp/grids.h"
#include "penstock/load.h"
#include "support/files.h"
#include "support/served_folder.h"
#include "support/tensors.h"

namespace penstock::format {
namespace {

using test::MadeCheckpoint;
using test::MadeChunk;
using test::numbered_tensor;
using Sizes = std::vector<std::int64_t>;

/// Loads a checkpoint by path and by URL, whole and tensor by tensor; gives what both gave.
Value loaded(const std::filesystem::path& folder) {
  const Value by_path = load(folder);
  const test::ServedFolder served(folder);
  const Value by_url = load(served.url());
  const Archive archive = open(served.url(".metadata"));
  for (std::size_t i = 0; i < by_path.size(); ++i) {
    const auto [name, value] = by_path.item(i);
    EXPECT_TRUE(Tensor::identical(by_url[name.as_string()].as_tensor(), value.as_tensor())) << name.as_string();
    EXPECT_TRUE(Tensor::identical(archive[name.as_string()].load(), value.as_tensor())) << name.as_string();
  }
  return by_path;
}

class CheckpointByUrl : public testing::Test {
 protected:
  test::TemporaryFolder folder{test::quick_folder()};
  MadeCheckpoint made{folder};
};

TEST_F(CheckpointByUrl, TwoTensorsInAGridOfTwoByFour) {
  std::vector<Tensor> tensors;
  for (int t = 0; t < 3; ++t) {
    tensors.push_back(numbered_tensor({16, 32}, DType::float32, 1 + t));
    std::vector<MadeChunk> chunks;
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      chunks.push_back(
          made.put("__" + std::to_string(rank) + "_0.distcp", tensors.back(), {rank / 4 * 8, rank % 4 * 8}, {8, 8}));
    }
    made.tensor("w" + std::to_string(t), {16, 32}, chunks);
  }
  made.write();
  const Value value = loaded(folder.path());
  for (std::size_t t = 0; t < 3; ++t) {
    EXPECT_TRUE(Tensor::identical(value["w" + std::to_string(t)].as_tensor(), tensors[t])) << t;
  }
}

TEST_F(CheckpointByUrl, ChunksInTheOrderOfFsdpWithTensorParallelism) {
  const Tensor whole = numbered_tensor({64}, DType::float32);
  const Tensor other = numbered_tensor({64, 3}, DType::float32, 5);
  std::vector<MadeChunk> chunks;
  std::vector<MadeChunk> others;
  int rank = 0;
  for (const std::int64_t at : {0, 32, 16, 48}) {
    const std::string file = "__" + std::to_string(rank++) + "_0.distcp";
    chunks.push_back(made.put(file, whole, {at}, {16}));
    others.push_back(made.put(file, other, {at, 0}, {16, 3}));
  }
  made.tensor("strided", {64}, chunks);
  made.tensor("rows", {64, 3}, others);
  made.write();
  const Value value = loaded(folder.path());
  EXPECT_TRUE(Tensor::identical(value["strided"].as_tensor(), whole));
  EXPECT_TRUE(Tensor::identical(value["rows"].as_tensor(), other));
}

TEST_F(CheckpointByUrl, EveryGridWithChunksInAnyOrder) {
  std::mt19937 random(11);
  for (int round = 0; round < 6; ++round) {
    const test::TemporaryFolder here(test::quick_folder());
    MadeCheckpoint grid(here);
    std::vector<Tensor> tensors;
    for (int t = 0; t < 4; ++t) {
      tensors.push_back(numbered_tensor(test::random_shape(random, 3, 3, 9), DType::float32, t));
      test::add_in_grid(grid, "w" + std::to_string(t), tensors.back(), random);
    }
    grid.write();
    const Value value = loaded(here.path());
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      EXPECT_TRUE(Tensor::identical(value["w" + std::to_string(t)].as_tensor(), tensors[t])) << round;
    }
  }
}

TEST(CheckpointOfFourRanks, IsReadByUrlAsByPath) {
  const Value value = loaded("tests/format/data/dcp_2x2");
  int k = 0;
  for (const char* const name : {"p", "q", "r"}) {
    const Tensor tensor = value[name].as_tensor();
    ASSERT_EQ(tensor.shape(), (Shape{16, 16}));
    EXPECT_EQ(tensor.values<const float>()[255], 255.0F + 1000.0F * static_cast<float>(k++)) << name;
  }
}

}  // namespace
}  // namespace penstock::format
