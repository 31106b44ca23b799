#include "data/collate/derived.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include "ops/convert.h"

namespace penstock::data {

namespace {

template <class T, class Get>
void store(std::byte* to, const Fetched& fetched, std::uint32_t number, Get get) {
  for (std::size_t i = 0; i < fetched.size(); ++i) {
    const T value = get(fetched.samples[i].layout->scalars[number]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

/// The type in which a Value holds numbers of this kind.
DType widest(const DType& dtype) noexcept {
  if (dtype == DType::boolean) return dtype;
  if (dtype.is_complex()) return DType::complex128;
  return dtype.is_floating() ? DType::float64 : DType::int64;
}

void store_widest(const Fetched& fetched, std::uint32_t number, const DType& dtype, std::byte* to) {
  switch (dtype.code()) {
    case DType::Code::kBool:
      return store<bool>(to, fetched, number, [](const Value& v) { return v.as_bool(); });
    case DType::Code::kInt64:
      return store<std::int64_t>(to, fetched, number, [](const Value& v) { return v.as_int(); });
    case DType::Code::kFloat64:
      return store<double>(to, fetched, number, [](const Value& v) { return v.as_float(); });
    default:
      return store<std::complex<double>>(to, fetched, number, [](const Value& v) { return v.as_complex(); });
  }
}

void fill_scalars(const Fetched& fetched, const Derived& derived, const DType& dtype, std::byte* to) {
  const DType wide = widest(dtype);
  if (wide == dtype) return store_widest(fetched, derived.number, dtype, to);
  std::vector<std::byte> values(fetched.size() * wide.itemsize());
  store_widest(fetched, derived.number, wide, values.data());
  ops::convert(wide.code(), values.data(), dtype.code(), to, fetched.size());
}

/// The sizes of a sample along the padded dimensions.
Shape own_lengths(const Derived& derived, const Shape& shape) {
  Shape own = derived.lengths;
  for (std::size_t d = 0; d < own.rank(); ++d) own[d] = std::min(own[d], shape[derived.dims[d]]);
  return own;
}

/// True inside `own`, in a block of shape `slot`.
void fill_mask(const Shape& own, const Shape& slot, std::byte* to) {
  const std::size_t last = slot.rank() - 1;
  std::memset(to, 0, static_cast<std::size_t>(slot.numel()));
  const std::uint64_t places = outer_places(own, last);
  for (std::uint64_t place = 0; place < places; ++place) {
    std::memset(to + outer_offset(own, slot, last, 1, place), 1, static_cast<std::size_t>(own[last]));
  }
}

/// 0, and behind how many rows each sample ends. The rule that placed them made sure that an int32 holds these.
void fill_ends(const Fetched& fetched, std::uint32_t number, std::byte* to) {
  std::int32_t end = 0;
  std::memcpy(to, &end, sizeof end);
  for (std::size_t i = 0; i < fetched.size(); ++i) {
    end += static_cast<std::int32_t>(fetched.samples[i].layout->tensors[number].shape[0]);
    std::memcpy(to + (i + 1) * sizeof end, &end, sizeof end);
  }
}

void fill(const Fetched& fetched, const Derived& derived, const DType& dtype, std::byte* to) {
  if (derived.kind == Derived::Kind::kScalars) return fill_scalars(fetched, derived, dtype, to);
  if (derived.kind == Derived::Kind::kEnds) return fill_ends(fetched, derived.number, to);
  for (std::size_t i = 0; i < fetched.size(); ++i) {
    const Shape& shape = fetched.samples[i].layout->tensors[derived.number].shape;
    const Shape own = own_lengths(derived, shape);
    if (derived.kind == Derived::Kind::kMask) {
      fill_mask(own, derived.lengths, to + i * static_cast<std::size_t>(derived.lengths.numel()));
      continue;
    }
    const std::size_t bytes = own.rank() * sizeof(std::int64_t);
    std::memcpy(to + i * bytes, own.begin(), bytes);
  }
}

}  // namespace

void fill_derived(const Fetched& fetched, const BatchPlan& plan, std::byte* block) {
  for (const Derived& derived : plan.derived) {
    const Output& output = plan.outputs[derived.output];
    fill(fetched, derived, output.dtype, block + output.offset);
  }
}

}  // namespace penstock::data
