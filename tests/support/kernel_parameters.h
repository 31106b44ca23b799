#pragma once

// What the device kernels are given: the size of each one's parameter block, and where it has pointers.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "ops/kernels/parameters.h"

namespace penstock::test {

struct KernelParameters {
  std::string_view name;
  std::size_t bytes;
  std::span<const std::size_t> pointers;  ///< where the block has pointers to device memory, in bytes
};

template <class Parameters>
inline constexpr std::array<std::size_t, 0> kPointers{};
template <>
inline constexpr std::array kPointers<ops::FillKernel>{offsetof(ops::FillKernel, to)};
template <>
inline constexpr std::array kPointers<ops::RangeKernel>{offsetof(ops::RangeKernel, to)};
template <>
inline constexpr std::array kPointers<ops::RandomKernel>{offsetof(ops::RandomKernel, to)};
template <>
inline constexpr std::array kPointers<ops::MoveKernel>{offsetof(ops::MoveKernel, from), offsetof(ops::MoveKernel, to)};
template <>
inline constexpr std::array kPointers<ops::SelectKernel>{
    offsetof(ops::SelectKernel, from), offsetof(ops::SelectKernel, indices), offsetof(ops::SelectKernel, to)};
template <>
inline constexpr std::array kPointers<ops::BinaryKernel>{
    offsetof(ops::BinaryKernel, a.from), offsetof(ops::BinaryKernel, b.from), offsetof(ops::BinaryKernel, to)};
template <>
inline constexpr std::array kPointers<ops::UnaryKernel>{offsetof(ops::UnaryKernel, a.from),
                                                        offsetof(ops::UnaryKernel, to)};
template <>
inline constexpr std::array kPointers<ops::ReduceKernel>{
    offsetof(ops::ReduceKernel, from), offsetof(ops::ReduceKernel, from_indices), offsetof(ops::ReduceKernel, values),
    offsetof(ops::ReduceKernel, indices)};
template <>
inline constexpr std::array kPointers<ops::JoinKernel>{
    offsetof(ops::JoinKernel, values), offsetof(ops::JoinKernel, indices), offsetof(ops::JoinKernel, to_values),
    offsetof(ops::JoinKernel, to_indices)};
template <>
inline constexpr std::array kPointers<ops::MatmulKernel>{offsetof(ops::MatmulKernel, a), offsetof(ops::MatmulKernel, b),
                                                         offsetof(ops::MatmulKernel, to)};

template <class Parameters>
constexpr KernelParameters kernel_parameters(std::string_view name) {
  static_assert(!kPointers<Parameters>.empty(), "say where these parameters have pointers");
  return {name, sizeof(Parameters), kPointers<Parameters>};
}

/// A new device kernel gets its line here.
inline constexpr std::array kKernelParameters = {
    kernel_parameters<ops::FillKernel>("penstock_fill"),
    kernel_parameters<ops::RangeKernel>("penstock_range"),
    kernel_parameters<ops::RandomKernel>("penstock_random"),
    kernel_parameters<ops::MoveKernel>("penstock_copy"),
    kernel_parameters<ops::MoveKernel>("penstock_convert"),
    kernel_parameters<ops::SelectKernel>("penstock_select"),
    kernel_parameters<ops::BinaryKernel>("penstock_binary"),
    kernel_parameters<ops::UnaryKernel>("penstock_unary"),
    kernel_parameters<ops::ReduceKernel>("penstock_sum_lanes"),
    kernel_parameters<ops::JoinKernel>("penstock_join_sums"),
    kernel_parameters<ops::ReduceKernel>("penstock_extreme_lanes"),
    kernel_parameters<ops::JoinKernel>("penstock_join_extremes"),
    kernel_parameters<ops::MatmulKernel>("penstock_matmul"),
};

/// Null when there is no kernel of that name.
constexpr const KernelParameters* find_parameters(std::string_view name) {
  for (const KernelParameters& known : kKernelParameters) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

}  // namespace penstock::test
