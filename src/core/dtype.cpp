// All that is known of element types is one table, whose order is that of DType::Code, so that a code is its own index.
// HACKING.md says where else a new type is entered.

#include "penstock/dtype.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <ostream>
#include <span>

#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using enum DType::Code;

enum class Kind : std::uint8_t { kBoolean, kSigned, kUnsigned, kFloating, kComplexNumber, kPacked, kDescribed };

struct Row {
  DType::Code code;
  std::string_view name;   ///< for kinds with a descr: NumPy's name without its width or unit
  std::string_view descr;  ///< NumPy's, native order; empty where NumPy has no such type
  Kind kind;
  std::uint8_t swap_width;
  std::uint8_t bits;  ///< 0: itemsize * 8
};

// In the order of the enumeration, so that a code is its own index.
constexpr std::array kTypes = std::to_array<Row>({
    {kBool, "bool", "|b1", Kind::kBoolean, 1, 0},
    {kUInt8, "uint8", "|u1", Kind::kUnsigned, 1, 0},
    {kUInt16, "uint16", "<u2", Kind::kUnsigned, 2, 0},
    {kUInt32, "uint32", "<u4", Kind::kUnsigned, 4, 0},
    {kUInt64, "uint64", "<u8", Kind::kUnsigned, 8, 0},
    {kInt8, "int8", "|i1", Kind::kSigned, 1, 0},
    {kInt16, "int16", "<i2", Kind::kSigned, 2, 0},
    {kInt32, "int32", "<i4", Kind::kSigned, 4, 0},
    {kInt64, "int64", "<i8", Kind::kSigned, 8, 0},
    {kFloat16, "float16", "<f2", Kind::kFloating, 2, 0},
    {kBFloat16, "bfloat16", "", Kind::kFloating, 2, 0},
    {kFloat32, "float32", "<f4", Kind::kFloating, 4, 0},
    {kFloat64, "float64", "<f8", Kind::kFloating, 8, 0},
    {kComplex32, "complex32", "", Kind::kComplexNumber, 2, 0},
    {kComplex64, "complex64", "<c8", Kind::kComplexNumber, 4, 0},
    {kComplex128, "complex128", "<c16", Kind::kComplexNumber, 8, 0},
    {kFloat8E4M3FN, "float8_e4m3fn", "", Kind::kFloating, 1, 0},
    {kFloat8E5M2, "float8_e5m2", "", Kind::kFloating, 1, 0},
    {kFloat8E4M3FNUZ, "float8_e4m3fnuz", "", Kind::kFloating, 1, 0},
    {kFloat8E5M2FNUZ, "float8_e5m2fnuz", "", Kind::kFloating, 1, 0},
    {kFloat8E8M0FNU, "float8_e8m0fnu", "", Kind::kFloating, 1, 0},
    {kQInt8, "qint8", "", Kind::kPacked, 1, 0},
    {kQUInt8, "quint8", "", Kind::kPacked, 1, 0},
    {kQInt32, "qint32", "", Kind::kPacked, 4, 0},
    {kQUInt4x2, "quint4x2", "", Kind::kPacked, 1, 4},
    {kQUInt2x4, "quint2x4", "", Kind::kPacked, 1, 2},
    {kBits8, "bits8", "", Kind::kPacked, 1, 0},
    {kBits16, "bits16", "", Kind::kPacked, 2, 0},
    {kFloat4E2M1FNx2, "float4_e2m1fn_x2", "", Kind::kPacked, 1, 4},
    {kFloat6E2M3, "float6_e2m3fn", "", Kind::kPacked, 1, 6},
    {kFloat6E3M2, "float6_e3m2fn", "", Kind::kPacked, 1, 6},
    {kBytes, "bytes", "|S0", Kind::kDescribed, 1, 0},
    {kText, "str", "<U0", Kind::kDescribed, 4, 0},
    {kVoid, "void", "|V0", Kind::kDescribed, 1, 0},
    {kDateTime64, "datetime64", "<M8", Kind::kDescribed, 8, 0},
    {kTimeDelta64, "timedelta64", "<m8", Kind::kDescribed, 8, 0},
    {kStructured, "structured", "", Kind::kDescribed, 1, 0},
    {kOpaque, "opaque", "", Kind::kDescribed, 1, 0},
});

constexpr bool has_each_type() {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].code != static_cast<DType::Code>(i)) return false;
  }
  return kTypes.back().code == kOpaque;
}
static_assert(has_each_type(), "one row for each DType::Code, in its order");

struct Alias {
  std::string_view name;
  DType::Code code;
};

constexpr std::array kAliases = std::to_array<Alias>({
    {"half", kFloat16},
    {"single", kFloat32},
    {"double", kFloat64},
    {"chalf", kComplex32},
    {"cfloat", kComplex64},
    {"csingle", kComplex64},
    {"cdouble", kComplex128},
    {"short", kInt16},
    {"long", kInt64},
    {"bool_", kBool},
    {"bf16", kBFloat16},
    {"fp16", kFloat16},
    {"fp32", kFloat32},
    {"fp64", kFloat64},
});

// NumPy gives these two other widths, so they count only behind "torch.".
constexpr std::array kTorchAliases = std::to_array<Alias>({{"float", kFloat32}, {"int", kInt32}});

const Row& row_of(DType::Code code) noexcept { return kTypes[static_cast<std::size_t>(code)]; }

std::optional<DType> find_alias(std::span<const Alias> aliases, std::string_view name) noexcept {
  for (const Alias& alias : aliases) {
    if (alias.name == name) return DType(alias.code);
  }
  return std::nullopt;
}

/// "f4", "<f4", "=f4", "|u1".
std::optional<DType> find_descr(std::string_view text) noexcept {
  if (!text.empty() && std::string_view("<|=").find(text.front()) != std::string_view::npos) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  for (const Row& row : kTypes) {
    if (row.kind != Kind::kDescribed && !row.descr.empty() && row.descr.substr(1) == text) return DType(row.code);
  }
  return std::nullopt;
}

}  // namespace

DType DType::with_descr(Code code, std::size_t itemsize, std::string descr) {
  if (row_of(code).kind != Kind::kDescribed) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("{} has a fixed layout and takes no descr", row_of(code).name));
  }
  if (itemsize > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::kLimit, core::format("elements of type {} are {} wide; less than 4 GiB is supported",
                                                core::quoted(descr), core::format_bytes(itemsize)));
  }
  DType out(code);
  out.itemsize_ = static_cast<std::uint32_t>(itemsize);
  out.descr_ = std::make_shared<const std::string>(std::move(descr));
  return out;
}

std::optional<DType> DType::from_name(TextView given) noexcept {
  std::string_view name = given;
  constexpr std::string_view kTorch = "torch.";
  const bool torch = name.starts_with(kTorch);
  if (torch) name.remove_prefix(kTorch.size());
  for (const Row& row : kTypes) {
    if (row.kind != Kind::kDescribed && row.name == name) return DType(row.code);
  }
  if (auto found = find_alias(kAliases, name)) return found;
  return torch ? find_alias(kTorchAliases, name) : find_descr(name);
}

std::size_t DType::bits() const noexcept {
  const std::size_t bits = row_of(code_).bits;
  return bits != 0 ? bits : itemsize() * 8;
}

const std::string DType::name() const {
  const Row& row = row_of(code_);
  switch (code_) {
    case kBytes:
    case kText:
    case kVoid:
      return itemsize_ == 0 ? std::string(row.name) : core::format("{}{}", row.name, bits());
    case kDateTime64:
    case kTimeDelta64: {
      const std::size_t unit = descr_ ? descr_->find('[') : std::string::npos;
      return std::string(row.name) + (unit == std::string::npos ? "" : descr_->substr(unit));
    }
    case kStructured:
    case kOpaque:
      return descr_ ? *descr_ : std::string(row.name);
    default:
      return std::string(row.name);
  }
}

const std::string DType::numpy_descr() const {
  if (code_ == kOpaque) return {};
  return descr_ ? *descr_ : std::string(row_of(code_).descr);
}

std::size_t DType::swap_width() const noexcept { return row_of(code_).swap_width; }

bool DType::is_floating() const noexcept { return row_of(code_).kind == Kind::kFloating; }

bool DType::is_complex() const noexcept { return row_of(code_).kind == Kind::kComplexNumber; }

bool DType::is_integer() const noexcept {
  const Kind kind = row_of(code_).kind;
  return kind == Kind::kSigned || kind == Kind::kUnsigned;
}

bool DType::is_signed() const noexcept {
  const Kind kind = row_of(code_).kind;
  if (code_ == kFloat8E8M0FNU) return false;
  return kind == Kind::kSigned || kind == Kind::kFloating || kind == Kind::kComplexNumber || code_ == kQInt8 ||
         code_ == kQInt32 || code_ == kTimeDelta64;
}

bool DType::is_numeric() const noexcept {
  const Kind kind = row_of(code_).kind;
  return kind != Kind::kPacked && kind != Kind::kDescribed;
}

bool operator==(const DType& a, const DType& b) noexcept {
  if (a.code_ != b.code_ || a.itemsize_ != b.itemsize_) return false;
  if (a.descr_ == b.descr_) return true;
  return a.descr_ && b.descr_ && *a.descr_ == *b.descr_;
}

std::size_t DType::hash() const noexcept {
  const std::size_t text = descr_ ? std::hash<std::string>()(*descr_) : 0;
  return text * 31 + itemsize_ * 256 + static_cast<std::size_t>(code_);
}

std::ostream& operator<<(std::ostream& out, const DType& dtype) { return out << dtype.name(); }

}  // namespace penstock
