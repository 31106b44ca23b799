// NumPy writes a type as text such as "<f4": byte order, kind, width. This translates between that text and DType.

#include "format/text/npy_dtype.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <system_error>

#include "core/format.h"
#include "core/text.h"
#include "format/elsewhere.h"
#include "format/text/python_literal.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

using enum DType::Code;

/// Kinds of one fixed width, as NumPy numbers them.
struct Fixed {
  char kind;
  std::uint8_t bytes;
  DType::Code code;
};

constexpr auto kFixed = std::to_array<Fixed>({
    {'b', 1, kBool},
    {'u', 1, kUInt8},
    {'u', 2, kUInt16},
    {'u', 4, kUInt32},
    {'u', 8, kUInt64},
    {'i', 1, kInt8},
    {'i', 2, kInt16},
    {'i', 4, kInt32},
    {'i', 8, kInt64},
    {'f', 2, kFloat16},
    {'f', 4, kFloat32},
    {'f', 8, kFloat64},
    {'c', 8, kComplex64},
    {'c', 16, kComplex128},
    {'f', 1, kFloat8E5M2},
});

/// Types of ml_dtypes that take a byte each in NumPy and have no DType of ours.
constexpr auto kForeignBytes =
    std::to_array<std::string_view>({"int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float6_e2m3fn",
                                     "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"});

constexpr auto kTimeUnits =
    std::to_array<std::string_view>({"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic"});

[[noreturn]] void throw_unknown(std::string_view descr) {
  throw Error(
      ErrorCode::kUnsupported,
      core::format("the array's type {} is not one that NumPy writes; convert it before saving", core::quoted(descr)));
}

/// The width behind a kind; 0 when there is none.
std::size_t parse_width(std::string_view digits, std::string_view descr) {
  if (digits.empty()) return 0;
  std::uint32_t width = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), width);
  if (end != digits.data() + digits.size()) throw_unknown(descr);
  if (error != std::errc() || width > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::kLimit, core::format("elements of type {} are wider than 2 GiB", core::quoted(descr)));
  }
  return width;
}

/// Whether `text` is empty or a date's unit in brackets: "[ns]", "[25us]".
bool is_unit(std::string_view text) noexcept {
  if (text.empty()) return true;
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits > 9 || (digits > 0 && text.front() == '0')) return false;
  return std::find(kTimeUnits.begin(), kTimeUnits.end(), text.substr(digits)) != kTimeUnits.end();
}

std::optional<NpyType> find_fixed(char kind, std::string_view digits, bool swapped) {
  if (digits.empty() || digits.size() > 2 || digits.front() == '0') return std::nullopt;
  unsigned width = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    width = width * 10 + static_cast<unsigned>(digit - '0');
  }
  for (const Fixed& fixed : kFixed) {
    if (fixed.kind != kind || fixed.bytes != width) continue;
    const DType dtype(fixed.code);
    return NpyType{.dtype = dtype, .byte_swapped = swapped && dtype.swap_width() > 1};
  }
  return std::nullopt;
}

NpyType parse_time(char kind, std::string_view rest, bool swapped, std::string_view descr) {
  if (rest.empty() || rest.front() != '8' || !is_unit(rest.substr(1))) throw_unknown(descr);
  const DType::Code code = kind == 'M' ? kDateTime64 : kTimeDelta64;
  return {.dtype = DType::with_descr(code, 8, core::format("<{}{}", kind, rest)), .byte_swapped = swapped};
}

/// The widest float of the machine that wrote the file: its bits mean something else on another one.
NpyType parse_long_double(char order, char kind, std::string_view width) {
  const std::string name = core::format("{}{}{}", order == '>' ? '>' : '<', kind, width);
  return {.dtype = DType::with_descr(kOpaque, parse_width(width, name), name)};
}

/// Types that a descr gives by name, as some writers do for ml_dtypes.
std::optional<NpyType> find_name(std::string_view name) {
  if (std::find(kForeignBytes.begin(), kForeignBytes.end(), name) != kForeignBytes.end()) {
    return NpyType{.dtype = DType::with_descr(kOpaque, 1, std::string(name))};
  }
  const std::optional<DType> dtype = DType::from_name(name);
  const bool known = dtype && dtype->is_numeric() && *dtype != DType::complex32 && dtype->name() == name;
  return known ? std::optional(NpyType{.dtype = *dtype}) : std::nullopt;
}

bool is_long_double(char kind, std::string_view width) noexcept {
  return kind == 'f' ? width == "16" || width == "12" : kind == 'c' && (width == "32" || width == "24");
}

}  // namespace

NpyType npy_type_from_string(std::string_view descr) {
  std::string_view rest = descr;
  char order = '=';
  if (!rest.empty() && std::string_view("<>=|").find(rest.front()) != std::string_view::npos) {
    order = rest.front();
    rest.remove_prefix(1);
  }
  if (rest.empty()) throw_unknown(descr);
  const char kind = rest.front();
  const std::string_view width = rest.substr(1);
  const bool swapped = order == '>';
  if (auto fixed = find_fixed(kind, width, swapped)) return *fixed;
  if (kind == 'M' || kind == 'm') return parse_time(kind, width, swapped, descr);
  if (is_long_double(kind, width)) return parse_long_double(order, kind, width);
  if (kind == 'O' && width.find_first_not_of("0123456789") == std::string_view::npos) {
    return {.dtype = DType::with_descr(kOpaque, 0, "object"), .has_objects = true};
  }
  if (rest.size() == descr.size()) {
    if (auto named = find_name(descr)) return *named;
  }
  if (kind != 'S' && kind != 'U' && kind != 'V') throw_unknown(descr);
  const std::size_t count = parse_width(width, descr);
  if (kind == 'S') return {.dtype = DType::with_descr(kBytes, count, core::format("|S{}", count))};
  if (kind == 'V') return {.dtype = DType::with_descr(kVoid, count, core::format("|V{}", count))};
  return {.dtype = DType::with_descr(kText, count * 4, core::format("<U{}", count)),
          .byte_swapped = swapped && count > 0};
}

std::string npy_descr_in_file_order(const NpyType& type) {
  if (type.has_objects) return "|O";
  const std::string native = type.dtype.numpy_descr();
  if (native.empty()) {
    // A long double is known by its width; the types of ml_dtypes are bytes to NumPy where they are in a structure.
    const std::string name = type.dtype.name();
    return name.starts_with('<') || name.starts_with('>') ? name : core::format("|V{}", type.dtype.itemsize());
  }
  return type.byte_swapped ? '>' + native.substr(1) : native;
}

std::string npy_descr_literal(const DType& dtype) {
  switch (dtype.code()) {
    case kStructured:
      return dtype.numpy_descr();
    case kBFloat16:
      return "'<V2'";
    case kFloat8E4M3FN:
    case kFloat8E5M2:
    case kFloat8E4M3FNUZ:
    case kFloat8E5M2FNUZ:
    case kFloat8E8M0FNU:
      return "'<V1'";
    default:
      break;
  }
  const std::string name = dtype.name();
  const bool long_double = dtype.code() == kOpaque && name.size() == 4 && (name[0] == '<' || name[0] == '>') &&
                           is_long_double(name[1], std::string_view(name).substr(2));
  const std::string descr = long_double ? name : dtype.numpy_descr();
  if (descr.empty()) {
    throw Error(ErrorCode::kUnsupported,
                core::format("NumPy has no type for {}: {}", core::quoted(name), elsewhere(dtype)));
  }
  return python_repr(descr);
}

}  // namespace penstock::format
