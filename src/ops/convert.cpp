// Converting any type to any other would need a loop for each pair. Types that C++ has get these loops; half-sized
// floats go through float32, and complex numbers through their parts, chunk by chunk in a buffer that stays in the
// first cache. The results are those of PyTorch on the host.

#include "ops/convert.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/processor.h"
#include "ops/half_loops.h"
#include "ops/machine_convert.h"
#include "ops/small_float.h"

namespace penstock::ops {
namespace {

using enum DType::Code;
using Loop = void (*)(const std::byte* from, std::byte* to, std::size_t count);

/// Converts one element: `From` and `To` are the stored types.
template <class From, class To>
struct Machine {
  static To convert(From value) noexcept { return machine_convert<To>(value); }
};
template <class Small, class To>
struct Decode {
  static To convert(Small value) noexcept { return Small::decode(value); }
};
template <class From, class Small>
struct Encode {
  static Small convert(From value) noexcept { return Small::encode(value); }
};

template <template <class, class> class Rule, class From, class To>
[[gnu::always_inline]] inline void for_each_element(const std::byte* __restrict from, std::byte* __restrict to,
                                                    std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    From value{};
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    const To result = Rule<From, To>::convert(value);
    std::memcpy(to + i * sizeof(To), &result, sizeof(To));
  }
}

template <template <class, class> class Rule, class From, class To>
PENSTOCK_TARGET_AVX2 void avx2_loop(const std::byte* from, std::byte* to, std::size_t count) {
  for_each_element<Rule, From, To>(from, to, count);
}

template <template <class, class> class Rule, class From, class To>
void loop(const std::byte* from, std::byte* to, std::size_t count) {
  if (core::has_avx2()) return avx2_loop<Rule, From, To>(from, to, count);
  for_each_element<Rule, From, To>(from, to, count);
}

// Between any two types that C++ has there is one loop; the other types pass through float, as in PyTorch.

constexpr std::array kMachineCodes = {kBool,  kUInt8, kUInt16, kUInt32,  kUInt64, kInt8,
                                      kInt16, kInt32, kInt64,  kFloat32, kFloat64};
using MachineTypes = std::tuple<Bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                                std::int16_t, std::int32_t, std::int64_t, float, double>;
constexpr std::size_t kMachineCount = kMachineCodes.size();
static_assert(kMachineCount == std::tuple_size_v<MachineTypes>);

template <class From, std::size_t... To>
constexpr std::array<Loop, kMachineCount> machine_row(std::index_sequence<To...>) {
  return {loop<Machine, From, std::tuple_element_t<To, MachineTypes>>...};
}

template <std::size_t... From>
constexpr std::array<std::array<Loop, kMachineCount>, kMachineCount> machine_table(std::index_sequence<From...> all) {
  return {machine_row<std::tuple_element_t<From, MachineTypes>>(all)...};
}

constexpr auto kMachineLoops = machine_table(std::make_index_sequence<kMachineCount>());

struct SmallFloat {
  DType::Code code;
  Loop decode;
  Loop encode;
};

template <class Small>
constexpr SmallFloat small_float(DType::Code code) {
  return {code, loop<Decode, Small, float>, loop<Encode, float, Small>};
}

constexpr std::array kSmallFloats = {
    SmallFloat{kFloat16, decode_float16, encode_float16},
    small_float<BFloat16>(kBFloat16),
    small_float<Float8E4M3FN>(kFloat8E4M3FN),
    small_float<Float8E5M2>(kFloat8E5M2),
    small_float<Float8E4M3FNUZ>(kFloat8E4M3FNUZ),
    small_float<Float8E5M2FNUZ>(kFloat8E5M2FNUZ),
    small_float<Float8E8M0FNU>(kFloat8E8M0FNU),
};

const SmallFloat* find_small(DType::Code code) noexcept {
  const auto* found =
      std::find_if(kSmallFloats.begin(), kSmallFloats.end(), [code](const auto& s) { return s.code == code; });
  return found == kSmallFloats.end() ? nullptr : found;
}

Loop machine_loop_for(DType::Code from, DType::Code to) noexcept {
  const auto index = [](DType::Code code) {
    return static_cast<std::size_t>(std::find(kMachineCodes.begin(), kMachineCodes.end(), code) -
                                    kMachineCodes.begin());
  };
  return kMachineLoops[index(from)][index(to)];
}

/// Elements that pass through a buffer at a time: small enough to stay in the first cache.
constexpr std::size_t kElementsAtOnce = 512;
using Chunk = std::array<std::byte, kElementsAtOnce * 16>;

std::size_t width_of(DType::Code code) noexcept { return DType(code).itemsize(); }

/// Calls body(first, count) for consecutive chunks.
template <class Body>
void for_each_chunk(std::size_t count, Body body) {
  for (std::size_t first = 0; first < count; first += kElementsAtOnce)
    body(first, std::min(kElementsAtOnce, count - first));
}

/// The loops that lead from one real type to another, one behind the other; none from a type to itself.
class Path {
 public:
  Path(DType::Code from, DType::Code to) : from_width_(width_of(from)), to_width_(width_of(to)) {
    if (from == to) return;
    const SmallFloat* const source = find_small(from);
    const SmallFloat* const target = find_small(to);
    const DType::Code first = source != nullptr ? kFloat32 : from;
    const DType::Code last = target != nullptr ? kFloat32 : to;
    if (source != nullptr) loops_[length_++] = source->decode;
    if (first != last) loops_[length_++] = machine_loop_for(first, last);
    if (target != nullptr) loops_[length_++] = target->encode;
  }

  void run(const std::byte* from, std::byte* to, std::size_t count) const {
    if (length_ == 0) {
      if (count != 0) std::memcpy(to, from, count * to_width_);
    } else if (length_ == 1) {
      loops_[0](from, to, count);
    } else {
      for_each_chunk(count, [&](std::size_t first, std::size_t some) {
        run_chunk(from + first * from_width_, to + first * to_width_, some);
      });
    }
  }

 private:
  void run_chunk(const std::byte* from, std::byte* to, std::size_t count) const {
    std::array<Chunk, 2> buffers;
    for (std::size_t i = 0; i < length_; ++i) {
      std::byte* const out = i + 1 == length_ ? to : buffers[i].data();
      loops_[i](from, out, count);
      from = out;
    }
  }

  std::array<Loop, 3> loops_{};
  std::size_t length_ = 0;
  std::size_t from_width_;
  std::size_t to_width_;
};

/// The type of a complex number's parts.
DType::Code part_of(DType::Code code) noexcept {
  return code == kComplex32 ? kFloat16 : code == kComplex64 ? kFloat32 : kFloat64;
}

/// Every second part, from the first.
template <class Part>
void take_real_parts(const std::byte* __restrict from, std::byte* __restrict to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * sizeof(Part), from + 2 * i * sizeof(Part), sizeof(Part));
}

template <class Part>
void add_zero_parts(const std::byte* __restrict from, std::byte* __restrict to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::array<Part, 2> both{};
    std::memcpy(&both[0], from + i * sizeof(Part), sizeof(Part));
    std::memcpy(to + i * sizeof both, &both, sizeof both);
  }
}

void real_to_complex(DType::Code from_type, const std::byte* from, DType::Code to_type, std::byte* to,
                     std::size_t count) {
  const DType::Code part = part_of(to_type);
  const Path path(from_type, part);
  const std::size_t width = width_of(part);
  const std::size_t from_width = width_of(from_type);
  const Loop interleave = width == 2   ? add_zero_parts<std::uint16_t>
                          : width == 4 ? add_zero_parts<std::uint32_t>
                                       : add_zero_parts<std::uint64_t>;
  Chunk parts;
  for_each_chunk(count, [&](std::size_t first, std::size_t some) {
    path.run(from + first * from_width, parts.data(), some);
    interleave(parts.data(), to + first * 2 * width, some);
  });
}

/// True where either part is not zero.
void complex_to_bool(DType::Code from_type, const std::byte* from, std::byte* to, std::size_t count) {
  const Path path(part_of(from_type), kBool);
  const std::size_t from_width = width_of(from_type);
  Chunk both;
  for_each_chunk(count, [&](std::size_t first, std::size_t some) {
    path.run(from + first * from_width, both.data(), 2 * some);
    for (std::size_t i = 0; i < some; ++i) to[first + i] = both[2 * i] | both[2 * i + 1];
  });
}

/// The imaginary parts are dropped.
void complex_to_real(DType::Code from_type, const std::byte* from, DType::Code to_type, std::byte* to,
                     std::size_t count) {
  const DType::Code part = part_of(from_type);
  const Path path(part, to_type);
  const std::size_t width = width_of(part);
  const std::size_t to_width = width_of(to_type);
  const Loop separate = width == 2   ? take_real_parts<std::uint16_t>
                        : width == 4 ? take_real_parts<std::uint32_t>
                                     : take_real_parts<std::uint64_t>;
  if (part == to_type) return separate(from, to, count);
  Chunk parts;
  for_each_chunk(count, [&](std::size_t first, std::size_t some) {
    separate(from + 2 * first * width, parts.data(), some);
    path.run(parts.data(), to + first * to_width, some);
  });
}

}  // namespace

void convert(DType::Code from_type, const std::byte* from, DType::Code to_type, std::byte* to, std::size_t count) {
  const bool from_complex = DType(from_type).is_complex();
  const bool to_complex = DType(to_type).is_complex();
  if (from_type == to_type) {
    if (count != 0) std::memcpy(to, from, count * width_of(to_type));
  } else if (from_complex && to_complex) {
    Path(part_of(from_type), part_of(to_type)).run(from, to, 2 * count);
  } else if (to_complex) {
    real_to_complex(from_type, from, to_type, to, count);
  } else if (from_complex && to_type == kBool) {
    complex_to_bool(from_type, from, to, count);
  } else if (from_complex) {
    complex_to_real(from_type, from, to_type, to, count);
  } else {
    Path(from_type, to_type).run(from, to, count);
  }
}

}  // namespace penstock::ops
