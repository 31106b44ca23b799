#pragma once

/// Tensors as multidimensional spans: `as_mdspan<float, 2>(tensor)` gives a std::mdspan where the standard library has
/// it (C++23). `as_mdspan<Mdspan>(tensor)` gives any class that is made like it, such as Kokkos::mdspan or
/// cuda::std::mdspan, with the layout and the fixed sizes that it says. Nothing is copied.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <version>

#include "penstock/detail/view.h"
#include "penstock/tensor.h"

#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

namespace penstock {

namespace detail {
/// What std::mdspan has, and classes that are made like it.
template <class T>
concept MdspanLike = requires {
  typename T::element_type;
  typename T::extents_type;
  typename T::mapping_type;
  typename T::data_handle_type;
  T::rank();
};

/// kShapeMismatch unless the tensor has these sizes (-1: any), kLimit where its indices end before.
void require_sizes(const Tensor& tensor, const std::int64_t* sizes, std::uint64_t most);
/// Of each dimension, as layout_stride wants it: at least 1. kShapeMismatch where elements share memory.
std::int64_t mdspan_stride(const Tensor& tensor, std::size_t dim);
[[noreturn]] void throw_other_layout(const Tensor& tensor);

template <class Mapping>
concept TakesStrides = requires(const Mapping& mapping) {
  mapping.strides();
};

template <class Mapping, std::size_t... Dim>
Mapping mdspan_mapping(const Tensor& tensor, std::index_sequence<Dim...>) {
  using Extents = typename Mapping::extents_type;
  using Index = typename Extents::index_type;
  const Extents extents(static_cast<Index>(tensor.shape()[Dim])...);
  if constexpr (TakesStrides<Mapping>) {
    using Strides = std::remove_cvref_t<decltype(std::declval<const Mapping&>().strides())>;
    return Mapping(extents, Strides{static_cast<Index>(mdspan_stride(tensor, Dim))...});
  } else {
    const Mapping mapping(extents);
    // Where a dimension has one element, or there is none at all, its stride leads nowhere.
    [[maybe_unused]] const auto fits = [&](const auto& of, std::size_t dim) {
      return tensor.shape()[dim] <= 1 || tensor.numel() == 0 ||
             static_cast<std::int64_t>(of.stride(dim)) == tensor.strides()[dim];
    };
    if (!(fits(mapping, Dim) && ...)) throw_other_layout(tensor);
    return mapping;
  }
}
}  // namespace detail

/// `tensor` as an `Mdspan`, in host memory. kDTypeMismatch when its element type is not the tensor's. kShapeMismatch
/// for another number of dimensions, another size than one that the type fixes, and strides that its layout has not:
/// layout_right is C order, layout_left Fortran order, and layout_stride has all under which no two elements share
/// memory. kInvalidArgument for read-only memory unless the elements are const, kDeviceMismatch for device memory,
/// kLimit for sizes beyond its index type. Valid while a handle on the memory lives; so a temporary refuses to give it.
template <detail::MdspanLike Mdspan>
Mdspan as_mdspan(const Tensor& tensor) {
  using T = typename Mdspan::element_type;
  using Extents = typename Mdspan::extents_type;
  constexpr std::size_t kRank = Mdspan::rank();
  std::array<std::int64_t, kRank + 1> fixed{};
  for (std::size_t i = 0; i < kRank; ++i) {
    const auto size = static_cast<std::size_t>(Extents::static_extent(i));
    fixed[i] = size == static_cast<std::size_t>(-1) ? -1 : static_cast<std::int64_t>(size);
  }
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<typename Extents::index_type>::max());
  std::byte* const data =
      detail::elements_of_view(tensor, {DType::of<T>(), alignof(T), !std::is_const_v<T>, "mdspan", kRank});
  detail::require_sizes(tensor, fixed.data(), kMost);
  using Mapping = typename Mdspan::mapping_type;
  return Mdspan(reinterpret_cast<typename Mdspan::data_handle_type>(data),
                detail::mdspan_mapping<Mapping>(tensor, std::make_index_sequence<kRank>()));
}
template <detail::MdspanLike Mdspan>
Mdspan as_mdspan(const Tensor&& tensor) = delete;

#ifdef __cpp_lib_mdspan
/// `tensor` as a std::mdspan of `Rank` dimensions, with any strides.
template <class T, std::size_t Rank>
std::mdspan<T, std::dextents<std::size_t, Rank>, std::layout_stride> as_mdspan(const Tensor& tensor) {
  return as_mdspan<std::mdspan<T, std::dextents<std::size_t, Rank>, std::layout_stride>>(tensor);
}
template <class T, std::size_t Rank>
void as_mdspan(const Tensor&& tensor) = delete;
#endif

}  // namespace penstock
