#include "archive/whole_storages.h"

#include <gtest/gtest.h>

#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::archive {
namespace {

using format::Index;

TensorEntry entry(std::size_t storage, DType dtype, const Shape& shape, std::uint64_t offset = 0) {
  TensorEntry out;
  out.storage = storage;
  out.dtype = std::move(dtype);
  out.shape = shape;
  out.strides = shape.contiguous_strides();
  out.byte_offset = offset;
  return out;
}

format::Index index_of(std::vector<TensorEntry> entries, std::vector<std::uint64_t> sizes) {
  format::Index index;
  index.entries = std::move(entries);
  for (const std::uint64_t size : sizes) index.storages.push_back({.stored_bytes = size, .nbytes = size});
  return index;
}

TEST(WholeStorages, OneForEachStorageWithElements) {
  const format::Index index = index_of({entry(2, DType::float32, Shape{3}, 4), entry(2, DType::float32, Shape{2}),
                                        entry(1, DType::int16, Shape{0}), entry(0, DType::int16, Shape{2})},
                                       {6, 8, 16});
  const std::vector<TensorEntry> whole = whole_storages(index);
  ASSERT_EQ(whole.size(), 2U);
  EXPECT_EQ(whole[0].storage, 2U);
  EXPECT_EQ(whole[0].dtype, DType::float32);
  EXPECT_EQ(whole[0].shape, Shape{4});
  EXPECT_EQ(whole[0].byte_offset, 0U);
  EXPECT_EQ(whole[1].storage, 0U);
  EXPECT_EQ(whole[1].shape, Shape{3});
}

TEST(WholeStorages, BytesWhereTypesDifferOrDoNotDivide) {
  const format::Index mixed = index_of({entry(0, DType::float32, Shape{2}), entry(0, DType::int16, Shape{2})}, {8});
  EXPECT_EQ(whole_storages(mixed)[0].dtype, DType::uint8);
  EXPECT_EQ(whole_storages(mixed)[0].shape, Shape{8});
  const format::Index odd = index_of({entry(0, DType::float32, Shape{2})}, {11});
  EXPECT_EQ(whole_storages(odd)[0].dtype, DType::uint8);
  EXPECT_EQ(whole_storages(odd)[0].shape, Shape{11});
}

TEST(WholeStorages, SwapsOnlyWhereAllAgree) {
  TensorEntry swapped = entry(0, DType::float32, Shape{2});
  swapped.encoding.swapped = true;
  TensorEntry half = entry(0, DType::float16, Shape{2});
  half.encoding.swapped = true;
  EXPECT_TRUE(whole_storages(index_of({swapped, swapped}, {8}))[0].encoding.swapped);
  const auto refused = [](std::vector<TensorEntry> entries) {
    return test::code_of([&] { whole_storages(index_of(entries, {8})); });
  };
  EXPECT_EQ(refused({swapped, half}), ErrorCode::kUnsupported);
  EXPECT_EQ(refused({swapped, entry(0, DType::float32, Shape{2})}), ErrorCode::kUnsupported);
  // As bytes nobody could swap it any more.
  EXPECT_EQ(test::code_of([&] { whole_storages(index_of({swapped}, {11})); }), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace penstock::archive
