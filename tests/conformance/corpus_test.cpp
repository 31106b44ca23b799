// Files by other programs, through the whole way from path to tensors.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "penstock/load.h"
#include "penstock/save.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class Corpus : public testing::Test {
 protected:
  void SetUp() override {
    folder = test::corpus().value_or("");
    if (folder.empty()) GTEST_SKIP() << "the folder of files by others is not here";
  }
  fs::path folder;
};

// Two training runs of one model: tests/python compares the values with those that torch and safetensors load.
TEST_F(Corpus, OneModelInTwoFormatsHasTheSameTensors) {
  const Archive pt = open((folder / "burn/mnist.pt").string());
  const Archive safetensors = open((folder / "burn/mnist.safetensors").string());
  ASSERT_EQ(pt.entries().size(), safetensors.entries().size());
  for (const TensorEntry& entry : pt.entries()) {
    const LazyTensor other = safetensors[entry.name];
    EXPECT_EQ(entry.shape, other.shape()) << entry.name;
    EXPECT_EQ(entry.dtype, other.dtype()) << entry.name;
  }
}

TEST_F(Corpus, EveryFileLoadsOrSaysWhyNot) {
  std::size_t loaded = 0;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (!file.is_regular_file() || file.path().extension() == ".md") continue;
    const std::string path = file.path().string();
    try {
      const Archive archive = open(path);
      const Value whole = archive.load();
      for (std::size_t i = 0; i < archive.entries().size(); ++i) {
        const Tensor alone = archive.entry(i).load();
        EXPECT_EQ(alone.shape(), archive.entries()[i].shape) << path;
        EXPECT_EQ(alone.dtype(), archive.entries()[i].dtype) << path;
      }
      ++loaded;
    } catch (const Error& error) {
      EXPECT_EQ(error.path(), path) << error.what();
      EXPECT_FALSE(error.message().empty());
    }
  }
  EXPECT_GE(loaded, 150U);
}

TEST_F(Corpus, SavedAgainAndLoadedIsTheSame) {
  const test::TemporaryFolder out;
  const Value model = load((folder / "burn/mnist.safetensors").string());
  for (const char* name : {"m.pt", "m.npz", "m.safetensors"}) {
    save(model, out / name);
    const Archive again = open(out / name);
    ASSERT_EQ(again.entries().size(), model.size());
    for (std::size_t i = 0; i < model.size(); ++i) {
      const auto [key, tensor] = model.item(i);
      EXPECT_TRUE(Tensor::identical(again[key.as_string()].load(), tensor.as_tensor())) << key.as_string();
    }
    // Tensors that were read into one block are still storages of their own.
    EXPECT_LT(fs::file_size(out / name), fs::file_size(folder / "burn/mnist.safetensors") + 32 * 1024) << name;
  }
}

}  // namespace
}  // namespace penstock
