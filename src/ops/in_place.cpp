// Operations that change elements where they lie: swap bytes, negate, conjugate, fill. They need no second memory, so a
// load can run them on what it has just read. A float is negated by flipping its sign bit, because that also keeps the
// bits of a NaN; only types whose zero and NaN have no sign are handled apart.

#include <algorithm>
#include <cstring>

#include "core/counted.h"
#include "core/format.h"
#include "core/processor.h"
#include "ops/device_ops.h"
#include "ops/kernels.h"
#include "ops/loop_nest.h"
#include "ops/operands.h"
#include "penstock/error.h"

namespace penstock::ops {
namespace {

using enum DType::Code;

template <class Word>
Word reverse(Word word) noexcept {
  if constexpr (sizeof(Word) == 2) return __builtin_bswap16(word);
  if constexpr (sizeof(Word) == 4) return __builtin_bswap32(word);
  if constexpr (sizeof(Word) == 8) return __builtin_bswap64(word);
}

template <class Word>
[[gnu::always_inline]] inline void reverse_words(std::byte* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Word word = 0;
    std::memcpy(&word, bytes + i * sizeof(Word), sizeof(Word));
    word = reverse(word);
    std::memcpy(bytes + i * sizeof(Word), &word, sizeof(Word));
  }
}

template <class Word>
PENSTOCK_TARGET_AVX2 void swap_avx2(std::byte* bytes, std::size_t count) {
  reverse_words<Word>(bytes, count);
}

template <class Word>
void swap_words(std::span<std::byte> bytes) {
  const std::size_t count = bytes.size() / sizeof(Word);
  if (core::has_avx2()) return swap_avx2<Word>(bytes.data(), count);
  reverse_words<Word>(bytes.data(), count);
}

/// Changes `count` elements that lie `step` bytes apart.
using RowKernel = void (*)(std::byte* first, std::int64_t count, std::int64_t step);

template <class Word, class Change>
void change_row(std::byte* first, std::int64_t count, std::int64_t step, Change change) {
  for (std::int64_t i = 0; i < count; ++i) {
    Word word = 0;
    std::memcpy(&word, first + i * step, sizeof(Word));
    word = change(word);
    std::memcpy(first + i * step, &word, sizeof(Word));
  }
}

template <class Word>
void negate_integers(std::byte* first, std::int64_t count, std::int64_t step) {
  change_row<Word>(first, count, step, [](Word word) { return static_cast<Word>(Word{0} - word); });
}

/// The sign bit is the highest one.
template <class Word>
void flip_signs(std::byte* first, std::int64_t count, std::int64_t step) {
  constexpr auto kSign = static_cast<Word>(Word{1} << (sizeof(Word) * 8 - 1));
  change_row<Word>(first, count, step, [](Word word) { return static_cast<Word>(word ^ kSign); });
}

/// The types with one zero, 0x00, and one NaN, 0x80: neither has a sign.
void flip_signs_fnuz(std::byte* first, std::int64_t count, std::int64_t step) {
  change_row<std::uint8_t>(first, count, step, [](std::uint8_t word) {
    return static_cast<std::uint8_t>((word & 0x7FU) == 0 ? word : word ^ 0x80U);
  });
}

template <class Part>
void flip_both_signs(std::byte* first, std::int64_t count, std::int64_t step) {
  flip_signs<Part>(first, count, step);
  flip_signs<Part>(first + sizeof(Part), count, step);
}

template <class Part>
void flip_imaginary_signs(std::byte* first, std::int64_t count, std::int64_t step) {
  flip_signs<Part>(first + sizeof(Part), count, step);
}

RowKernel negation_of(DType::Code code) noexcept {
  switch (code) {
    case kUInt8:
    case kInt8:
      return negate_integers<std::uint8_t>;
    case kUInt16:
    case kInt16:
      return negate_integers<std::uint16_t>;
    case kUInt32:
    case kInt32:
      return negate_integers<std::uint32_t>;
    case kUInt64:
    case kInt64:
      return negate_integers<std::uint64_t>;
    case kFloat8E4M3FN:
    case kFloat8E5M2:
      return flip_signs<std::uint8_t>;
    case kFloat8E4M3FNUZ:
    case kFloat8E5M2FNUZ:
      return flip_signs_fnuz;
    case kFloat16:
    case kBFloat16:
      return flip_signs<std::uint16_t>;
    case kFloat32:
      return flip_signs<std::uint32_t>;
    case kFloat64:
      return flip_signs<std::uint64_t>;
    case kComplex32:
      return flip_both_signs<std::uint16_t>;
    case kComplex64:
      return flip_both_signs<std::uint32_t>;
    case kComplex128:
      return flip_both_signs<std::uint64_t>;
    default:
      return nullptr;
  }
}

RowKernel conjugation_of(DType::Code code) noexcept {
  switch (code) {
    case kComplex32:
      return flip_imaginary_signs<std::uint16_t>;
    case kComplex64:
      return flip_imaginary_signs<std::uint32_t>;
    case kComplex128:
      return flip_imaginary_signs<std::uint64_t>;
    default:
      return nullptr;
  }
}

void apply(const Tensor& tensor, RowKernel kernel) {
  if (tensor.nbytes() == 0) return;
  std::byte* const data = tensor.data();
  for_each_part(make_loop_nest(tensor), [&](const LoopNest& part, Start start) {
    if (part.rank == 0) return kernel(data + start.to, 1, 0);
    const Dim& row = part.dims[part.rank - 1];
    for_each_index(part, part.rank - 1, start, [&](Start at) { kernel(data + at.to, row.size, row.to); });
  });
}

void fill_row(std::byte* first, std::int64_t count, std::int64_t step, std::span<const std::byte> value) {
  const bool is_uniform = std::all_of(value.begin(), value.end(), [&](std::byte b) { return b == value.front(); });
  const auto width = static_cast<std::int64_t>(value.size());
  if (is_uniform && step == width) {
    std::memset(first, std::to_integer<int>(value.front()), static_cast<std::size_t>(count * width));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(first + i * step, value.data(), value.size());
}

}  // namespace

void swap_bytes(std::span<std::byte> bytes, std::size_t width) {
  if (width == 0 || bytes.size() % width != 0) {
    throw Error(ErrorCode::kInvalidArgument, core::format("{} not a whole number of units of {}",
                                                          core::counted(bytes.size(), "byte is", "bytes are"), width));
  }
  switch (width) {
    case 1:
      return;
    case 2:
      return swap_words<std::uint16_t>(bytes);
    case 4:
      return swap_words<std::uint32_t>(bytes);
    case 8:
      return swap_words<std::uint64_t>(bytes);
    default:
      break;
  }
  for (std::size_t i = 0; i < bytes.size(); i += width) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + width));
  }
}

void negate(const Tensor& tensor) {
  require_writable(tensor, "negating");
  const RowKernel kernel = negation_of(tensor.dtype().code());
  if (kernel == nullptr) {
    throw Error(ErrorCode::kUnsupported, core::format("{} values cannot be negated", tensor.dtype().name()));
  }
  apply(tensor, kernel);
}

void conjugate(const Tensor& tensor) {
  require_writable(tensor, "conjugating");
  // A real number is its own conjugate.
  if (const RowKernel kernel = conjugation_of(tensor.dtype().code())) apply(tensor, kernel);
}

void fill(const Tensor& to, std::span<const std::byte> value) {
  require_not_read_only(to, "filling");
  if (value.size() != to.dtype().itemsize()) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("a value of {} was given to fill {}, which has {}", core::counted(value.size(), "byte"),
                             to.dtype().name(), to.dtype().itemsize()));
  }
  if (to.nbytes() == 0) return;
  if (!on_host(to)) return fill_on_device(*launcher_for(to.device()), to, value);
  std::byte* const data = to.data();
  for_each_part(make_loop_nest(to), [&](const LoopNest& part, Start start) {
    if (part.rank == 0) return fill_row(data + start.to, 1, 0, value);
    const Dim& row = part.dims[part.rank - 1];
    for_each_index(part, part.rank - 1, start, [&](Start at) { fill_row(data + at.to, row.size, row.to, value); });
  });
}

}  // namespace penstock::ops
