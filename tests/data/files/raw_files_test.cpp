#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/support.h"
#include "penstock/dataset.h"

namespace penstock {
namespace {

using test::bits_of;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Value bytes_of(const std::string& path) {
  const std::string text = test::read_file(path);
  return Value::tensor(Tensor::of(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size())));
}

TEST(RawFiles, AreTheirBytes) {
  const TemporaryFolder folder;
  test::write_file(folder / "a.ppm", std::string_view("P6 1 1"));
  test::write_file(folder / "b.ppm", std::string_view());
  test::write_file(folder / "c.ppm", test::numbered_bytes(3 << 20));
  test::write_file(folder / "d.txt", std::string_view("not asked for"));
  const Dataset raw = files(folder / "*.ppm", {.raw = true});
  EXPECT_THAT(raw.paths(), ElementsAre(folder / "a.ppm", folder / "b.ppm", folder / "c.ppm"));
  const auto expected = [&](std::int64_t i) { return bits_of(bytes_of(raw.describe(i))); };
  for (std::int64_t i = 0; i < raw.size(); ++i) EXPECT_EQ(bits_of(raw.get(i)), expected(i));
  for (const std::size_t workers : {0U, 2U}) {
    DataLoader loader(raw, {.batch_size = 3, .num_workers = workers, .collate = collate::ragged()});
    const auto batch = loader.next();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(bits_of(batch->value[i]), expected(i));
    EXPECT_EQ(loader.stats().files_opened, 3U);
    EXPECT_EQ(loader.stats().read_bytes, 6U + (3U << 20));
  }
}

TEST(RawFiles, SayWhatIsWrong) {
  const TemporaryFolder folder;
  test::write_file(folder / "a.ppm", std::string_view("P6"));
  const Dataset raw = files(std::vector<std::string>{folder / "a.ppm", folder / "missing.ppm"}, {.raw = true});
  const auto missing = test::error_of([&] { raw.get(1); });
  EXPECT_EQ(missing->code(), ErrorCode::kNotFound);
  EXPECT_EQ(missing->path(), folder / "missing.ppm");
  EXPECT_EQ(test::code_of([&] { files(folder / "*.ppm", {.keys = {"x"}, .raw = true}); }), ErrorCode::kInvalidArgument);
}

TEST(RawFiles, ThatChangeAreErrors) {
  const TemporaryFolder folder;
  test::write_file(folder / "a.ppm", std::string_view("P6 then more"));
  const Dataset raw = files(folder / "*.ppm", {.raw = true});
  const Dataset cut = raw.map([](const Tensor& x) { return x; });
  EXPECT_EQ(cut.get(0).as_tensor().numel(), 12);
  std::filesystem::resize_file(folder / "a.ppm", 3);
  EXPECT_EQ(cut.get(0).as_tensor().numel(), 3) << "it is opened anew for each sample";
}

TEST(ClassFolders, AreNumberedByName) {
  const TemporaryFolder folder;
  for (const char* name : {"cat", "dog", "ant"}) {
    std::filesystem::create_directories(folder / name);
    for (const char* file : {"/1.npy", "/2.npy"}) save(Tensor::of<int>({1}), folder / (std::string(name) + file));
  }
  const Dataset labelled = files(folder / "*/*.npy", {.class_folders = true});
  EXPECT_THAT(labelled.classes(), ElementsAre("ant", "cat", "dog"));
  DataLoader loader(labelled, {.batch_size = 6, .num_workers = 2});
  const auto batch = loader.next();
  EXPECT_EQ((*batch)[0].shape(), (Shape{6, 1}));
  EXPECT_THAT(test::values_of<std::int64_t>((*batch)[1]), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_EQ(labelled.get(3)[1].as_int(), 1);
  EXPECT_EQ(labelled.paths()[3], folder / "cat/2.npy");
  EXPECT_EQ(subset(labelled, {5}).map([](const Value& sample) { return sample[0]; }).classes()[2], "dog");
  EXPECT_THAT(files(labelled.paths(), {.class_folders = true}).classes(), ElementsAre("ant", "cat", "dog"));
  EXPECT_EQ(test::code_of([&] { files(folder / "*/*.npy").classes(); }), ErrorCode::kInvalidArgument);
}

TEST(ClassFolders, AreTheSameHoweverManySlashesAPatternHas) {
  const TemporaryFolder folder;
  for (const char* name : {"cat", "dog"}) {
    std::filesystem::create_directories(folder / name);
    save(Tensor::of<int>({1}), folder / (std::string(name) + "/1.npy"));
  }
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path().parent_path());
  const std::string name = folder.path().filename().string();
  for (const std::string& root : {name, "./" + name, folder.path().string()}) {
    const Dataset labelled = files(root + "//*/*.npy", {.class_folders = true});
    EXPECT_THAT(labelled.classes(), ElementsAre("cat", "dog")) << root;
    EXPECT_EQ(labelled.get(1)[1].as_int(), 1) << root;
  }
  std::filesystem::current_path(before);
}

TEST(ClassFolders, OfAFileInNoneOfThemAreRefused) {
  const TemporaryFolder folder;
  save(Tensor::of<int>({1}), folder / "1.npy");
  const auto error = test::error_of([&] { files(folder.path().string(), {.class_folders = true}); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error->path(), folder / "1.npy");
  EXPECT_THAT(error->message(), HasSubstr("train/*/*.pt"));
}

}  // namespace
}  // namespace penstock
