#include "format/dcp/dcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "format/dcp/checkpoint.h"
#include "format/dcp/grids.h"
#include "format/folder.h"
#include "penstock/load.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/served_folder.h"
#include "support/tensors.h"

namespace penstock::format {
namespace {

using test::code_of;
using test::error_of;
using test::MadeCheckpoint;
using test::MadeChunk;
using test::numbered_tensor;
using test::TemporaryFolder;
using testing::HasSubstr;
using Sizes = std::vector<std::int64_t>;
namespace pickled = test::pickled;

class Checkpoint : public testing::Test {
 protected:
  std::optional<Error> error() {
    made.write();
    return error_of([&] { open(folder.path()).load(); });
  }
  void expect_error(ErrorCode code, const std::string& words) {
    const std::optional<Error> found = error();
    ASSERT_TRUE(found) << words;
    EXPECT_EQ(found->code(), code) << found->what();
    EXPECT_THAT(found->what(), HasSubstr(words));
    EXPECT_THAT(found->path(), HasSubstr(folder.path().string()));
  }
  /// A tensor of 4 x 6 in two chunks of two rows; `second` is where the second one is said to lie.
  void two_chunks(const Sizes& at = {2, 0}, const Sizes& sizes = {2, 6}) {
    const MadeChunk first = made.put("__0_0.distcp", whole, {0, 0}, {2, 6});
    MadeChunk second = made.put("__1_0.distcp", whole, {2, 0}, {2, 6});
    second.at = at;
    second.sizes = sizes;
    made.tensor("w", {4, 6}, {first, second});
  }

  TemporaryFolder folder{test::quick_folder()};
  MadeCheckpoint made{folder};
  const Tensor whole = numbered_tensor({4, 6}, DType::float32);
};

TEST_F(Checkpoint, ATensorOfOneChunkIsAViewOfItsFile) {
  made.tensor("w", {4, 6}, {made.put("__0_0.distcp", whole, {0, 0}, {4, 6})});
  made.write();
  for (const std::string& path : std::vector<std::string>{folder.path().string(), folder / ".metadata"}) {
    const Archive archive = open(path);
    EXPECT_EQ(archive.format(), "dcp");
    EXPECT_EQ(archive.path(), folder / ".metadata");
    const LazyTensor tensor = archive["w"];
    EXPECT_EQ(tensor.source().name(), folder / "__0_0.distcp");
    EXPECT_TRUE(tensor.storage().crc32);
    EXPECT_TRUE(Tensor::identical(tensor.load(), whole));
    EXPECT_TRUE(Tensor::identical(load(path)["w"].as_tensor(), whole));
  }
}

TEST_F(Checkpoint, ObjectsAndNestingComeBack) {
  made.object_at("epoch", made.put("__0_0.distcp", test::pt_file(pickled::integer(3))));
  made.tensor("model.w", {4, 6}, {made.put("__0_0.distcp", whole, {0, 0}, {4, 6})});
  const std::string elements = MadeCheckpoint::elements_of(whole, {0, 0}, {1, 6});
  const std::string tensor = pickled::tensor(pickled::storage("FloatStorage", "0", 6), 0, {6}, {1});
  const std::string object = pickled::dict({pickled::text("t"), tensor, pickled::text("n"), pickled::integer(7)});
  made.object_at("list.1", made.put("__1_0.distcp", test::pt_file(object, {elements})));
  made.path("epoch", pickled::tuple({pickled::text("epoch")}));
  made.path("model.w", pickled::tuple({pickled::text("model"), pickled::text("w")}));
  made.path("list.1", pickled::tuple({pickled::text("list"), pickled::integer(1)}));
  made.write();
  const Value value = load(folder.path());
  EXPECT_EQ(value["epoch"].as_int(), 3);
  EXPECT_TRUE(Tensor::identical(value["model"]["w"].as_tensor(), whole));
  ASSERT_EQ(value["list"].size(), 2U);
  EXPECT_TRUE(value["list"][0].is(Value::Kind::kNone));
  EXPECT_EQ(value["list"][1]["n"].as_int(), 7);
  EXPECT_TRUE(Tensor::identical(value["list"][1]["t"].as_tensor(), whole.select(0, 0)));
  EXPECT_TRUE(open(folder.path()).contains("list.1.t"));
}

TEST_F(Checkpoint, EveryGridOfChunksIsTheTensor) {
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {
    const TemporaryFolder here(test::quick_folder());
    MadeCheckpoint grid(here);
    const Tensor rows = numbered_tensor(test::random_shape(random, 3, 3, 9), DType::float32, 1);
    const Tensor wide = numbered_tensor({3, 1500}, DType::float32, 2);
    const Tensor line = numbered_tensor({40000}, DType::float32, 3);
    test::add_in_grid(grid, "rows", rows, random);
    test::add_in_grid(grid, "wide", wide, random);
    const MadeChunk left = grid.put("__0_0.distcp", line, {0}, {30001});
    grid.tensor("line", {40000}, {grid.put("__1_0.distcp", line, {30001}, {9999}), left});
    grid.write();
    const Archive archive = open(here.path());
    const Value value = archive.load();
    EXPECT_TRUE(Tensor::identical(value["rows"].as_tensor(), rows)) << round;
    EXPECT_TRUE(Tensor::identical(value["wide"].as_tensor(), wide)) << round;
    EXPECT_TRUE(Tensor::identical(value["line"].as_tensor(), line)) << round;
    EXPECT_TRUE(Tensor::identical(archive["line"].slice(0, 29990, 30011).load(), line.slice(0, 29990, 30011)));
    EXPECT_TRUE(Tensor::identical(archive["wide"].slice(1, 3, 1400, 7).load(), wide.slice(1, 3, 1400, 7).contiguous()));
    const Tensor into = Tensor::empty({3, 1500}, DType::float32);
    archive.load_into(std::vector<Placement>{{1, into}});
    EXPECT_TRUE(Tensor::identical(into, wide)) << round;
  }
}

TEST_F(Checkpoint, AChunkInAnotherOrderIsPutInOrder) {
  const MadeChunk first = made.put("__0_0.distcp", whole, {0, 0}, {2, 6});
  const std::string elements = MadeCheckpoint::elements_of(whole.slice(0, 2, 4).transpose(0, 1), {0, 0}, {6, 2});
  MadeChunk second = made.put(
      "__0_0.distcp",
      test::pt_file(pickled::tensor(pickled::storage("FloatStorage", "0", 12), 0, {2, 6}, {1, 2}), {elements}));
  second.at = {2, 0};
  second.sizes = {2, 6};
  made.tensor("w", {4, 6}, {first, second});
  made.write();
  EXPECT_TRUE(Tensor::identical(load(folder.path())["w"].as_tensor(), whole));
}

TEST_F(Checkpoint, ScalarsAndEmptyTensors) {
  const Tensor scalar = numbered_tensor({}, DType::float32);
  made.tensor("s", {}, {made.put("__0_0.distcp", scalar, {}, {})});
  made.tensor("e", {0, 5}, {});
  made.write();
  const Value value = load(folder.path());
  EXPECT_TRUE(Tensor::identical(value["s"].as_tensor(), scalar));
  EXPECT_EQ(value["e"].as_tensor().shape(), Shape({0, 5}));
}

TEST_F(Checkpoint, AChunkOutsideOfTheTensorIsRefused) {
  two_chunks({3, 0});
  expect_error(ErrorCode::kCorrupt, "the chunk of shape (2, 6) at (3, 0) does not lie inside");
}

TEST_F(Checkpoint, ChunksThatOverlapAreRefused) {
  two_chunks({1, 0});
  expect_error(ErrorCode::kCorrupt, "overlaps the chunk of shape (2, 6) at (0, 0)");
}

TEST_F(Checkpoint, AHoleIsRefused) {
  two_chunks({3, 0}, {1, 6});
  expect_error(ErrorCode::kCorrupt, "18 of 24 elements are in its 2 chunks");
}

TEST_F(Checkpoint, ChunksOfAnotherRankAreRefused) {
  two_chunks({12}, {12});
  expect_error(ErrorCode::kCorrupt, "does not lie inside");
}

TEST_F(Checkpoint, ANegativeSizeIsRefused) {
  two_chunks({2, 0}, {2, -6});
  expect_error(ErrorCode::kCorrupt, "not a number of 0 or more");
}

TEST_F(Checkpoint, AChunkOfAnotherShapeIsRefused) {
  made.tensor("w", {24},
              {MadeChunk{{0}, {24}, "__0_0.distcp", 3, made.put("__0_0.distcp", whole, {0, 0}, {4, 6}).length}});
  expect_error(ErrorCode::kCorrupt, "has shape (4, 6), where .metadata says (24,)");
}

TEST_F(Checkpoint, AChunkOfAnotherTypeIsRefused) {
  made.tensor("w", {4, 6}, {made.put("__0_0.distcp", whole, {0, 0}, {4, 6})}, "int32");
  expect_error(ErrorCode::kCorrupt, "a chunk is of float32, where .metadata says int32");
}

TEST_F(Checkpoint, FilesThatAreMissingAreNamed) {
  two_chunks();
  made.write();
  std::filesystem::remove(folder / "__1_0.distcp");
  const auto found = error_of([&] { open(folder.path()); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code(), ErrorCode::kNotFound);
  EXPECT_THAT(found->what(), HasSubstr("1 of the 2 files beside .metadata is missing: '__1_0.distcp'"));
}

TEST_F(Checkpoint, ACutFileIsRefused) {
  two_chunks();
  made.file_of("__1_0.distcp").pop_back();
  expect_error(ErrorCode::kTruncated, "the file was cut, or is of another save");
}

TEST_F(Checkpoint, AFileOfAnotherSaveIsRefused) {
  two_chunks();
  made.file_of("__1_0.distcp").insert(0, "xx");
  expect_error(ErrorCode::kCorrupt, "not of one save");
}

TEST_F(Checkpoint, PathsThatLeadOutAreRefused) {
  for (const std::string name : {"../x", "/etc/passwd", "a/b", "..", ""}) {
    MadeCheckpoint other(folder);
    MadeChunk chunk = other.put("__0_0.distcp", whole, {0, 0}, {4, 6});
    chunk.file = name;
    other.tensor("w", {4, 6}, {chunk});
    other.write();
    EXPECT_EQ(code_of([&] { open(folder.path()); }), ErrorCode::kUnsafe) << name;
  }
}

TEST_F(Checkpoint, TransformedStreamsAreRefused) {
  made.transformed_by("stream.zstd/1");
  made.tensor("w", {4, 6}, {made.put("__0_0.distcp", whole, {0, 0}, {4, 6})});
  expect_error(ErrorCode::kUnsupported, "'stream.zstd/1'");
}

TEST_F(Checkpoint, TwoTensorsInTheSameBytesAreRefused) {
  const MadeChunk chunk = made.put("__0_0.distcp", whole, {0, 0}, {4, 6});
  made.tensor("a", {4, 6}, {chunk});
  made.tensor("b", {4, 6}, {chunk});
  expect_error(ErrorCode::kCorrupt, "belong to it and to 'a'");
}

TEST_F(Checkpoint, PathsThatContradictAreRefused) {
  made.object_at("a", made.put("__0_0.distcp", test::pt_file(pickled::integer(3))));
  made.object_at("a.b", made.put("__0_0.distcp", test::pt_file(pickled::integer(4))));
  made.path("a", pickled::tuple({pickled::text("a")}));
  made.path("a.b", pickled::tuple({pickled::text("a"), pickled::text("b")}));
  expect_error(ErrorCode::kCorrupt, "contradicts");
}

TEST_F(Checkpoint, APositionFarBehindTheListIsRefused) {
  made.object_at("a", made.put("__0_0.distcp", test::pt_file(pickled::integer(3))));
  made.path("a", pickled::tuple({pickled::text("a"), pickled::integer(std::int64_t{1} << 40)}));
  expect_error(ErrorCode::kLimit, "of a list");
}

TEST_F(Checkpoint, DamageInAnyChunkIsNoticed) {
  for (const bool by_rows : {true, false}) {
    const TemporaryFolder here(test::quick_folder());
    MadeCheckpoint damaged(here);
    const Tensor large = numbered_tensor({300, 400}, DType::float32);
    const Sizes half = by_rows ? Sizes{150, 400} : Sizes{300, 200};
    const MadeChunk first = damaged.put("__0_0.distcp", large, {0, 0}, half);
    const MadeChunk second = damaged.put("__0_0.distcp", large, by_rows ? Sizes{150, 0} : Sizes{0, 200}, half);
    damaged.tensor("w", {300, 400}, {first, second});
    damaged.file_of("__0_0.distcp")[second.offset + second.length / 2] ^= 1;
    damaged.write();
    const auto found = error_of([&] { load(here.path()); });
    ASSERT_TRUE(found) << by_rows;
    EXPECT_EQ(found->code(), ErrorCode::kChecksum) << found->what();
    EXPECT_EQ(found->path(), here / "__0_0.distcp");
    EXPECT_NO_THROW(load(here.path(), {.verify = false}));
    const Archive archive = open(here.path());
    EXPECT_EQ(code_of([&] { archive["w"].load(); }), ErrorCode::kChecksum);
    EXPECT_NO_THROW(archive["w"].slice(0, 0, 10).load());
  }
}

TEST_F(Checkpoint, AFileThatIsWrittenToMeanwhileIsNoticed) {
  two_chunks();
  made.write();
  const Archive archive = open(folder.path());
  made.file_of("__1_0.distcp") += "more";
  made.write();
  EXPECT_EQ(code_of([&] { archive["w"].load(); }), ErrorCode::kChanged);
}

TEST_F(Checkpoint, BytesOfOneLookForNothingBesideTheirName) {
  two_chunks();
  made.write();
  const test::ServedFolder served(folder.path());
  for (const std::string& name : {folder / ".metadata", served.url(".metadata")}) {
    EXPECT_NO_THROW(open(name)) << name;
    const std::size_t asked = served.requests().size();
    EXPECT_EQ(code_of([&] { open(test::source_of(made.pickle(), name)); }), ErrorCode::kUnsupported) << name;
    EXPECT_EQ(served.requests().size(), asked);
  }
}

TEST_F(Checkpoint, StreamsAreFoundWhateverTheirFilesAreCalled) {
  std::vector<MadeChunk> chunks;
  for (const std::int64_t row : {0, 2}) {
    const std::string file = row == 0 ? "b %25+é.distcp" : "a?x#y.distcp";
    chunks.push_back(made.put(file, whole, {row, 0}, {2, 6}));
  }
  made.tensor("w", {4, 6}, chunks);
  made.tensor("s", {}, {made.put("a?x#y.distcp", numbered_tensor({}, DType::float32), {}, {})});
  made.write();
  const test::ServedFolder served(folder.path());
  for (const std::string& name : {folder / ".metadata", served.url(".metadata")}) {
    const Archive archive = open(name);
    EXPECT_TRUE(Tensor::identical(archive["w"].load(), whole)) << name;
    const auto contents = contents_of(archive.sources());
    ASSERT_TRUE(contents) << name;
    ASSERT_EQ(contents->size(), 3U);
    for (const Content& content : *contents) EXPECT_EQ(content.offset % 2, 1U) << "where the stream begins";
    EXPECT_EQ((*contents)[2].name, "s");
    EXPECT_THAT((*contents)[1].file.name(), HasSubstr("/a"));
  }
}

/// A text with zeros behind it, to that size, as a file with holes has them.
class Holes final : public ByteSource {
 public:
  Holes(std::string text, std::uint64_t size) : text_(std::move(text)), size_(size) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    most = std::max(most, offset + into.size());
    std::fill(into.begin(), into.end(), std::byte{});
    for (std::size_t i = 0; i < into.size() && offset + i < text_.size(); ++i) {
      into[i] = static_cast<std::byte>(text_[offset + i]);
    }
  }
  mutable std::uint64_t most = 0;

 private:
  std::string text_;
  std::uint64_t size_;
  std::string name_ = ".metadata";
};

TEST_F(Checkpoint, WhatAMetadataOnlyClaimsToHaveIsNotRead) {
  two_chunks();
  const auto code_of_reading = [](const std::string& text) {
    const auto holes = std::make_shared<Holes>(text, std::uint64_t{3} << 30);
    const std::vector<Source> sources{holes};
    const auto code = code_of([&] { dcp::streams_of(sources); });
    EXPECT_LE(holes->most, std::uint64_t{64} << 20);
    return code;
  };
  EXPECT_EQ(code_of_reading(made.pickle()), ErrorCode::kCorrupt) << "something behind the pickle";
  const std::string begun = made.pickle().substr(0, made.pickle().size() - 1);
  EXPECT_EQ(code_of_reading(begun + std::string("\x8d\0\0\0\xa0\0\0\0\0", 9)), ErrorCode::kLimit) << "2.5 GiB of text";
}

TEST_F(Checkpoint, ALargeMetadataIsReadToItsEnd) {
  std::string pickle = made.pickle();
  std::string padding;
  // A text, and POP.
  for (int i = 0; i < 20; ++i) padding += std::string("X\0\0\x10\0", 5) + std::string(1 << 20, 'x') + "0";
  const std::vector<Source> sources{test::source_of(pickle.substr(0, 2) + padding + pickle.substr(2))};
  EXPECT_TRUE(dcp::streams_of(sources).empty());
}

TEST_F(Checkpoint, AFolderWithoutItsMetadataIsRefused) {
  two_chunks();
  made.write();
  std::filesystem::remove(folder / ".metadata");
  EXPECT_EQ(code_of([&] { open(folder.path()); }), ErrorCode::kNotFound);
  test::write_file(folder / ".metadata", test::bytes_of("other"));
  EXPECT_EQ(code_of([&] { open(folder.path()); }), ErrorCode::kUnknownFormat);
}

TEST_F(Checkpoint, EveryTruncationOfItsMetadataIsAnError) {
  two_chunks();
  made.write();
  const std::string pickle = made.pickle();
  for (std::size_t n = 0; n < pickle.size(); ++n) {
    test::write_file(folder / ".metadata", test::bytes_of(std::string_view(pickle).substr(0, n)));
    ASSERT_TRUE(error_of([&] { open(folder.path()); })) << n;
  }
}

}  // namespace
}  // namespace penstock::format
