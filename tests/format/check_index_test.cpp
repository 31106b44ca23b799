#include "format/check_index.h"

#include <gtest/gtest.h>

#include <limits>

#include "archive/made_archive.h"
#include "support/errors.h"

namespace penstock::format {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

class CheckIndex : public testing::Test {
 protected:
  CheckIndex() : archive(test::source_of(std::string(100, 'x'))) {
    archive.add_storage(20, 80);
    archive.add_entry(0, DType::float32, {4, 5}, {5, 1});
  }
  std::optional<ErrorCode> code() {
    return test::code_of([&] { check_index(archive.state.index); });
  }
  StorageEntry& storage() { return archive.state.index.storages[0]; }
  TensorEntry& entry() { return archive.state.index.entries[0]; }

  test::MadeArchive archive;
};

TEST_F(CheckIndex, TakesWhatFits) {
  check_index(archive.state.index);
  entry().shape = {1000, 5};
  entry().strides = {0, 1};
  check_index(archive.state.index);
  entry().shape = {0, 5};
  entry().byte_offset = 80;
  check_index(archive.state.index);
}

TEST_F(CheckIndex, EntriesSayHowTheyAreStored) {
  check_index(archive.state.index);
  EXPECT_EQ(entry().encoding, Encoding{});
  EXPECT_TRUE(entry().encoding.is_plain());
  entry().encoding.swapped = true;
  storage().compression = Compression::kDeflate;
  check_index(archive.state.index);
  EXPECT_EQ(entry().encoding, (Encoding{.swapped = true, .deflated = true}));
  EXPECT_TRUE(entry().encoding.changes_elements());
  EXPECT_FALSE(entry().encoding.has_math_bits());
  storage().compression = Compression::kNone;
  storage().resident = Buffer::allocate(80);
  entry().encoding = {.conjugate = true};
  check_index(archive.state.index);
  EXPECT_EQ(entry().encoding, (Encoding{.conjugate = true, .resident = true}));
  EXPECT_TRUE(entry().encoding.has_math_bits());
  EXPECT_FALSE(entry().encoding.is_plain());
}

TEST_F(CheckIndex, ElementsOfOneByteHaveNoByteOrder) {
  entry().encoding.swapped = true;
  entry().dtype = DType::uint8;
  check_index(archive.state.index);
  EXPECT_TRUE(entry().encoding.is_plain());
}

TEST_F(CheckIndex, ArraysOfObjectsHaveAStorageToo) {
  entry().pickled = true;
  entry().shape = {1000, 1000};
  check_index(archive.state.index);
  entry().storage = 1;
  EXPECT_EQ(code(), ErrorCode::kCorrupt);
}

TEST_F(CheckIndex, StoragesLieInTheirSource) {
  storage().offset = 21;
  EXPECT_EQ(code(), ErrorCode::kTruncated);
  storage().offset = kMax;
  EXPECT_EQ(code(), ErrorCode::kTruncated);
  storage().offset = 20;
  storage().source = 1;
  EXPECT_EQ(code(), ErrorCode::kCorrupt);
  storage().source = 0;
  storage().nbytes = 79;
  EXPECT_EQ(code(), ErrorCode::kCorrupt);
  storage().nbytes = 80;
  storage().resident = Buffer::allocate(79);
  EXPECT_EQ(code(), ErrorCode::kCorrupt);
}

TEST_F(CheckIndex, TensorsLieInTheirStorage) {
  const auto with = [&](Shape shape, Strides strides, std::uint64_t offset) {
    entry().shape = std::move(shape);
    entry().strides = std::move(strides);
    entry().byte_offset = offset;
    return code();
  };
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(with({4, 5}, {5, 1}, 1), ErrorCode::kCorrupt);
  EXPECT_EQ(with({4, 5}, {6, 1}, 0), ErrorCode::kCorrupt);
  EXPECT_EQ(with({4, 5}, {5, 1}, kMax - 3), ErrorCode::kCorrupt);
  EXPECT_EQ(with({2}, {kHuge}, 0), ErrorCode::kCorrupt);
  EXPECT_EQ(with({3}, {kHuge}, 0), ErrorCode::kCorrupt);
  EXPECT_EQ(with({4}, {kHuge / 4}, 0), ErrorCode::kCorrupt);
  EXPECT_EQ(with({4}, {1, 1}, 0), ErrorCode::kCorrupt);
  EXPECT_EQ(with({-1}, {1}, 0), ErrorCode::kCorrupt);
  EXPECT_EQ(with({4}, {-1}, 12), ErrorCode::kCorrupt);
  EXPECT_EQ(with({}, {}, 77), ErrorCode::kCorrupt);
  EXPECT_EQ(with({0}, {1}, 81), ErrorCode::kCorrupt);
  EXPECT_EQ(with({kHuge, kHuge}, {0, 0}, 0), ErrorCode::kLimit);
  entry().storage = 1;
  EXPECT_EQ(code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace penstock::format
