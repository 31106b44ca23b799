// Kernels that write and move elements: fill, ranges, random numbers, copies, conversions, choosing.

#include "ops/kernels/elements.h"

namespace penstock::ops {

struct alignas(16) Wide {
  std::uint64_t words[2];
};

PENSTOCK_DEVICE inline void copy_element(std::byte* to, const std::byte* from, unsigned width) {
  switch (width) {
    case 1:
      return write(to, read<std::uint8_t>(from));
    case 2:
      return write(to, read<std::uint16_t>(from));
    case 4:
      return write(to, read<std::uint32_t>(from));
    case 8:
      return write(to, read<std::uint64_t>(from));
    default:
      return write(to, read<Wide>(from));
  }
}

PENSTOCK_KERNEL(penstock_fill, FillKernel) {
  std::byte* const to = p.to + i * p.width;
  switch (p.width) {
    case 1:
      return write(to, static_cast<std::uint8_t>(p.value[0]));
    case 2:
      return write(to, static_cast<std::uint16_t>(p.value[0]));
    case 4:
      return write(to, static_cast<std::uint32_t>(p.value[0]));
    case 8:
      return write(to, p.value[0]);
    default:
      return write(to, Wide{{p.value[0], p.value[1]}});
  }
}

PENSTOCK_KERNEL(penstock_range, RangeKernel) {
  std::byte* const to = p.to + i * width_of(p.type);
  const auto index = static_cast<std::int64_t>(i);
  if (p.integers) return store_converted(to, p.type, p.integer_start + index * p.integer_step);
  store_converted(to, p.type, p.real_start + static_cast<double>(index) * p.real_step);
}

template <class T, unsigned kCount>
PENSTOCK_DEVICE inline void store_drawn(const RandomKernel& p, std::uint64_t block,
                                        const std::array<T, kCount>& drawn) {
  PENSTOCK_UNROLL
  for (unsigned k = 0; k < kCount; ++k) {
    const std::uint64_t element = block * kCount + k;
    if (element < p.elements) store_converted(p.to + element * width_of(p.type), p.type, drawn[k]);
  }
}

PENSTOCK_KERNEL(penstock_random, RandomKernel) {
  const RandomWords words = philox(p.seed, p.first_block + i);
  switch (p.kind) {
    case RandomKind::kFloats:
      return store_drawn<float, 4>(p, i, draw_floats(p.draw, words, p.bits));
    case RandomKind::kDoubles:
      return store_drawn<double, 2>(p, i, draw_doubles(p.draw, words));
    default:
      return store_drawn<std::int64_t, 2>(p, i, draw_integers(words, p.low, p.range));
  }
}

PENSTOCK_KERNEL(penstock_copy, MoveKernel) {
  const Offsets at = offsets(p.shape, p.from_steps, p.to_steps, i);
  copy_element(p.to + at.second, p.from + at.first, p.width);
}

PENSTOCK_KERNEL(penstock_convert, MoveKernel) {
  const Offsets at = offsets(p.shape, p.from_steps, p.to_steps, i);
  convert_element(p.from + at.first, p.from_type, p.to + at.second, p.to_type);
}

PENSTOCK_KERNEL(penstock_select, SelectKernel) {
  const std::int64_t unit = static_cast<std::int64_t>(i) % p.run;
  const std::int64_t entry = static_cast<std::int64_t>(i) / p.run;
  const std::int64_t source = entry / p.chosen * p.size + p.indices[entry % p.chosen];
  copy_element(p.to + i * p.width, p.from + (source * p.run + unit) * static_cast<std::int64_t>(p.width), p.width);
}

}  // namespace penstock::ops
