#include "io/move/strided_read.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "core/view.h"
#include "ops/kernels.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock::io {
namespace {

using test::CountingSource;

/// Calls `visit` with the element offset of every index of a shape.
void for_each_offset(const Shape& shape, const Strides& strides, const std::function<void(std::int64_t)>& visit,
                     std::size_t dim = 0, std::int64_t at = 0) {
  if (dim == shape.rank()) return visit(at);
  for (std::int64_t i = 0; i < shape[dim]; ++i) for_each_offset(shape, strides, visit, dim + 1, at + i * strides[dim]);
}

struct Geometry {
  Shape shape;
  Strides strides;
};

/// A random slice of a random permutation of a contiguous array.
Geometry random_geometry(std::mt19937& random, std::int64_t max_size) {
  Geometry g;
  g.shape = test::random_shape(random, 1, 4, static_cast<int>(max_size));
  for (std::size_t d = 0; d < g.shape.rank(); ++d) g.shape[d] = std::max<std::int64_t>(g.shape[d], 1);
  g.strides = g.shape.contiguous_strides();
  for (std::size_t d = 0; d < g.shape.rank(); ++d) {
    const auto other = static_cast<std::size_t>(random() % g.shape.rank());
    std::swap(g.shape[d], g.shape[other]);
    std::swap(g.strides[d], g.strides[other]);
    const auto step = 1 + static_cast<std::int64_t>(random() % 3);
    core::slice_view(g.shape, g.strides, d, static_cast<std::int64_t>(random()) % g.shape[d] / 2, g.shape[d], step);
  }
  return g;
}

TEST(StridedPlan, PartsCoverEachElementOnceAndNoMoreThanTheyMay) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const Geometry g = random_geometry(random, 12);
    const std::size_t itemsize = round % 4 == 0 ? 50'000 : 4;  // gaps above and below the bound
    const StridedPlan plan({1000, g.shape, g.strides, itemsize}, {});
    std::vector<std::uint64_t> seen;
    std::uint64_t read = 0;
    for (std::uint64_t i = 0; i < plan.size(); ++i) {
      const auto part = plan.part(i);
      EXPECT_LE(part.bytes, std::max<std::uint64_t>(StridedPlan::kScratchBytes, itemsize));
      read += part.bytes;
      for_each_offset(part.shape, g.strides, [&](std::int64_t at) {
        const std::uint64_t offset = part.offset + static_cast<std::uint64_t>(at) * itemsize;
        EXPECT_LE(offset + itemsize, part.offset + part.bytes);
        seen.push_back(offset);
      });
    }
    EXPECT_LE(read, plan.read_bytes());
    std::vector<std::uint64_t> wanted;
    for_each_offset(g.shape, g.strides,
                    [&](std::int64_t at) { wanted.push_back(1000 + static_cast<std::uint64_t>(at) * itemsize); });
    std::sort(seen.begin(), seen.end());
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(seen, wanted) << g.shape << " " << g.strides;
  }
}

TEST(StridedPlan, LongGapsAreSkippedAndShortOnesRead) {
  // 1,000 rows of a megabyte: 100 bytes of each.
  const StridedPlan far({0, {1000, 100}, {1 << 20, 1}, 1}, {});
  EXPECT_EQ(far.size(), 1000U);
  EXPECT_EQ(far.read_bytes(), 100'000U);
  // Rows of 200 bytes: half of each.
  const StridedPlan near({0, {1000, 100}, {200, 1}, 1}, {});
  EXPECT_EQ(near.size(), 1U);
  EXPECT_EQ(near.read_bytes(), 199'900U);
  // A gap inside of the parts that a narrower dimension would make.
  const StridedPlan inner({0, {10, 4}, {100'000, 30'000}, 1}, {});
  EXPECT_EQ(inner.size(), 40U);
  EXPECT_EQ(inner.read_bytes(), 40U);
}

TEST(StridedPlan, NeedsNoMemoryForItsParts) {
  const StridedPlan plan({0, {1'000'000'000, 1'000}, {1'000'000, 1}, 1}, {});
  EXPECT_EQ(plan.size(), 1'000'000'000U);
  EXPECT_EQ(plan.part(999'999'999).offset, 999'999'999U * std::uint64_t{1'000'000});
}

TEST(ReadStrided, GivesWhatAViewOfMemoryGives) {
  std::mt19937 random(5);
  for (int round = 0; round < 150; ++round) {
    const DType dtype = round % 3 == 0 ? DType::complex128 : round % 3 == 1 ? DType::int16 : DType::uint8;
    const Geometry g = random_geometry(random, round % 10 == 0 ? 40 : 9);
    const auto bytes = static_cast<std::size_t>(*core::view_extent(g.shape, g.strides)) * dtype.itemsize();
    const Tensor file = test::numbered_tensor({static_cast<std::int64_t>(bytes)}, DType::uint8);
    const Tensor view(file.buffer(), dtype, g.shape, g.strides);
    const CountingSource source("head" + std::string(reinterpret_cast<const char*>(file.data()), bytes));
    const Tensor to = Tensor::empty(g.shape, dtype);
    Report report;
    read_strided(source, {4, g.shape, g.strides, dtype.itemsize()}, to, ops::copy, {1 + random() % 3, {}}, report);
    EXPECT_TRUE(Tensor::identical(to, view)) << g.shape << " " << g.strides;
    EXPECT_EQ(report.read_bytes, source.bytes_read);
  }
}

TEST(ReadStrided, LargeArraysInManyParts) {
  const Tensor file = test::numbered_tensor({3000, 1000}, DType::float32);
  const CountingSource source(std::string(reinterpret_cast<const char*>(file.data()), file.nbytes()));
  for (const std::size_t threads : {1, 2, 5}) {
    for (const Tensor& view : {file.slice(1, 0, 500), file.slice(0, 1, 3000, 7), file.transpose(0, 1),
                               file.slice(1, 3, 1000, 300).slice(0, 0, 3000, 2), file.select(1, 999)}) {
      const Tensor to = Tensor::empty(view.shape(), view.dtype());
      Report report;
      read_strided(source, {view.byte_offset(), view.shape(), view.strides(), 4}, to, ops::copy, {threads, {}}, report);
      EXPECT_TRUE(Tensor::identical(to, view)) << view.shape() << " " << view.strides();
    }
  }
}

TEST(ReadStrided, StopsWhenAsked) {
  const CountingSource source(std::string(1000, 'x'));
  std::stop_source stop;
  stop.request_stop();
  Report report;
  const Tensor to = Tensor::empty({10}, DType::uint8);
  EXPECT_EQ(test::code_of([&] {
              read_strided(source, {0, {10}, {2}, 1}, to, ops::copy, {1, stop.get_token()}, report);
            }),
            ErrorCode::kCancelled);
}

TEST(ReadStrided, ACutSourceIsAnError) {
  const CountingSource source(std::string(1000, 'x'));
  Report report;
  const Tensor to = Tensor::empty({10}, DType::uint8);
  EXPECT_EQ(test::code_of([&] {
              read_strided(source, {0, {10}, {200}, 1}, to, ops::copy, {}, report);
            }),
            ErrorCode::kTruncated);
}

}  // namespace
}  // namespace penstock::io
