// Finds the smallest or largest element and its index. Chunks of fixed size are searched in parallel and their winners
// are compared in order, so that of equal elements the first wins whatever the number of threads. NaN beats every
// number, as in PyTorch. A block of elements is first asked whether any beats the best so far, because mostly none
// does.

#include <cstring>
#include <type_traits>

#include "core/processor.h"
#include "ops/blocks.h"
#include "ops/device_ops.h"
#include "ops/operands.h"
#include "ops/reduction.h"

namespace penstock::ops {
namespace {

/// Whether `value`, which comes later, takes the place of `best`. NaN beats everything and itself does not.
template <Extreme kExtreme, class T>
[[gnu::always_inline]] inline bool beats(T value, T best) {
  const bool beyond = kExtreme == Extreme::kMax ? value > best : value < best;
  return beyond || (value != value && best == best);
}

template <class T>
T element(const std::byte* from, std::int64_t index) {
  T value;
  std::memcpy(&value, from + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

/// Candidates of results that lie side by side.
template <class T>
struct Best {
  T* values;
  std::int64_t* indices;
};

/// Whether any of the values beats `best`. Counted in integers as wide as the values, so that the loop vectorises.
template <Extreme kExtreme, class T>
[[gnu::always_inline]] inline bool any_beats(const std::byte* values, std::int64_t count, T best) {
  using Mask = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  if (best != best) return false;
  Mask any = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = element<T>(values, i);
    const bool stays = kExtreme == Extreme::kMax ? value <= best : value >= best;  // false for NaN
    any |= stays ? Mask{0} : Mask{1};
  }
  return any != 0;
}
template <Extreme kExtreme, class T>
PENSTOCK_TARGET_AVX2 bool any_beats_avx2(const std::byte* values, std::int64_t count, T best) {
  return any_beats<kExtreme>(values, count, best);
}

template <Extreme kExtreme, class T>
void search_sequence(BlockReader& reader, std::int64_t first, std::int64_t count, std::int64_t index, Best<T> to) {
  T best = element<T>(reader.read(first, 1), 0);
  std::int64_t where = index;
  for_each_block(first, first + count, [&](std::int64_t at, std::size_t some) {
    const std::byte* const values = reader.read(at, some);
    // Most blocks change nothing, and that is seen faster than where.
    const auto size = static_cast<std::int64_t>(some);
    const bool any =
        core::has_avx2() ? any_beats_avx2<kExtreme>(values, size, best) : any_beats<kExtreme>(values, size, best);
    if (!any) return;
    for (std::int64_t i = 0; i < size; ++i) {
      const T value = element<T>(values, i);
      if (!beats<kExtreme>(value, best)) continue;
      best = value;
      where = index + at - first + i;
    }
  });
  *to.values = best;
  *to.indices = where;
}

template <Extreme kExtreme, class T>
void search_columns(BlockReader& reader, std::int64_t first, std::int64_t count, std::int64_t stride,
                    std::int64_t width, std::int64_t index, Best<T> to) {
  for (std::int64_t row = 0; row < count; ++row) {
    const std::byte* const values = reader.read(first + row * stride, static_cast<std::size_t>(width));
    for (std::int64_t i = 0; i < width; ++i) {
      const T value = element<T>(values, i);
      const bool better = row == 0 || beats<kExtreme>(value, to.values[i]);
      to.values[i] = better ? value : to.values[i];
      to.indices[i] = better ? index + row : to.indices[i];
    }
  }
}

/// The best of each chunk of each result, chunk by chunk.
template <Extreme kExtreme, class T>
void search_chunks(const Reduction& reduction, DType::Code type, Best<T> partial) {
  const std::int64_t tiles = (reduction.inner + kColumns - 1) / kColumns;
  const std::int64_t per_chunk = reduction.outer * tiles;
  const std::int64_t cost = std::min(reduction.count, kChunk) * std::min(reduction.inner, kColumns);
  for_each_range(per_chunk * reduction.chunks(), cost, 1, [&](std::int64_t begin, std::int64_t end) {
    BlockReader reader(reduction.view, reduction.view.shape(), reduction.view.dtype().code(), type);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t index = task / per_chunk * kChunk;
      const std::int64_t outer = task % per_chunk / tiles;
      const std::int64_t column = task % tiles * kColumns;
      const std::int64_t count = std::min(kChunk, reduction.count - index);
      const std::int64_t first = (outer * reduction.count + index) * reduction.inner + column;
      const std::int64_t place = task / per_chunk * reduction.results() + outer * reduction.inner + column;
      const Best<T> to{partial.values + place, partial.indices + place};
      if (reduction.inner == 1) {
        search_sequence<kExtreme, T>(reader, first, count, index, to);
      } else {
        search_columns<kExtreme, T>(reader, first, count, reduction.inner, std::min(kColumns, reduction.inner - column),
                                    index, to);
      }
    }
  });
}

template <Extreme kExtreme, class T>
ExtremeResults search(const Reduction& reduction) {
  const DType type = DType::of<T>();
  const std::int64_t results = reduction.results();
  const Tensor values = Tensor::empty(Shape{reduction.chunks(), results}, type);
  const Tensor indices = Tensor::empty(values.shape(), DType::int64);
  const Best<T> best{values.template values<T>().data(), indices.values<std::int64_t>().data()};
  search_chunks<kExtreme, T>(reduction, type.code(), best);
  // Chunks come in order, so that of equal ones the first stays.
  for (std::int64_t at = results; at < values.numel(); ++at) {
    const std::int64_t result = at % results;
    if (!beats<kExtreme>(best.values[at], best.values[result])) continue;
    best.values[result] = best.values[at];
    best.indices[result] = best.indices[at];
  }
  return {values[0].to(reduction.view.dtype()).reshape(reduction.result), indices[0].reshape(reduction.result)};
}

template <class T>
ExtremeResults search(const Reduction& reduction, Extreme extreme) {
  return extreme == Extreme::kMax ? search<Extreme::kMax, T>(reduction) : search<Extreme::kMin, T>(reduction);
}

}  // namespace

ExtremeResults find_extremes(const Reduction& reduction, Extreme extreme) {
  const DType& dtype = reduction.view.dtype();
  const Device device = reduction.view.device();
  if (!on_host(reduction.view)) return extremes_on_device(*launcher_for(device), reduction, extreme);
  if (reduction.results() == 0) {
    return {Tensor::empty(reduction.result, dtype), Tensor::empty(reduction.result, DType::int64)};
  }
  if (dtype == DType::float64) return search<double>(reduction, extreme);
  if (dtype.is_floating()) return search<float>(reduction, extreme);
  if (dtype == DType::uint64) return search<std::uint64_t>(reduction, extreme);
  return search<std::int64_t>(reduction, extreme);
}

}  // namespace penstock::ops
