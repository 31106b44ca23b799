#include "penstock/progress.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "penstock/load.h"
#include "penstock/save.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::dict_of;

using Told = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

class ProgressTest : public testing::TestWithParam<const char*> {
 protected:
  const Tensor small = test::numbered_tensor({5}, DType::float32);
  const Tensor large = Tensor::zeros({24 << 20}, DType::uint8);
  test::TemporaryFolder folder{test::quick_folder()};
  Told told;
  const ProgressFunction tell = [this](std::uint64_t done, std::uint64_t total) { told.emplace_back(done, total); };

  void expect_told(std::uint64_t total) {
    ASSERT_FALSE(told.empty());
    for (std::size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(told[i].second, total);
      EXPECT_LE(i == 0 ? 0 : told[i - 1].first, told[i].first);
    }
    EXPECT_EQ(told.back().first, total);
    told.clear();
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, ProgressTest, testing::Values("x.npz", "x.pt", "x.safetensors"),
                         [](const auto& row) { return std::string(row.param).substr(2); });

TEST_P(ProgressTest, SavesAndLoadsTellHowFarTheyAre) {
  const std::string path = folder / GetParam();
  const std::uint64_t total = large.nbytes() + small.nbytes();
  const Progress progress(tell);
  save(dict_of({{"large", large}, {"small", small}}), path, {.sync = false});
  expect_told(total);
  load(path);
  expect_told(total);
  const Archive archive = open(path);
  EXPECT_TRUE(told.empty()) << "opening is neither";
  archive["small"].load();
  expect_told(small.nbytes());
  archive["large"].slice(0, 0, 1000).load();
  expect_told(1000);
  const Tensor to = Tensor::empty(small.shape());
  const std::vector<Placement> places = {{.entry = archive.entries()[0].name == "small" ? 0U : 1U, .to = to}};
  archive.load_into(places);
  expect_told(small.nbytes());
}

TEST_P(ProgressTest, AnExceptionStopsTheWork) {
  const std::string path = folder / GetParam();
  save(dict_of({{"large", large}}), path, {.sync = false});
  const std::string before = test::read_file(path);
  const Progress progress([](std::uint64_t, std::uint64_t) { throw std::out_of_range("enough"); });
  EXPECT_THROW(load(path), std::out_of_range);
  EXPECT_THROW(save(dict_of({{"small", small}}), path), std::out_of_range);
  EXPECT_EQ(test::read_file(path), before);
  EXPECT_EQ(folder.names().size(), 1U);
}

TEST_F(ProgressTest, TheInnerScopeIsTold) {
  save(small, folder / "x.npy", {.sync = false});
  const Progress outer(tell);
  {
    const Progress inner([](std::uint64_t, std::uint64_t) {});
    load_tensor(folder / "x.npy");
  }
  EXPECT_TRUE(told.empty());
  load_tensor(folder / "x.npy", {.mmap = true});
  expect_told(small.nbytes());
}

}  // namespace
}  // namespace penstock
