// Sums do not depend on the number of threads. The elements of a result are cut into chunks of fixed size, each chunk
// is summed in lanes of fixed number, and lanes and chunks are combined in a fixed order. Threads only decide who sums
// which chunk. This order also keeps the rounding error small, and devices sum in the same one.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "core/processor.h"
#include "ops/blocks.h"
#include "ops/convert.h"
#include "ops/device_ops.h"
#include "ops/element_ops.h"
#include "ops/operands.h"
#include "ops/reduction.h"

namespace penstock::ops {
namespace {

/// to[i] += from[i]; `from` may be unaligned.
template <class T>
[[gnu::always_inline]] inline void add_elements(T* to, const std::byte* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    to[i] = Add::apply(to[i], value);
  }
}

/// Each lane takes every kLanes-th element.
template <class T>
[[gnu::always_inline]] inline void add_to_lanes(T* lanes, const std::byte* from, std::int64_t count) {
  std::array<T, kLanes> sums;
  std::copy_n(lanes, kLanes, sums.begin());
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    add_elements(sums.data(), from + static_cast<std::size_t>(i) * sizeof(T), kLanes);
  add_elements(sums.data(), from + static_cast<std::size_t>(i) * sizeof(T), count - i);
  std::copy_n(sums.begin(), kLanes, lanes);
}

template <class T>
PENSTOCK_TARGET_AVX2 void add_elements_avx2(T* to, const std::byte* from, std::int64_t count) {
  add_elements(to, from, count);
}
template <class T>
PENSTOCK_TARGET_AVX2 void add_to_lanes_avx2(T* lanes, const std::byte* from, std::int64_t count) {
  add_to_lanes(lanes, from, count);
}

template <class T>
void add_row(T* to, const std::byte* from, std::int64_t count) {
  return core::has_avx2() ? add_elements_avx2(to, from, count) : add_elements(to, from, count);
}
template <class T>
void add_sequence(T* lanes, const std::byte* from, std::int64_t count) {
  return core::has_avx2() ? add_to_lanes_avx2(lanes, from, count) : add_to_lanes(lanes, from, count);
}

/// Lane j takes in lane j + half, for half the number of lanes, a quarter, ...; `width` results lie side by side in a
/// lane.
template <class T>
void combine_lanes(T* lanes, std::int64_t used, std::int64_t width) {
  for (std::int64_t half = used / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half * width; ++i) lanes[i] = Add::apply(lanes[i], lanes[half * width + i]);
  }
}

/// Lanes that get an element when `count` are summed; the others would add 0.
std::int64_t used_lanes(std::int64_t count) noexcept {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::min(count, kLanes))));
}

/// The sum of one result's elements in a chunk.
template <class T>
T sum_sequence(BlockReader& reader, std::int64_t first, std::int64_t count) {
  std::array<T, kLanes> lanes{};
  for_each_block(first, first + count, [&](std::int64_t at, std::size_t some) {
    add_sequence(lanes.data(), reader.read(at, some), static_cast<std::int64_t>(some));
  });
  combine_lanes(lanes.data(), used_lanes(count), 1);
  return lanes[0];
}

/// The sums of `width` neighbouring results; rows of their elements lie `stride` apart.
template <class T>
void sum_columns(BlockReader& reader, std::int64_t first, std::int64_t count, std::int64_t stride, std::int64_t width,
                 T* to) {
  std::array<T, kLanes * kColumns> lanes;
  const std::int64_t used = used_lanes(count);
  std::fill_n(lanes.begin(), used * width, T{});
  for (std::int64_t row = 0; row < count; ++row) {
    add_row(lanes.data() + row % kLanes * width, reader.read(first + row * stride, static_cast<std::size_t>(width)),
            width);
  }
  combine_lanes(lanes.data(), used, width);
  std::copy_n(lanes.begin(), width, to);
}

/// The sum of chunks' sums, by the same rule.
template <class T>
T sum_in_order(std::vector<T> values) {
  while (values.size() > 1) {
    std::vector<T> sums;
    const auto size = static_cast<std::int64_t>(values.size());
    for (std::int64_t first = 0; first < size; first += kChunk) {
      const std::int64_t count = std::min(kChunk, size - first);
      std::array<T, kLanes> lanes{};
      add_sequence(lanes.data(), reinterpret_cast<const std::byte*>(values.data() + first), count);
      combine_lanes(lanes.data(), used_lanes(count), 1);
      sums.push_back(lanes[0]);
    }
    values = std::move(sums);
  }
  return values[0];
}

/// The sums of each chunk of each result, chunk by chunk.
template <class T>
void sum_chunks(const Reduction& reduction, DType::Code type, T* partial) {
  const std::int64_t tiles = (reduction.inner + kColumns - 1) / kColumns;
  const std::int64_t per_chunk = reduction.outer * tiles;
  const std::int64_t cost = std::min(reduction.count, kChunk) * std::min(reduction.inner, kColumns);
  for_each_range(per_chunk * reduction.chunks(), cost, 1, [&](std::int64_t begin, std::int64_t end) {
    BlockReader reader(reduction.view, reduction.view.shape(), reduction.view.dtype().code(), type);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t chunk = task / per_chunk;
      const std::int64_t outer = task % per_chunk / tiles;
      const std::int64_t column = task % tiles * kColumns;
      const std::int64_t count = std::min(kChunk, reduction.count - chunk * kChunk);
      const std::int64_t first = (outer * reduction.count + chunk * kChunk) * reduction.inner + column;
      T* const to = partial + chunk * reduction.results() + outer * reduction.inner + column;
      if (reduction.inner == 1) {
        *to = sum_sequence<T>(reader, first, count);
      } else {
        sum_columns<T>(reader, first, count, reduction.inner, std::min(kColumns, reduction.inner - column), to);
      }
    }
  });
}

template <class T>
void sum_into(const Reduction& reduction, DType::Code type, std::byte* out) {
  T* const sums = reinterpret_cast<T*>(out);
  const std::int64_t chunks = reduction.chunks();
  if (chunks == 1) return sum_chunks(reduction, type, sums);
  const std::int64_t results = reduction.results();
  std::vector<T> partial(static_cast<std::size_t>(chunks * results));
  sum_chunks(reduction, type, partial.data());
  for_each_range(results, chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t result = begin; result < end; ++result) {
      std::vector<T> values(static_cast<std::size_t>(chunks));
      for (std::int64_t i = 0; i < chunks; ++i)
        values[static_cast<std::size_t>(i)] = partial[static_cast<std::size_t>(i * results + result)];
      sums[result] = sum_in_order(std::move(values));
    }
  });
}

}  // namespace

Tensor sum_as(const Reduction& reduction, const DType& type) {
  const Device device = reduction.view.device();
  if (!on_host(reduction.view)) return sum_on_device(*launcher_for(device), reduction, type);
  Tensor out = Tensor::zeros(reduction.result, type);
  if (reduction.view.numel() == 0) return out;
  switch (type.code()) {
    case DType::Code::kFloat32:
      sum_into<float>(reduction, type.code(), out.data());
      break;
    case DType::Code::kFloat64:
      sum_into<double>(reduction, type.code(), out.data());
      break;
    case DType::Code::kComplex64:
      sum_into<Complex<float>>(reduction, type.code(), out.data());
      break;
    case DType::Code::kComplex128:
      sum_into<Complex<double>>(reduction, type.code(), out.data());
      break;
    default:
      sum_into<std::int64_t>(reduction, type.code(), out.data());
      break;
  }
  return out;
}

}  // namespace penstock::ops
