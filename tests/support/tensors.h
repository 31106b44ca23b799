#pragma once

// Tensors of known content, and every type and layout of them.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "penstock/tensor.h"
#include "penstock/value.h"
#include "support/files.h"

namespace penstock::test {

/// A contiguous tensor of bytes in which a misplaced element shows. Booleans are 0 or 1.
inline Tensor numbered_tensor(const Shape& shape, const DType& dtype, std::uint64_t seed = 0) {
  const Tensor out = Tensor::empty(shape, dtype);
  const std::vector<std::byte> bytes = numbered_bytes(out.nbytes(), seed);
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  if (dtype == DType::boolean) {
    for (std::size_t i = 0; i < out.nbytes(); ++i) out.data()[i] &= std::byte{1};
  }
  return out;
}

/// 0, 1, 2, ... in C order.
template <class T = std::int32_t>
Tensor counting(const Shape& shape) {
  Tensor out = Tensor::empty(shape, DType::of<T>());
  const auto values = out.values<T>();
  std::iota(values.begin(), values.end(), T{0});
  return out;
}

/// The elements of a tensor in C order; a container, which matchers of older googletest need where a span would do.
template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  const Tensor contiguous = tensor.contiguous();
  const auto values = contiguous.values<const T>();
  return {values.begin(), values.end()};
}

/// A shape of `min_rank` to `max_rank` dimensions of 0 (rarely) to `max_size`.
inline Shape random_shape(std::mt19937& random, std::size_t min_rank, std::size_t max_rank, int max_size) {
  Shape out;
  const std::size_t rank = min_rank + random() % (max_rank - min_rank + 1);
  for (std::size_t d = 0; d < rank; ++d) {
    const bool empty = random() % 16 == 0;
    out.push_back(empty ? 0 : 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(max_size)));
  }
  return out;
}

/// A dict of tensors by name.
inline Value dict_of(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<std::pair<std::string, Value>> items;
  for (const auto& [name, tensor] : tensors) items.emplace_back(name, Value::tensor(tensor));
  return Value::dict(std::move(items));
}

}  // namespace penstock::test
