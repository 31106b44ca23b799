#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "format/rows.h"
#include "format/safetensors/shard_paths.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/served_folder.h"
#include "support/tensors.h"

namespace penstock::format {
namespace {

namespace fs = std::filesystem;
using test::code_of;
using test::dict_of;
using test::error_of;
using test::numbered_tensor;
using test::TemporaryFolder;
using test::write_file;
using testing::HasSubstr;

void write_shard(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                 const std::map<std::string, std::string>& metadata = {}) {
  test::StringSink sink;
  kSafetensorsFormat.write(dict_of(tensors), sink, {.metadata = metadata}, path);
  write_file(path, sink.text);
}

class ShardedModel : public testing::Test {
 protected:
  ShardedModel() {
    write_shard(folder / "m-1.safetensors",
                {{"a", numbered_tensor({2}, DType::float32)}, {"b", numbered_tensor({3}, DType::float32)}},
                {{"format", "pt"}, {"shard", "1"}});
    write_shard(folder / "m-2.safetensors", {{"c", numbered_tensor({4}, DType::uint8)}},
                {{"format", "pt"}, {"shard", "2"}});
  }

  Index read(const std::string& json) {
    write_file(path, json);
    return kShardIndexFormat.read_index(open_source(path), {});
  }
  std::optional<ErrorCode> code(const std::string& json) {
    return code_of([&] { read(json); });
  }
  std::optional<ErrorCode> code_of_shard(const std::string& name) {
    return code(R"({"weight_map":{"a":")" + name + R"("}})");
  }

  TemporaryFolder folder;
  const std::string path = folder / "m.safetensors.index.json";
  const std::string good = R"({"metadata":{"total_size":24,"by":"test","list":[1,{"x":2}],"ok":true},"weight_map":)"
                           R"({"c":"m-2.safetensors","a":"m-1.safetensors","b":"m-1.safetensors"}})";
};

TEST_F(ShardedModel, JoinsItsShards) {
  const Index index = read(good);
  ASSERT_EQ(index.sources.size(), 3U);
  EXPECT_EQ(index.sources[0].name(), path);
  ASSERT_EQ(index.entries.size(), 3U);
  EXPECT_EQ(index.entries[0].name, "c");
  EXPECT_EQ(index.entries[1].name, "a");
  EXPECT_EQ(index.storages[index.entries[0].storage].source, 1U);
  EXPECT_EQ(index.storages[index.entries[2].storage].source, 2U);
  EXPECT_EQ(index.structure.size(), 3U);
  EXPECT_EQ(index.metadata.at("total_size"), "24");
  EXPECT_EQ(index.metadata.at("by"), "test");
  EXPECT_EQ(index.metadata.at("format"), "pt") << "what all shards say";
  EXPECT_EQ(index.metadata.count("shard"), 0U) << "what they do not agree on";
}

TEST_F(ShardedModel, TensorsThatAreNotListedStayUnseen) {
  const Index index = read(R"({"weight_map":{"b":"m-1.safetensors"}})");
  ASSERT_EQ(index.entries.size(), 1U);
  EXPECT_EQ(index.entries[0].name, "b");
}

TEST_F(ShardedModel, IsKnownByItsContent) {
  const auto sniffs = [](const std::string& text) {
    const Source source = test::source_of(text);
    return kShardIndexFormat.sniff(test::bytes_of(std::string_view(text).substr(0, kSniffBytes)), *source);
  };
  EXPECT_TRUE(sniffs(good));
  EXPECT_TRUE(sniffs(" \n" + good));
  EXPECT_TRUE(sniffs(R"({"metadata":")" + std::string(5000, 'x') + R"(","weight_map":{}})"));
  EXPECT_FALSE(sniffs(""));
  EXPECT_FALSE(sniffs("{}"));
  EXPECT_FALSE(sniffs(R"(["weight_map"])"));
}

TEST_F(ShardedModel, MissingShardsAreNamed) {
  const auto error =
      error_of([&] { read(R"({"weight_map":{"a":"m-1.safetensors","x":"m-3.safetensors","y":"m-4.safetensors"}})"); });
  EXPECT_EQ(error->code(), ErrorCode::kNotFound);
  EXPECT_THAT(error->message(), HasSubstr("'m-3.safetensors', 'm-4.safetensors'"));
  EXPECT_THAT(error->message(), HasSubstr("2 of the 3"));
}

TEST_F(ShardedModel, EveryListedTensorMustBeInItsShard) {
  const auto error = error_of([&] { read(R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})"); });
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error->tensor(), "b");
  EXPECT_THAT(error->message(), HasSubstr("m-2.safetensors"));
}

TEST_F(ShardedModel, NamesThatLeaveTheFolderAreRefused) {
  const TemporaryFolder other;
  write_shard(other / "m.safetensors", {{"a", numbered_tensor({2}, DType::float32)}});
  fs::create_directory(folder / "sub");
  fs::copy(folder / "m-1.safetensors", folder / "sub/m.safetensors");
  const std::vector<std::string> names = {
      (fs::path(other / "m.safetensors")).string(),
      "../" + other.path().filename().string() + "/m.safetensors",
      "..",
      ".",
      "",
      "sub/m.safetensors",
      "./m-1.safetensors",
      "sub/../m-1.safetensors",
      "..\\\\m.safetensors",
      "C:m.safetensors",
      "file:m-1.safetensors",
      "m-1.safetensors\\u0000.x",
      std::string(300, 'x'),
  };
  for (const std::string& name : names) EXPECT_EQ(code_of_shard(name), ErrorCode::kUnsafe) << name;
}

TEST_F(ShardedModel, BytesOfAnIndexLookForNothingBesideTheirName) {
  write_file(path, good);
  const test::ServedFolder served(folder.path());
  for (const std::string& name : {path, served.url("m.safetensors.index.json")}) {
    EXPECT_NO_THROW(open(name)) << name;
    const std::size_t asked = served.requests().size();
    EXPECT_EQ(test::code_of([&] { open(test::source_of(good, name)); }), ErrorCode::kUnsupported) << name;
    EXPECT_EQ(served.requests().size(), asked);
  }
}

TEST_F(ShardedModel, LinksThatLeaveTheFolderAreRefused) {
  const TemporaryFolder other;
  write_shard(other / "m.safetensors", {{"a", numbered_tensor({2}, DType::float32)}});
  fs::create_symlink(other / "m.safetensors", folder / "out.safetensors");
  fs::create_symlink("out.safetensors", folder / "twice.safetensors");
  fs::create_symlink("m-1.safetensors", folder / "in.safetensors");
  fs::create_symlink("nowhere", folder / "broken.safetensors");
  fs::create_symlink("loop.safetensors", folder / "loop.safetensors");
  EXPECT_EQ(code_of_shard("out.safetensors"), ErrorCode::kUnsafe);
  EXPECT_EQ(code_of_shard("twice.safetensors"), ErrorCode::kUnsafe);
  EXPECT_EQ(code_of_shard("broken.safetensors"), ErrorCode::kNotFound);
  EXPECT_NE(code_of_shard("loop.safetensors"), std::nullopt);
  EXPECT_EQ(read(R"({"weight_map":{"a":"in.safetensors"}})").entries.size(), 1U);
}

TEST_F(ShardedModel, LinkedLikeHuggingFacesCacheIsRead) {
  fs::create_directories(folder / "blobs");
  fs::create_directories(folder / "snapshots/1");
  write_file(folder / "blobs/aaaa", R"({"weight_map":{"a":"m-1.safetensors"}})");
  fs::rename(folder / "m-1.safetensors", folder / "blobs/bbbb");
  fs::create_symlink("../../blobs/aaaa", folder / "snapshots/1/m.safetensors.index.json");
  fs::create_symlink("../../blobs/bbbb", folder / "snapshots/1/m-1.safetensors");
  const Index index = kShardIndexFormat.read_index(open_source(folder / "snapshots/1/m.safetensors.index.json"), {});
  EXPECT_EQ(index.entries[0].name, "a");
}

TEST_F(ShardedModel, ShardsMustBeFilesOfTensors) {
  write_file(folder / "text", "hello, this is no model");
  EXPECT_EQ(code_of_shard("text"), ErrorCode::kUnknownFormat);
  EXPECT_EQ(code_of_shard("m.safetensors.index.json"), ErrorCode::kUnsupported) << "the index itself";
  fs::create_directory(folder / "folder");
  EXPECT_EQ(code_of_shard("folder"), ErrorCode::kIsDirectory);
}

TEST_F(ShardedModel, ShardsMayBeOfAnyFormatWithNames) {
  const Tensor both = numbered_tensor({6}, DType::float32);
  save(dict_of({{"x", both}, {"y", both.slice(0, 2, 5)}, {"unlisted", both}}), folder / "m-1.bin", {.format = "pt"});
  save(dict_of({{"z", numbered_tensor({3}, DType::int64)}}), folder / "m-2.npz");
  write_file(path, R"({"weight_map":{"a":"m-1.safetensors","z":"m-2.npz","y":"m-1.bin","x":"m-1.bin"}})");
  const Archive archive = open(path);
  EXPECT_EQ(archive.format(), "shard-index");
  ASSERT_EQ(archive.entries().size(), 4U);
  const Value model = archive.load();
  EXPECT_EQ(test::values_of<float>(model["a"].as_tensor()),
            test::values_of<float>(numbered_tensor({2}, DType::float32)));
  EXPECT_EQ(test::values_of<float>(model["x"].as_tensor()), test::values_of<float>(both));
  EXPECT_EQ(test::values_of<float>(model["y"].as_tensor()), test::values_of<float>(both.slice(0, 2, 5)));
  EXPECT_EQ(test::values_of<std::int64_t>(model["z"].as_tensor()),
            test::values_of<std::int64_t>(numbered_tensor({3}, DType::int64)));
  const Tensor x = model["x"].as_tensor();
  const Tensor y = model["y"].as_tensor();
  EXPECT_EQ(y.data(), x.data() + 2 * sizeof(float)) << "what shares memory in a shard";
}

TEST_F(ShardedModel, ShardsWithoutNamesAndValuesThatAreNoTensorsAreRefused) {
  save(numbered_tensor({2}, DType::float32), folder / "m-1.npy");
  save(Value::list({Value::tensor(numbered_tensor({2}, DType::float32))}), folder / "list.pt");
  save(Value::dict(std::vector<std::pair<std::string, Value>>{{"a", Value::integer(1)}}), folder / "number.pt");
  for (const std::string name : {"m-1.npy", "list.pt", "number.pt"}) {
    const auto error = error_of([&] { read(R"({"weight_map":{"a":")" + name + R"("}})"); });
    ASSERT_TRUE(error) << name;
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported) << name;
    EXPECT_THAT(error->path(), HasSubstr(name));
  }
}

TEST_F(ShardedModel, BrokenIndexesAreRefused) {
  const std::vector<std::string> broken = {
      "{",
      "[]",
      R"({"other":"\"weight_map\""})",
      R"({"weight_map":[]})",
      R"({"weight_map":null})",
      R"({"weight_map":"m-1.safetensors"})",
      R"({"weight_map":{"a":1}})",
      R"({"weight_map":{"a":null}})",
      R"({"weight_map":{"a":["m-1.safetensors"]}})",
      R"({"weight_map":{"a":{}}})",
      R"({"metadata":[],"weight_map":{}})",
      R"({"weight_map":{"a":"m-1.safetensors","a":"m-1.safetensors"}})",
      R"({"weight_map":{"a":"m-1.safetensors","\u0061":"m-2.safetensors"}})",
      R"({"weight_map":{},"weight_map":{}})",
      R"({"metadata":{},"metadata":{},"weight_map":{}})",
      R"({"metadata":{"a":1,"a":2},"weight_map":{}})",
      R"({"other":{"a":1,"a":2},"weight_map":{}})",
  };
  for (const std::string& json : broken) EXPECT_EQ(code(json), ErrorCode::kCorrupt) << json;
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_EQ(code(good.substr(0, n)), ErrorCode::kCorrupt) << n;
}

TEST_F(ShardedModel, TooManyShards) {
  std::string json = R"({"weight_map":{)";
  for (int i = 0; i < 20'000; ++i) {
    json += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":")" + std::to_string(i) + "\"";
  }
  EXPECT_EQ(code(json + "}}"), ErrorCode::kLimit);
}

TEST_F(ShardedModel, MustBeAFile) {
  EXPECT_EQ(code_of([&] { kShardIndexFormat.read_index(test::source_of(good), {}); }), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace penstock::format
