#include "penstock/writable.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "ops/kernels.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::code_of;
using test::dict_of;
using test::error_of;
using test::numbered_tensor;

class WritableTest : public testing::TestWithParam<const char*> {
 protected:
  const Tensor a = numbered_tensor({4, 3}, DType::float32);
  const Tensor b = numbered_tensor({100, 1000}, DType::int64);
  test::TemporaryFolder folder{test::quick_folder()};
};

INSTANTIATE_TEST_SUITE_P(Formats, WritableTest, testing::Values("x.safetensors", "x.pt"),
                         [](const auto& row) { return std::string(row.param).substr(2); });

TEST_P(WritableTest, WhatIsWrittenToATensorIsInTheFile) {
  const std::string path = folder / GetParam();
  save(dict_of({{"a", a}, {"b", b}}), path);
  WritableArchive archive = open_writable(path);
  EXPECT_EQ(archive.format(), open(path).format());
  EXPECT_EQ(archive.entries().size(), 2U);
  EXPECT_TRUE(Tensor::identical(archive["a"], a));
  const Tensor changing = archive["b"];
  changing.values<std::int64_t>()[5] = -7;
  archive.flush();
  const Tensor expected = b.clone();
  expected.values<std::int64_t>()[5] = -7;
  EXPECT_TRUE(Tensor::identical(load(path)["b"].as_tensor(), expected)) << "checksums were mended";
  changing.values<std::int64_t>()[99'999] = 1;
  expected.values<std::int64_t>()[99'999] = 1;
  archive.close();
  archive.close();
  EXPECT_TRUE(Tensor::identical(load(path)["b"].as_tensor(), expected));
  EXPECT_TRUE(Tensor::identical(load(path)["a"].as_tensor(), a));
  EXPECT_EQ(code_of([&] { archive["a"]; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { open_writable(path)["c"]; }), ErrorCode::kKeyNotFound);
}

TEST_P(WritableTest, TheLastHandleMendsTheChecksums) {
  const std::string path = folder / GetParam();
  save(dict_of({{"b", b}}), path);
  const Tensor nine = Tensor::of({std::int64_t{9}});
  ops::copy(nine, open_writable(path)["b"][0].slice(0, 0, 1));
  EXPECT_EQ(load(path)["b"].as_tensor()[0][0].item<std::int64_t>(), 9);
}

// Whatever is done with it: a checksum over bytes that nobody wrote would make damage good.
TEST_F(WritableTest, DamageIsNeverGivenAGoodChecksum) {
  const std::string path = folder / "x.pt";
  for (const bool verify : {true, false}) {
    save(dict_of({{"a", a}, {"b", b}}), path);
    std::string file = test::read_file(path);
    const auto bytes = b.values<std::int64_t>();
    file[file.find(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size_bytes())) + 1000] ^= 4;
    test::write_file(path, file);
    {
      WritableArchive archive = open_writable(path, {.verify = verify});
      ops::copy(Tensor::of({1.0F, 2.0F, 3.0F}), archive["a"][0]);
      if (verify) {
        const auto error = error_of([&] { archive["b"]; });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), ErrorCode::kChecksum);
        EXPECT_EQ(error->path(), path);
        EXPECT_EQ(error->tensor(), "b");
      } else {
        archive.flush();
        const Tensor damaged = archive["b"];
        damaged.values<std::int64_t>()[5] = 3;
      }
      archive.close();
    }
    EXPECT_EQ(open(path)["a"].load()[0][2].item<float>(), 3);
    EXPECT_EQ(code_of([&] { open(path)["b"].load(); }), ErrorCode::kChecksum);
  }
}

TEST_F(WritableTest, WhatIsNotWrittenToStaysByteForByte) {
  const std::string path = folder / "x.pt";
  save(dict_of({{"a", a}, {"b", b}}), path);
  const std::string before = test::read_file(path);
  WritableArchive archive = open_writable(path);
  EXPECT_EQ(archive["b"].shape(), b.shape());
  EXPECT_EQ(archive.entry(0).shape(), a.shape());
  archive.close();
  EXPECT_TRUE(test::read_file(path) == before);
}

TEST_F(WritableTest, AnArrayIsTheOnlyTensorOfItsFile) {
  save(b, folder / "x.npy");
  const WritableArchive archive = open_writable(std::filesystem::path(folder / "x.npy"));
  ops::copy(Tensor::of({std::int64_t{5}}), archive.tensor()[0].slice(0, 1, 2));
  EXPECT_EQ(load_tensor(folder / "x.npy")[0][1].item<std::int64_t>(), 5);
  save(dict_of({{"a", a}, {"b", b}}), folder / "x.pt");
  EXPECT_EQ(code_of([&] { open_writable(folder / "x.pt").tensor(); }), ErrorCode::kInvalidArgument);
}

TEST_F(WritableTest, WhatCannotBeChangedInPlaceIsRefused) {
  save(dict_of({{"b", b}}), folder / "x.npz", {.compress = true});
  const auto error = error_of([&] { open_writable(folder / "x.npz")["b"]; });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_EQ(error->tensor(), "b");
  save(b, folder / "x.npy");
  std::string file = test::read_file(folder / "x.npy");
  test::write_file(folder / "cut.npy", std::string_view(file).substr(0, file.size() - 1));
  file.replace(file.find("<i8"), 3, ">i8");
  test::write_file(folder / "swapped.npy", file);
  EXPECT_EQ(code_of([&] { open_writable(folder / "swapped.npy").tensor(); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([&] { open_writable(folder / "cut.npy"); }), ErrorCode::kTruncated);
  EXPECT_EQ(code_of([&] { open_writable(folder / "none.npy"); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { open_writable(folder.path()); }), ErrorCode::kIsDirectory);
  test::write_file(folder / "empty", std::string_view());
  EXPECT_EQ(code_of([&] { open_writable(folder / "empty"); }), ErrorCode::kUnknownFormat);
}

TEST_P(WritableTest, AFileThatAnotherReplacedIsSaidToBeGone) {
  const std::string path = folder / GetParam();
  save(dict_of({{"a", a}}), path);
  WritableArchive archive = open_writable(path);
  const Tensor changing = archive["a"];
  changing.values<float>()[0] = 7;
  archive.flush();
  save(dict_of({{"a", b}}), path);
  changing.values<float>()[0] = 8;
  EXPECT_EQ(code_of([&] { archive.flush(); }), ErrorCode::kChanged);
  EXPECT_EQ(code_of([&] { archive.close(); }), ErrorCode::kChanged);
  EXPECT_TRUE(Tensor::identical(load(path)["a"].as_tensor(), b));
}

TEST_F(WritableTest, AnotherFileIsNoticedWhereTheFirstHasANameLeft) {
  const std::string path = folder / "x.safetensors";
  save(dict_of({{"a", a}}), path);
  std::filesystem::create_hard_link(path, folder / "kept.safetensors");
  WritableArchive archive = open_writable(path);
  archive.flush();
  save(dict_of({{"a", b}}), path);
  EXPECT_EQ(code_of([&] { archive.flush(); }), ErrorCode::kChanged);
}

TEST_P(WritableTest, AFileThatWasCutIsAnError) {
  const std::string path = folder / GetParam();
  save(dict_of({{"a", a}, {"b", b}}), path);
  WritableArchive archive = open_writable(path);
  EXPECT_TRUE(archive["b"].defined());
  std::filesystem::resize_file(path, 4096);
  EXPECT_EQ(code_of([&] { archive["b"]; }), ErrorCode::kTruncated);
  EXPECT_EQ(code_of([&] { archive.flush(); }), ErrorCode::kTruncated);
  EXPECT_EQ(code_of([&] { archive.close(); }), ErrorCode::kTruncated);
}

TEST(NoWritableArchive, HasNoTensors) {
  WritableArchive archive;
  EXPECT_EQ(archive.path(), "");
  EXPECT_TRUE(archive.entries().empty());
  EXPECT_FALSE(archive.contains("x"));
  EXPECT_EQ(test::code_of([&] { archive["x"]; }), ErrorCode::kKeyNotFound);
  EXPECT_EQ(test::code_of([&] { archive.tensor(); }), ErrorCode::kInvalidArgument);
  archive.flush();
  archive.close();
}

}  // namespace
}  // namespace penstock
