#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "archive/archive_state.h"
#include "penstock/load.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"
#include "support/token_files.h"

namespace penstock::format {
namespace {

using test::MegatronIdx;
using test::TemporaryFolder;

class Megatron : public testing::Test {
 protected:
  void write(const MegatronIdx& idx, const std::string& tokens = std::string("\1\0\2\0\3\0\4\0\5\0\6\0", 12)) {
    test::write_file(folder / "a.idx", idx.bytes());
    test::write_file(folder / "a.bin", tokens);
  }
  Documents documents(DocumentUnit unit = DocumentUnit::kDocument) const {
    const Archive archive = open(folder / "a.idx");
    const detail::ArchiveState& state = detail::ArchiveState::of(archive);
    return state.format->documents(state.index, unit);
  }
  /// What opening and asking for documents ends with.
  std::optional<Error> error(DocumentUnit unit = DocumentUnit::kDocument) const {
    return test::error_of([&] { documents(unit); });
  }

  TemporaryFolder folder;
};

TEST_F(Megatron, TheIndexAndItsTokensAreOneFile) {
  write({.behind = std::string("\0\1\0\1", 4)});
  const Archive archive = open(folder / "a.idx");
  EXPECT_EQ(archive.format(), "megatron");
  EXPECT_TRUE(Tensor::identical(archive["tokens"].load(), Tensor::of<std::uint16_t>({1, 2, 3, 4, 5, 6})));
  EXPECT_TRUE(Tensor::identical(archive["lengths"].load(), Tensor::of<std::int32_t>({3, 0, 2, 1})));
  EXPECT_TRUE(Tensor::identical(archive["offsets"].load(), Tensor::of<std::int64_t>({0, 6, 6, 10})));
  EXPECT_TRUE(Tensor::identical(archive["documents"].load(), Tensor::of<std::int64_t>({0, 2, 2, 3, 4})));
  EXPECT_TRUE(Tensor::identical(archive["modes"].load(), Tensor::of<std::int8_t>({0, 1, 0, 1})));
  EXPECT_EQ(archive.load().size(), 5U);
}

TEST_F(Megatron, EveryCodeIsAType) {
  const std::vector<DType> types = {DType::uint8, DType::int8,    DType::int16,   DType::int32,
                                    DType::int64, DType::float64, DType::float32, DType::uint16};
  for (std::uint8_t code = 1; code <= 8; ++code) {
    write({.code = code, .lengths = {}, .offsets = {}, .documents = {0}}, std::string(16, '\1'));
    EXPECT_EQ(open(folder / "a.idx")["tokens"].dtype(), types[code - 1U]);
  }
  for (const std::uint8_t code : {std::uint8_t{0}, std::uint8_t{9}, std::uint8_t{255}}) {
    write({.code = code});
    EXPECT_EQ(error()->code(), ErrorCode::kUnsupported);
    EXPECT_EQ(error()->offset(), 17);
  }
}

TEST_F(Megatron, DocumentsAreSequencesThatFollowEachOther) {
  write({});
  const Documents joined = documents();
  EXPECT_EQ(joined.starts, (std::vector<std::int64_t>{0, 3, 3, 5}));
  EXPECT_EQ(joined.lengths, (std::vector<std::int64_t>{3, 0, 2, 1}));
  const Documents each = documents(DocumentUnit::kSequence);
  EXPECT_EQ(each.starts, (std::vector<std::int64_t>{0, 3, 3, 5}));
  EXPECT_EQ(each.lengths, (std::vector<std::int64_t>{3, 0, 2, 1}));
}

TEST_F(Megatron, SequencesInAnyOrderAreReachable) {
  write({.lengths = {2, 3}, .offsets = {6, 0}, .documents = {0, 1, 2}});
  EXPECT_EQ(documents().starts, (std::vector<std::int64_t>{3, 0}));
  write({.lengths = {2, 3}, .offsets = {6, 0}, .documents = {0, 2}});
  const auto apart = error();
  EXPECT_EQ(apart->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(apart->path(), folder / "a.idx");
  EXPECT_EQ(apart->tensor(), "offsets");
  EXPECT_TRUE(apart->message().ends_with("sequences=True")) << apart->message();
  EXPECT_EQ(documents(DocumentUnit::kSequence).starts, (std::vector<std::int64_t>{3, 0}));
}

TEST_F(Megatron, LengthsAndOffsetsThatLieAreErrors) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto of = [&](std::int32_t length, std::int64_t offset) {
    write({.lengths = {length}, .offsets = {offset}, .documents = {0, 1}});
    return error()->code();
  };
  EXPECT_EQ(of(-1, 0), ErrorCode::kCorrupt);
  EXPECT_EQ(of(std::numeric_limits<std::int32_t>::min(), 0), ErrorCode::kCorrupt);
  EXPECT_EQ(of(1, -2), ErrorCode::kCorrupt);
  EXPECT_EQ(of(1, 1), ErrorCode::kCorrupt);
  EXPECT_EQ(of(7, 0), ErrorCode::kTruncated);
  EXPECT_EQ(of(1, 12), ErrorCode::kTruncated);
  EXPECT_EQ(of(1, kMost - 1), ErrorCode::kTruncated);
  EXPECT_EQ(of(std::numeric_limits<std::int32_t>::max(), kMost - 1), ErrorCode::kTruncated);
}

TEST_F(Megatron, DocumentsOutOfOrderAreErrors) {
  const auto of = [&](std::vector<std::int64_t> bounds) {
    write({.documents = std::move(bounds)});
    const auto found = error();
    EXPECT_EQ(found->tensor(), "documents");
    return found->code();
  };
  EXPECT_EQ(of({}), ErrorCode::kCorrupt);
  EXPECT_EQ(of({1, 4}), ErrorCode::kCorrupt);
  EXPECT_EQ(of({0, 3, 2, 4}), ErrorCode::kCorrupt);
  EXPECT_EQ(of({0, 5}), ErrorCode::kCorrupt);
  EXPECT_EQ(of({0, -1, 4}), ErrorCode::kCorrupt);
  EXPECT_EQ(of({0, 2}), ErrorCode::kCorrupt);
  EXPECT_EQ(of({0, std::numeric_limits<std::int64_t>::max()}), ErrorCode::kCorrupt);
}

TEST_F(Megatron, CountsThatLieAreErrors) {
  for (const std::uint64_t more :
       {std::uint64_t{1}, std::uint64_t{1} << 60, std::numeric_limits<std::uint64_t>::max() - 8}) {
    write({.sequences_more = more});
    EXPECT_EQ(error()->code(), ErrorCode::kTruncated) << more;
    write({.documents_more = more});
    EXPECT_EQ(error()->code(), ErrorCode::kTruncated) << more;
  }
  write({.behind = "x"});
  EXPECT_EQ(error()->code(), ErrorCode::kCorrupt);
  write({.version = 2});
  EXPECT_EQ(error()->code(), ErrorCode::kUnsupported);
}

TEST_F(Megatron, CutAnywhereItIsAnError) {
  write({});
  const std::string whole = MegatronIdx{}.bytes();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    test::write_file(folder / "a.idx", whole.substr(0, n));
    EXPECT_TRUE(error()) << n;
  }
}

TEST_F(Megatron, TokensThatAreNotThereOrNotWholeAreErrors) {
  write({}, std::string(11, 'x'));
  const auto odd = error();
  EXPECT_EQ(odd->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(odd->path(), folder / "a.bin");
  std::filesystem::remove(folder / "a.bin");
  const auto missing = error();
  EXPECT_EQ(missing->code(), ErrorCode::kNotFound);
  EXPECT_EQ(missing->path(), folder / "a.idx");
  EXPECT_EQ(missing->message(), "its tokens should be in 'a.bin' beside it, which is not there; fetch both files");
}

TEST_F(Megatron, BytesAloneOpenNoFile) {
  write({});
  EXPECT_EQ(test::code_of([&] { open(test::source_of(MegatronIdx{}.bytes(), folder / "a.idx")); }),
            ErrorCode::kUnsupported);
  std::filesystem::copy_file(folder / "a.idx", folder / "renamed");
  EXPECT_EQ(test::code_of([&] { open(folder / "renamed"); }), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace penstock::format
