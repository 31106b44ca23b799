#include "format/dcp/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "format/dcp/dcp.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock::format {
namespace {

using test::code_of;
using test::error_of;
using testing::HasSubstr;

/// Shards as HuggingFaceStorageWriter leaves them.
class Shards : public testing::Test {
 protected:
  static std::string name_of(int rank, int number = 1, int count = 1) {
    const auto five = [](int value) { return std::string(value < 10 ? "0000" : "000") + std::to_string(value); };
    return "shard-" + five(rank) + "-model-" + five(number) + "-of-" + five(count) + ".safetensors";
  }
  void write(const std::string& file, const Tensor& tensor, const std::string& info) const {
    save(test::dict_of({{"w", tensor}}), folder / file,
         {.metadata = std::map<std::string, std::string>{{"DCP_SHARDING_INFO", info}, {"DCP_VERSION", "1.0"}}});
  }
  /// Rows [from, to) of the whole tensor.
  void write_rows(const std::string& file, std::int64_t from, std::int64_t to) const {
    write(file, whole.slice(0, from, to).contiguous(),
          R"({"w": {"saved_offsets": [)" + std::to_string(from) + ", 0]}}");
  }

  test::TemporaryFolder folder{test::quick_folder()};
  const Tensor whole = test::numbered_tensor({4, 6}, DType::float32);
};

TEST_F(Shards, AreOneTensor) {
  write(name_of(1), whole.slice(1, 0, 2).contiguous(), R"({"w": {"saved_offsets": [0, 0]}})");
  write(name_of(2), whole.slice(1, 2, 6).contiguous(), R"({"w": {"saved_offsets": [0, 2]}})");
  const Archive archive = open(folder.path());
  EXPECT_EQ(archive.format(), "dcp");
  EXPECT_EQ(archive.path(), folder.path());
  EXPECT_TRUE(Tensor::identical(archive.load()["w"].as_tensor(), whole));
  for (const std::string at : {"[0, 1]", "[0, 3]", "[0]", "[0, -1]", "\"x\"", "[0, 2, 0]", "[0, 2.0]", "[0, [2]]", "{}",
                               "[0, 18446744073709551615]", "[0, 2], \"saved_offsets\": [0, 2]"}) {
    write(name_of(2), whole.slice(1, 2, 6).contiguous(), R"({"w": {"saved_offsets": )" + at + "}}");
    EXPECT_EQ(code_of([&] { open(folder.path()); }), ErrorCode::kCorrupt) << at;
  }
}

TEST_F(Shards, WhatIsSaidOfOtherTensorsIsSteppedOver) {
  write(name_of(1), whole, R"({"other": {"saved_offsets": "x"}, "w": {"x": [[]], "saved_offsets": [0, 0]}, "z": 1})");
  EXPECT_TRUE(Tensor::identical(load(folder.path())["w"].as_tensor(), whole));
}

TEST_F(Shards, HostileOffsetsAreErrors) {
  const auto with = [&](const std::string& info) {
    write(name_of(1), whole, info);
    const auto error = error_of([&] { open(folder.path()); });
    EXPECT_LT(std::string(error ? error->what() : "").size(), 1000U);
    return error ? std::optional(error->code()) : std::nullopt;
  };
  const std::string deep(200'000, '[');
  EXPECT_EQ(with(R"({"w": {"saved_offsets": )" + deep + std::string(200'000, ']') + "}}"), ErrorCode::kCorrupt);
  EXPECT_EQ(with(R"({"w": {"saved_offsets": )" + deep + "}}"), ErrorCode::kCorrupt);
  EXPECT_EQ(with(R"({"w": {"other": )" + deep + "}}"), ErrorCode::kLimit);
  EXPECT_EQ(with(R"({"w": )" + deep + "}"), ErrorCode::kCorrupt);
  EXPECT_EQ(with(deep), ErrorCode::kCorrupt);
  EXPECT_EQ(with("{}"), ErrorCode::kCorrupt);
  EXPECT_EQ(with("{"), ErrorCode::kCorrupt);
  std::string wide = R"({"w": {"saved_offsets": [0)";
  for (int i = 0; i < 1'000'000; ++i) wide += ",0";
  EXPECT_EQ(with(wide + "]}}"), ErrorCode::kCorrupt);
}

TEST_F(Shards, OneThatOthersTellOfIsMissing) {
  for (int rank = 1; rank <= 4; ++rank) write_rows(name_of(rank), rank - 1, rank);
  EXPECT_TRUE(Tensor::identical(load(folder.path())["w"].as_tensor(), whole));
  for (int rank = 1; rank < 4; ++rank) {
    std::filesystem::rename(folder / name_of(rank), folder / "away");
    const auto error = error_of([&] { open(folder.path()); });
    ASSERT_TRUE(error) << rank;
    EXPECT_EQ(error->code(), ErrorCode::kNotFound);
    EXPECT_THAT(error->what(), HasSubstr("shard-0000" + std::to_string(rank)));
    std::filesystem::rename(folder / "away", folder / name_of(rank));
  }
}

TEST_F(Shards, ANumberThatOthersTellOfIsMissing) {
  write_rows(name_of(1, 1, 2), 0, 2);
  write_rows(name_of(2, 1, 2), 2, 4);
  EXPECT_EQ(code_of([&] { open(folder.path()); }), ErrorCode::kNotFound);
  save(test::dict_of({{"v", whole}}), folder / name_of(1, 2, 2));
  EXPECT_EQ(load(folder.path()).size(), 2U);
}

/// What once stood for the list of a folder's shards: a stranger may name bytes as he likes.
TEST_F(Shards, NoBytesPassForTheListOfAFolder) {
  write_rows(name_of(1), 0, 4);
  const Source list = *dcp::list_shards(folder.path().string());
  EXPECT_EQ(open(list).size(), 1U);
  std::string bytes(static_cast<std::size_t>(list.size()), '\0');
  list.read(0, std::as_writable_bytes(std::span(bytes)));
  const std::string magic("penstock shards\0", 16);
  for (const std::string& content : {bytes, magic + bytes, magic + name_of(1) + std::string(1, '\0')}) {
    const Source stranger = test::source_of(content, folder.path().string());
    EXPECT_FALSE(kDcpShardsFormat.sniff(test::bytes_of(content), *stranger));
    EXPECT_EQ(code_of([&] { open(stranger); }), ErrorCode::kUnknownFormat);
    EXPECT_EQ(code_of([&] { kDcpShardsFormat.read_index(stranger, {}); }), ErrorCode::kUnsupported);
  }
}

TEST_F(Shards, AFolderOfWholeSafetensorsIsNoCheckpoint) {
  save(test::dict_of({{"w", whole}}), folder / "a.safetensors");
  EXPECT_EQ(code_of([&] { open(folder.path()); }), ErrorCode::kIsDirectory);
}

}  // namespace
}  // namespace penstock::format
