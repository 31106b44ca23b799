#include "penstock/documents.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset/slices.h"
#include "data/dataset_impl.h"
#include "penstock/collate.h"
#include "penstock/lengths.h"
#include "penstock/loader.h"
#include "penstock/mix.h"
#include "penstock/raw.h"
#include "penstock/windows.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"
#include "support/token_files.h"

namespace penstock {
namespace {

using Tokens = std::vector<std::uint16_t>;

class TokenDocuments : public testing::Test {
 protected:
  void write_megatron(const std::string& name, const test::MegatronIdx& idx = {}) {
    test::write_file(folder / (name + ".idx"), idx.bytes());
    test::write_file(folder / (name + ".bin"), std::string("\1\0\2\0\3\0\4\0\5\0\6\0", 12));
  }
  void write_llmc(const std::string& name, const Tokens& tokens) {
    test::write_file(folder / name, test::llmc(20240520, 1, static_cast<std::int32_t>(tokens.size()), tokens));
  }
  static std::vector<Tokens> all_of(const Dataset& dataset) {
    std::vector<Tokens> out;
    for (const Value& sample : dataset) {
      const auto tokens = sample.as_tensor().values<const std::uint16_t>();
      out.emplace_back(tokens.begin(), tokens.end());
    }
    return out;
  }

  /// x and y of the windows of an epoch, in order.
  static std::vector<Tokens> batches_of(const Dataset& dataset, std::uint64_t epoch) {
    DataLoader loader(dataset, {.batch_size = 4, .num_workers = 2, .seed = 1});
    loader.set_epoch(epoch);
    std::vector<Tokens> out;
    for (const Batch& batch : loader) {
      for (std::size_t i = 0; i < 2; ++i) {
        const Tensor part = batch.value[i].as_tensor();
        const auto tokens = part.values<const std::uint16_t>();
        out.emplace_back(tokens.begin(), tokens.end());
      }
    }
    return out;
  }

  test::TemporaryFolder folder;
};

TEST_F(TokenDocuments, OfMegatronAreFoundByAnyOfItsNames) {
  write_megatron("corpus.text");
  const std::vector<Tokens> wanted = {{1, 2, 3}, {}, {4, 5}, {6}};
  for (const char* const name : {"corpus.text", "corpus.text.idx", "corpus.text.bin"}) {
    EXPECT_EQ(all_of(documents(folder / name)), wanted) << name;
  }
  EXPECT_EQ(all_of(documents(folder.path() / "corpus.text")), wanted);
  const Dataset sequences = documents(folder / "corpus.text", {.sequences = true});
  EXPECT_EQ(all_of(sequences), (std::vector<Tokens>{{1, 2, 3}, {}, {4, 5}, {6}}));
}

TEST_F(TokenDocuments, AFolderOfTheirNameIsNoFile) {
  write_megatron("corpus");
  std::filesystem::create_directory(folder.path() / "corpus");
  EXPECT_EQ(documents(folder / "corpus").size(), 4);
}

TEST_F(TokenDocuments, OfLlmcBeginWithTheTokenOfTheirTokenizer) {
  write_llmc("a.bin", {50256, 7, 8, 50256, 50256, 9});
  EXPECT_EQ(all_of(documents(folder / "a.bin")), (std::vector<Tokens>{{50256, 7, 8}, {50256}, {50256, 9}}));
  EXPECT_EQ(all_of(documents(folder / "a.bin", {.begin = 8})), (std::vector<Tokens>{{50256, 7}, {8, 50256, 50256, 9}}));
  EXPECT_EQ(documents(folder / "a.bin", {.begin = 1 << 20}).size(), 1);
  write_llmc("none.bin", {});
  EXPECT_EQ(documents(folder / "none.bin").size(), 0);
  test::write_file(folder / "wide.bin", test::llmc<std::uint32_t>(20240801, 7, 3, {128000, 70000, 128000}));
  EXPECT_EQ(documents(folder / "wide.bin").size(), 2);
}

TEST_F(TokenDocuments, OfSeveralFilesFollowEachOther) {
  write_llmc("train_000001.bin", {9, 50256, 1});
  write_llmc("train_000002.bin", {2, 50256, 3});
  const std::vector<Tokens> wanted = {{9}, {50256, 1}, {2}, {50256, 3}};
  EXPECT_EQ(all_of(documents(folder / "train_*.bin")), wanted);
  EXPECT_EQ(all_of(documents(std::vector<std::string>{folder / "train_000001.bin", folder / "train_000002.bin"})),
            wanted);
}

TEST_F(TokenDocuments, APatternThatMeansAnIndexTwiceMeansItOnce) {
  write_megatron("a1");
  write_megatron("a2");
  EXPECT_EQ(documents(folder / "a?.*").size(), 8);
  EXPECT_EQ(documents(folder / "a[1].idx").size(), 4);
  write_megatron("a[1]", {.lengths = {6}, .offsets = {0}, .documents = {0, 1}});
  EXPECT_EQ(documents(folder / "a[1]").size(), 1);
}

TEST_F(TokenDocuments, OfAnArrayBeginWithTheTokenThatIsSaid) {
  std::string bytes;
  for (std::uint32_t i = 0; i < (5 << 20); ++i) test::append_bytes(bytes, static_cast<std::uint16_t>(i % 1000));
  test::write_file(folder / "train.bin", bytes);
  const Dataset found = documents(raw(folder / "train.bin", {.dtype = DType::uint16}), 0);
  ASSERT_EQ(found.size(), (5 << 20) / 1000 + 1);
  EXPECT_EQ(found.get(4194).as_tensor().shape(), Shape({1000}));
  EXPECT_EQ(found.get(-1).as_tensor().numel(), (5 << 20) % 1000);
  EXPECT_EQ(test::code_of([&] { documents(raw(folder / "train.bin", {.dtype = DType::float32}), 0); }),
            ErrorCode::kDTypeMismatch);
  EXPECT_EQ(test::code_of([&] {
              documents(raw(folder / "train.bin", {.dtype = DType::uint16, .shape = {-1, 2}}), 0);
            }),
            ErrorCode::kShapeMismatch);
}

TEST_F(TokenDocuments, LengthsAndBatchesAreThoseOfSamplesOfDifferentLength) {
  write_megatron("a");
  const Dataset found = documents(folder / "a");
  EXPECT_EQ(lengths(found), (std::vector<std::int64_t>{3, 0, 2, 1}));
  DataLoader loader(found, {.batch_size = 4, .num_workers = 0, .collate = collate::ragged({.cu_seqlens = true})});
  const Value batch = loader.next()->value;
  EXPECT_TRUE(Tensor::identical(batch["values"].as_tensor(), Tensor::of<std::uint16_t>({1, 2, 3, 4, 5, 6})));
  EXPECT_TRUE(Tensor::identical(batch["cu_seqlens"].as_tensor(), Tensor::of<std::int32_t>({0, 3, 3, 5, 6})));
}

TEST_F(TokenDocuments, AreJoinedByWindows) {
  write_megatron("a");
  const Dataset found = windows(documents(folder / "a"), 2, {.join = JoinSlices::kInOrder});
  EXPECT_EQ(all_of(found), (std::vector<Tokens>{{1, 2}, {3, 4}, {5, 6}}));
}

TEST_F(TokenDocuments, OfSeveralFilesAreJoinedInOneShuffledOrder) {
  std::vector<Tokens> all;
  std::string bytes;
  for (std::uint16_t shard = 0; shard < 5; ++shard) {
    Tokens tokens;
    for (std::uint16_t i = 0; i < 40; ++i) {
      tokens.push_back(i % 5 == 0 ? 50256 : static_cast<std::uint16_t>(100 * shard + i));
      test::append_bytes(bytes, tokens.back());
    }
    write_llmc("train_" + std::to_string(shard) + ".bin", tokens);
  }
  test::write_file(folder / "all.raw", bytes);
  const Dataset many = documents(folder / "train_*.bin");
  const Dataset one = documents(raw(folder / "all.raw", {.dtype = DType::uint16}), 50256);
  ASSERT_EQ(many.size(), one.size());
  const std::shared_ptr<const data::SlicedArrays> slices = many.impl().slices();
  EXPECT_FALSE(slices->table.lengths().defined()) << "a number a document";
  EXPECT_EQ(slices->parts.arrays(), 5u);
  const WindowsOptions options{.shift = 1, .join = JoinSlices::kShuffled};
  EXPECT_EQ(batches_of(windows(many, 7, options), 3), batches_of(windows(one, 7, options), 3));
  EXPECT_NE(batches_of(windows(many, 7, options), 3), batches_of(windows(many, 7, options), 4));
}

TEST_F(TokenDocuments, OfSeveralTypesStaySamples) {
  write_llmc("a.bin", {50256, 7});
  test::write_file(folder / "b.bin", test::llmc<std::uint32_t>(20240801, 7, 3, {128000, 70000, 128000}));
  const Dataset both = documents(folder / "?.bin");
  EXPECT_EQ(both.size(), 3);
  EXPECT_EQ(test::code_of([&] { windows(both, 2); }), ErrorCode::kDTypeMismatch);
}

TEST_F(TokenDocuments, AreMixedByWeights) {
  write_megatron("a");
  write_megatron("b");
  const Dataset found = mix({documents(folder / "a"), documents(folder / "b")}, {0.5, 0.5});
  EXPECT_GT(found.size(), 0);
  EXPECT_FALSE(all_of(found).empty());
}

TEST_F(TokenDocuments, WhatHasNoneIsRefused) {
  write_megatron("a");
  test::write_file(folder / "x.bin", "12345678");
  EXPECT_EQ(test::code_of([&] { documents(folder / "x.bin"); }), ErrorCode::kUnknownFormat);
  EXPECT_EQ(test::code_of([&] { documents(folder / "absent"); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { documents(folder / "absent.idx"); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { documents(folder / "absent.bin"); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { documents(folder / "a", {.begin = 3}); }), ErrorCode::kInvalidArgument);
  write_llmc("b.bin", {1});
  EXPECT_EQ(test::code_of([&] { documents(folder / "b.bin", {.sequences = true}); }), ErrorCode::kInvalidArgument);
  std::filesystem::remove(folder.path() / "a.bin");
  EXPECT_EQ(test::error_of([&] { documents(folder / "a"); })->path(), folder / "a.idx");
}

}  // namespace
}  // namespace penstock
