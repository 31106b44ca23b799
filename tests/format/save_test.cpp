#include "penstock/save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>

#include "penstock/load.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using test::code_of;
using test::dict_of;
using test::error_of;
using test::numbered_tensor;
using testing::HasSubstr;

class SaveTest : public testing::Test {
 protected:
  const Tensor tensor = numbered_tensor({3, 4}, DType::float32);
  test::TemporaryFolder folder;
};

TEST_F(SaveTest, ACheckpointLiesWhereItWasBegunWhenTheWorkingFolderChanges) {
  const std::string before = fs::current_path();
  fs::current_path(folder.path());
  SaveOptions elsewhere;
  elsewhere.before_commit = [&] { fs::current_path(before); };
  for (const std::int64_t rows : {1, 2}) {
    fs::current_path(folder.path());
    save(dict_of({{"w", numbered_tensor({rows}, DType::float32)}}), "ckpt/", elsewhere);
    EXPECT_EQ(load(folder / "ckpt")["w"].as_tensor().shape(), Shape{rows});
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "ckpt"), {}), 2) << "the file of the first goes";
}

TEST_F(SaveTest, TheExtensionTellsTheFormat) {
  for (const char* name : {"x.npy", "x.npz", "x.safetensors", "X.SafeTensors"}) {
    save(tensor, folder / name);
    EXPECT_TRUE(Tensor::identical(load_tensor(folder / name), tensor)) << name;
  }
  EXPECT_EQ(open(folder / "X.SafeTensors").format(), "safetensors");
  EXPECT_EQ(open(folder / "x.npz").format(), "npz");
}

TEST_F(SaveTest, OrTheOption) {
  save(tensor, folder / "x.bin", {.format = "safetensors"});
  EXPECT_TRUE(open(folder / "x.bin").contains("tensor"));
  const auto error = error_of([&] { save(tensor, folder / "x.bin"); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error->path(), folder / "x.bin");
  EXPECT_THAT(error->message(), HasSubstr(".safetensors"));
  EXPECT_EQ(code_of([&] { save(tensor, folder / "x.npy", {.format = "hdf5"}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { save(tensor, folder / "x.safetensors.index.json"); }), ErrorCode::kInvalidArgument)
      << "read only";
}

TEST_F(SaveTest, OptionsOfOtherFormatsAreRefused) {
  EXPECT_EQ(code_of([&] { save(tensor, folder / "x.safetensors", {.compress = true}); }), ErrorCode::kUnsupported);
  const std::map<std::string, std::string> metadata = {{"a", "b"}};
  EXPECT_EQ(code_of([&] { save(tensor, folder / "x.npy", {.metadata = metadata}); }), ErrorCode::kUnsupported);
  save(tensor, folder / "x.safetensors", {.metadata = metadata});
  const Archive archive = open(folder / "x.safetensors");
  EXPECT_EQ(archive.metadata().at("a"), "b");
}

TEST_F(SaveTest, AFailureLeavesWhatWasThere) {
  const std::string path = folder / "x.safetensors";
  save(tensor, path);
  const std::string before = test::read_file(path);
  const auto error = error_of([&] { save(dict_of({{"a", tensor}, {"b", tensor}}), path); });
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_EQ(error->path(), path);
  EXPECT_EQ(test::read_file(path), before);
  EXPECT_EQ(folder.names().size(), 1U) << "no temporary file is left";
}

TEST_F(SaveTest, UndefinedTensorsAreRefusedBeforeAFileIsMade) {
  for (const char* name : {"x.npy", "x.npz", "x.pt", "x.safetensors"}) {
    EXPECT_EQ(code_of([&] { save(Tensor{}, folder / name); }), ErrorCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(code_of([&] {
              save(Value::dict({{"a", Value::tensor(Tensor{})}}), folder / "x.pt");
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(folder.names().empty());
}

TEST_F(SaveTest, StopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(code_of([&] { save(tensor, folder / "x.safetensors", {.stop = stop.get_token()}); }),
            ErrorCode::kCancelled);
  EXPECT_TRUE(folder.names().empty());
}

TEST_F(SaveTest, MissingFoldersAreNamed) {
  EXPECT_EQ(code_of([&] { save(tensor, folder / "no/x.safetensors"); }), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace penstock
