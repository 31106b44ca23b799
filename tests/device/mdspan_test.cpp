// Tensors as multidimensional spans: by a class of this test that is made like std::mdspan, by cuda::std::mdspan where
// NVIDIA's headers are, and by std::mdspan itself where the standard library has it.

#include "penstock/mdspan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "penstock/error.h"
#include "support/errors.h"
#include "support/tensors.h"

#if __has_include(<cuda/std/mdspan>)
#include <cuda/std/mdspan>
#endif

namespace penstock {
namespace {

constexpr std::size_t kAny = static_cast<std::size_t>(-1);

template <class I, std::size_t... Sizes>
struct Extents {
  using index_type = I;
  static constexpr std::size_t kRank = sizeof...(Sizes);
  template <class... Given>
  requires(sizeof...(Given) == kRank) explicit Extents(Given... given) : sizes{static_cast<I>(given)...} {}
  static constexpr std::size_t static_extent(std::size_t i) { return std::array<std::size_t, kRank + 1>{Sizes...}[i]; }
  std::array<I, kRank> sizes;
};

struct Right {
  template <class E>
  struct mapping {
    using extents_type = E;
    explicit mapping(const E& e) : extents(e) {}
    typename E::index_type stride(std::size_t dim) const {
      typename E::index_type out = 1;
      for (std::size_t i = dim + 1; i < E::kRank; ++i)
        out = static_cast<typename E::index_type>(out * extents.sizes[i]);
      return out;
    }
    E extents;
  };
};
struct Strided {
  template <class E>
  struct mapping {
    using extents_type = E;
    using Strides = std::array<typename E::index_type, E::kRank>;
    mapping(const E& e, const Strides& s) : extents(e), of_dims(s) {}
    Strides strides() const { return of_dims; }
    typename E::index_type stride(std::size_t dim) const { return of_dims[dim]; }
    E extents;
    Strides of_dims;
  };
};

template <class T, class E, class Layout>
struct Span {
  using element_type = T;
  using extents_type = E;
  using mapping_type = typename Layout::template mapping<E>;
  using data_handle_type = T*;
  static constexpr std::size_t rank() { return E::kRank; }
  Span(T* data, const mapping_type& m) : first(data), mapping(m) {}
  template <class... Index>
  T& operator()(Index... index) const {
    const std::array<std::int64_t, E::kRank> at{index...};
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < E::kRank; ++i) offset += at[i] * static_cast<std::int64_t>(mapping.stride(i));
    return first[offset];
  }
  T* first;
  mapping_type mapping;
};

template <class T, class I = std::size_t>
using Plane = Span<T, Extents<I, kAny, kAny>, Strided>;
template <class T>
using Rows = Span<T, Extents<std::size_t, kAny, kAny>, Right>;

TEST(Mdspan, HasTheElementsOfAnyStrides) {
  const Tensor tensor = test::counting({3, 4});
  const auto plane = as_mdspan<Plane<int>>(tensor);
  plane(2, 1) = 90;
  EXPECT_EQ(tensor.at<int>(2, 1), 90);
  const Tensor turned = tensor.transpose(0, 1).slice(0, 1, 4, 2);
  const auto other = as_mdspan<Plane<const int>>(turned);
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 3; ++k) EXPECT_EQ(other(i, k), turned.at<const int>(i, k));
  }
}

TEST(Mdspan, LayoutsAndFixedSizesAreChecked) {
  const Tensor tensor = test::counting({3, 4});
  EXPECT_EQ(as_mdspan<Rows<int>>(tensor)(1, 3), 7);
  EXPECT_EQ((as_mdspan<Span<int, Extents<int, 3, kAny>, Right>>(tensor)(2, 0)), 8);
  const Tensor one = tensor.slice(1, 1, 2).slice(0, 0, 1);
  EXPECT_EQ(as_mdspan<Rows<int>>(one).mapping.extents.sizes[0], 1U);
  const Tensor turned = tensor.transpose(0, 1);
  const auto error = test::error_of([&] { as_mdspan<Rows<int>>(turned); });
  EXPECT_EQ(error->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(error->message(), testing::HasSubstr("contiguous()"));
  const auto fixed = test::error_of([&] { as_mdspan<Span<int, Extents<int, 3, 5>, Right>>(tensor); });
  EXPECT_EQ(fixed->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(fixed->message(), testing::HasSubstr("size 5 in dimension 1"));
}

TEST(Mdspan, ElementsThatShareMemoryAreNoMdspan) {
  const Tensor one = test::counting({8});
  for (const Tensor& shared : {Tensor(one.buffer(), DType::int32, {3, 2}, {0, 1}),     // repeats
                               Tensor(one.buffer(), DType::int32, {3, 3}, {1, 2}),     // windows that overlap
                               Tensor(one.buffer(), DType::int32, {4, 4}, {1, 1})}) {  // sums of indices
    EXPECT_EQ(test::code_of([&] { as_mdspan<Plane<int>>(shared); }), ErrorCode::kShapeMismatch);
  }
  for (const Tensor& apart :
       {Tensor(one.buffer(), DType::int32, {1, 8}, {0, 1}), Tensor::empty({0, 8}, DType::int32)}) {
    EXPECT_NO_THROW(as_mdspan<Plane<int>>(apart));
  }
}

TEST(Mdspan, RefusesWhatItCannotView) {
  const Tensor tensor = test::counting({3, 4});
  EXPECT_EQ(test::code_of([&] { as_mdspan<Plane<float>>(tensor); }), ErrorCode::kDTypeMismatch);
  const Tensor row = tensor[0];
  EXPECT_EQ(test::code_of([&] { as_mdspan<Plane<int>>(row); }), ErrorCode::kShapeMismatch);
  const std::vector<int> fixed = {1, 2};
  const Tensor read_only = Tensor::view(fixed, {1, 2});
  EXPECT_EQ(test::code_of([&] { as_mdspan<Plane<int>>(read_only); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(as_mdspan<Plane<const int>>(read_only)(0, 1), 2);
  const Tensor odd(Tensor::empty({16}, DType::uint8).buffer(), DType::int32, {1, 2}, {2, 1}, 1);
  EXPECT_EQ(test::code_of([&] { as_mdspan<Plane<int>>(odd); }), ErrorCode::kShapeMismatch);
  const Tensor large = Tensor::empty({2, 200}, DType::int32);
  EXPECT_EQ(test::code_of([&] { as_mdspan<Plane<int, unsigned char>>(large); }), ErrorCode::kLimit);
}

#if __has_include(<cuda/std/mdspan>)
TEST(Mdspan, OfNvidiasHeaders) {
  namespace std2 = cuda::std;
  const Tensor tensor = test::counting({3, 4});
  const Tensor turned = tensor.transpose(0, 1);
  const auto strided = as_mdspan<std2::mdspan<int, std2::dextents<int, 2>, std2::layout_stride>>(turned);
  const auto left = as_mdspan<std2::mdspan<int, std2::dextents<std::size_t, 2>, std2::layout_left>>(turned);
  const auto right = as_mdspan<std2::mdspan<int, std2::extents<int, 3, std2::dynamic_extent>>>(tensor);
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 4; ++k) {
      EXPECT_EQ(strided(k, i), i * 4 + k);
      EXPECT_EQ(left(k, i), i * 4 + k);
      EXPECT_EQ(right(i, k), i * 4 + k);
    }
  }
  const Tensor scalar = tensor[1][2];
  const auto none = as_mdspan<std2::mdspan<int, std2::extents<int>>>(scalar);
  EXPECT_EQ(none(), 6);
}
#endif

#ifdef __cpp_lib_mdspan
TEST(Mdspan, OfTheStandardLibrary) {
  const Tensor tensor = test::counting({3, 4});
  const auto plane = as_mdspan<const int, 2>(tensor);
  EXPECT_EQ((plane[2, 3]), 11);
  const auto right = as_mdspan<std::mdspan<int, std::dextents<int, 2>>>(tensor);
  EXPECT_EQ((right[1, 0]), 4);
}
#endif

}  // namespace
}  // namespace penstock
