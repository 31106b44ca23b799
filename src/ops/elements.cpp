// Elements are printed in index order most of the time. So a stretch of them around the last one is converted at once
// to a type that can be printed, and the rest of the tensor stays as it is, however large it is.

#include "ops/elements.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "core/format.h"
#include "core/utf8.h"
#include "ops/date_text.h"

namespace penstock::ops {
namespace {

/// U+FFFD, for what is no character.
constexpr char32_t kReplacement = 0xFFFD;
/// Elements that are kept in a printable form.
constexpr std::int64_t kKept = 64 * 1024;

/// Wide enough to hold every value exactly, narrow enough to print its shortest decimal.
DType wide_type(const DType& dtype, ElementClass kind) {
  switch (kind) {
    case ElementClass::kInteger:
      return DType::int64;
    case ElementClass::kUnsigned:
      return DType::uint64;
    case ElementClass::kReal:
      return dtype == DType::float64 ? DType::float64 : DType::float32;
    case ElementClass::kComplex:
      return dtype == DType::complex128 ? DType::complex128 : DType::complex64;
    default:
      return dtype;
  }
}

/// "25us" of "datetime64[25us]"; nothing where there is no unit.
std::string unit_of(const DType& dtype) {
  const std::string name = dtype.name();
  const std::size_t begin = name.find('[');
  return begin == name.npos ? std::string() : name.substr(begin + 1, name.size() - begin - 2);
}

template <class T>
T read_at(const Tensor& tensor, std::size_t index) {
  T value;
  std::memcpy(&value, tensor.data() + index * sizeof(T), sizeof(T));
  return value;
}

std::string hexadecimal(const std::byte* bytes, std::size_t count) {
  std::string out = "0x";
  for (std::size_t i = 0; i < count; ++i) out += core::format("{:02x}", static_cast<unsigned>(bytes[i]));
  return out;
}

}  // namespace

ElementClass element_class(const DType& dtype) noexcept {
  using Code = DType::Code;
  switch (dtype.code()) {
    case Code::kBool:
      return ElementClass::kBool;
    case Code::kBytes:
    case Code::kText:
      return ElementClass::kText;
    case Code::kDateTime64:
      return ElementClass::kDate;
    case Code::kTimeDelta64:
      return ElementClass::kDuration;
    default:
      break;
  }
  if (dtype.is_complex()) return ElementClass::kComplex;
  if (dtype.is_floating()) return ElementClass::kReal;
  if (dtype.is_integer()) return dtype.is_signed() ? ElementClass::kInteger : ElementClass::kUnsigned;
  return ElementClass::kHex;
}

std::size_t ElementPrinter::place(std::size_t index) {
  if (index >= begin_ && index < end_) return index - begin_;
  auto left = static_cast<std::int64_t>(index);
  raw_ = piece_around(tensor_, left, kKept).contiguous();
  wide_ = raw_.dtype().is_numeric() ? raw_.to(wide_type(raw_.dtype(), kind_)) : raw_;
  begin_ = index - static_cast<std::size_t>(left);
  end_ = begin_ + static_cast<std::size_t>(raw_.numel());
  return static_cast<std::size_t>(left);
}

double ElementPrinter::real(std::size_t index) {
  const std::size_t at = place(index);
  switch (wide_.dtype().code()) {
    case DType::Code::kFloat32:
      return read_at<float>(wide_, at);
    case DType::Code::kFloat64:
      return read_at<double>(wide_, at);
    case DType::Code::kComplex64:
      return read_at<std::complex<float>>(wide_, at).real();
    default:
      return read_at<std::complex<double>>(wide_, at).real();
  }
}

double ElementPrinter::imaginary(std::size_t index) {
  const std::size_t at = place(index);
  if (wide_.dtype() == DType::complex64) return read_at<std::complex<float>>(wide_, at).imag();
  return read_at<std::complex<double>>(wide_, at).imag();
}

std::int64_t ElementPrinter::integer(std::size_t index) {
  const std::size_t at = place(index);
  return read_at<std::int64_t>(wide_, at);
}
std::uint64_t ElementPrinter::unsigned_integer(std::size_t index) {
  const std::size_t at = place(index);
  return read_at<std::uint64_t>(wide_, at);
}

std::string ElementPrinter::raw_text(std::size_t index) {
  const std::size_t size = tensor_.dtype().itemsize();
  const std::size_t at_element = place(index);
  const std::byte* bytes = raw_.data() + at_element * size;
  std::string out;
  if (raw_.dtype().code() == DType::Code::kText) {
    for (std::size_t at = 0; at + 4 <= size; at += 4) {
      std::uint32_t point = 0;
      std::memcpy(&point, bytes + at, 4);
      core::append_utf8(out, point <= 0x10FFFF ? static_cast<char32_t>(point) : kReplacement);
    }
  } else {
    out.assign(reinterpret_cast<const char*>(bytes), size);
  }
  // NumPy pads fixed-length text with zeros and drops them on reading.
  out.erase(out.find_last_not_of('\0') + 1);
  return out;
}

std::string ElementPrinter::decimal(double value) const {
  if (std::isnan(value)) return "nan";  // of either sign, which other libraries do not show
  const bool single = wide_.dtype() == DType::float32 || wide_.dtype() == DType::complex64;
  return single ? core::format("{}", static_cast<float>(value)) : core::format("{}", value);
}

std::string ElementPrinter::text(std::size_t index) {
  const std::size_t at = place(index);
  switch (kind_) {
    case ElementClass::kBool:
      return read_at<std::uint8_t>(raw_, at) != 0 ? "true" : "false";
    case ElementClass::kInteger:
      return core::format("{}", integer(index));
    case ElementClass::kUnsigned:
      return core::format("{}", unsigned_integer(index));
    case ElementClass::kReal:
      return decimal(real(index));
    case ElementClass::kComplex: {
      const std::string imaginary_part = decimal(imaginary(index));
      return decimal(real(index)) + (imaginary_part.front() == '-' ? "" : "+") + imaginary_part + "j";
    }
    case ElementClass::kText:
      return raw_text(index);
    case ElementClass::kDate:
      return date_text(integer(index), unit_of(tensor_.dtype()));
    case ElementClass::kDuration:
      return integer(index) == kNaT ? "NaT" : core::format("{}", integer(index));
    case ElementClass::kHex:
      break;
  }
  return hexadecimal(raw_.data() + at * raw_.dtype().itemsize(), raw_.dtype().itemsize());
}

}  // namespace penstock::ops
