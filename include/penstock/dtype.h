#pragma once

/// The element type of a tensor, with NumPy's and PyTorch's names: `DType::float32`. Start at the constants of DType.

#include <complex>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "penstock/half.h"
#include "penstock/standard.h"
#include "penstock/text_view.h"

namespace penstock {

/// The element type of a tensor: a small value. Names are those of NumPy and PyTorch ("float32", "bfloat16",
/// "float8_e4m3fn"). Types of variable width (text, raw bytes, dates, structures) carry their NumPy `descr` besides the
/// code; sub-byte and unknown types are *opaque*: they can be listed, sliced by whole bytes and copied, not computed
/// with. Thread-safe: immutable after construction.
class DType {
 public:
  enum class Code : std::uint8_t {
    kBool,
    kUInt8,
    kUInt16,
    kUInt32,
    kUInt64,
    kInt8,
    kInt16,
    kInt32,
    kInt64,
    kFloat16,
    kBFloat16,
    kFloat32,
    kFloat64,
    kComplex32,  ///< two float16
    kComplex64,
    kComplex128,
    kFloat8E4M3FN,
    kFloat8E5M2,
    kFloat8E4M3FNUZ,
    kFloat8E5M2FNUZ,
    kFloat8E8M0FNU,
    // Quantized integers as PyTorch stores them; the scale lies in the tensor's attributes.
    kQInt8,
    kQUInt8,
    kQInt32,
    kQUInt4x2,  ///< two values in a byte
    kQUInt2x4,  ///< four values in a byte
    kBits8,
    kBits16,
    // Packed small types, whole bytes of them.
    kFloat4E2M1FNx2,  ///< two values in a byte
    kFloat6E2M3,      ///< safetensors F6_E2M3; four values in three bytes
    kFloat6E3M2,      ///< safetensors F6_E3M2; four values in three bytes
    // NumPy kinds with a descr.
    kBytes,        ///< S: fixed-length bytes
    kText,         ///< U: fixed-length UCS-4
    kVoid,         ///< V: raw bytes
    kDateTime64,   ///< M8[unit]
    kTimeDelta64,  ///< m8[unit]
    kStructured,   ///< records; descr is NumPy's list, byte orders kept as in the file
    kOpaque,       ///< known by name only
  };

  /// float32.
  constexpr DType() noexcept = default;
  /// A type that its code alone determines. Codes with a descr (kBytes ... kOpaque) need `with_descr`.
  constexpr DType(Code code) noexcept;  // NOLINT(google-explicit-constructor): a code *is* a type
  DType(const DType&) = default;
  DType(DType&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  DType& operator=(const DType&) & = default;
  DType& operator=(DType&&) & noexcept = default;
  ~DType() = default;

  /// The type of a C++ type: bool, integers of any name but characters, float16, bfloat16, float, double, and
  /// std::complex of the last two. Others do not compile.
  template <class T>
  static DType of() noexcept;
  /// A NumPy kind or opaque type. `itemsize` in bytes; `descr` as NumPy writes it, native byte order for everything
  /// but kStructured ("<U5", "|S3", "<M8[ns]", "[('a', '<f4'), ('b', '>i2')]"), or the foreign name for kOpaque.
  static DType with_descr(Code code, std::size_t itemsize, std::string descr);
  /// The type that NumPy or PyTorch calls `name` ("float32", "torch.float32", "half", and "bf16"), or nothing.
  static std::optional<DType> from_name(TextView name) noexcept;

  constexpr Code code() const noexcept { return code_; }
  /// Bytes of an element. An element of a packed type holds several values. 0 is legal for NumPy's empty text and void
  /// types.
  constexpr std::size_t itemsize() const noexcept { return itemsize_; }
  /// Bits of a value: itemsize() * 8, or less for packed types (4 for float4, 6 for float6).
  std::size_t bits() const noexcept;
  /// "float32", "str160", "datetime64[ns]", or the descr of a structure.
  const std::string name() const;
  /// NumPy's descr in native order ("<f4", "|b1"); empty where NumPy has no such type.
  const std::string numpy_descr() const;
  /// How many bytes are reversed together when the byte order changes: 4 for complex64 and text, 1 when nothing
  /// changes.
  std::size_t swap_width() const noexcept;

  bool is_floating() const noexcept;  ///< float16 ... float64, bfloat16, float8
  bool is_complex() const noexcept;
  bool is_integer() const noexcept;  ///< signed and unsigned, not bool, not quantized
  bool is_signed() const noexcept;
  /// True where Penstock converts values: bool, integers, floats, complex.
  bool is_numeric() const noexcept;

  friend bool operator==(const DType& a, const DType& b) noexcept;
  /// Equal for equal types; std::hash<DType> gives it.
  std::size_t hash() const noexcept;

  static const DType boolean, uint8, uint16, uint32, uint64, int8, int16, int32, int64;
  static const DType float16, bfloat16, float32, float64, complex32, complex64, complex128;
  static const DType float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu;

 private:
  static constexpr std::uint32_t itemsize_of(Code code) noexcept;

  Code code_ = Code::kFloat32;
  std::uint32_t itemsize_ = 4;
  std::shared_ptr<const std::string> descr_;
};

std::ostream& operator<<(std::ostream& out, const DType& dtype);

constexpr std::uint32_t DType::itemsize_of(Code code) noexcept {
  switch (code) {
    case Code::kUInt16:
    case Code::kInt16:
    case Code::kFloat16:
    case Code::kBFloat16:
    case Code::kBits16:
      return 2;
    case Code::kUInt32:
    case Code::kInt32:
    case Code::kFloat32:
    case Code::kComplex32:
    case Code::kQInt32:
      return 4;
    case Code::kFloat6E2M3:
    case Code::kFloat6E3M2:
      return 3;
    case Code::kUInt64:
    case Code::kInt64:
    case Code::kFloat64:
    case Code::kComplex64:
    case Code::kDateTime64:
    case Code::kTimeDelta64:
      return 8;
    case Code::kComplex128:
      return 16;
    case Code::kBytes:
    case Code::kText:
    case Code::kVoid:
    case Code::kStructured:
    case Code::kOpaque:
      return 0;
    case Code::kBool:
    case Code::kUInt8:
    case Code::kInt8:
    case Code::kFloat8E4M3FN:
    case Code::kFloat8E5M2:
    case Code::kFloat8E4M3FNUZ:
    case Code::kFloat8E5M2FNUZ:
    case Code::kFloat8E8M0FNU:
    case Code::kQInt8:
    case Code::kQUInt8:
    case Code::kQUInt4x2:
    case Code::kQUInt2x4:
    case Code::kBits8:
    case Code::kFloat4E2M1FNx2:
      break;
  }
  return 1;
}

constexpr DType::DType(Code code) noexcept : code_(code), itemsize_(itemsize_of(code)) {}

template <class Type>
DType DType::of() noexcept {
  using T = std::remove_cv_t<Type>;
  constexpr bool character = std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> ||
                             std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;
  if constexpr (std::is_same_v<T, bool>) {
    return Code::kBool;
  } else if constexpr (std::is_integral_v<T> && !character) {
    constexpr std::size_t bytes = sizeof(T);
    static_assert(bytes <= 8, "no DType corresponds to this C++ type");
    if constexpr (std::is_signed_v<T>) {
      return bytes == 1 ? Code::kInt8 : bytes == 2 ? Code::kInt16 : bytes == 4 ? Code::kInt32 : Code::kInt64;
    } else {
      return bytes == 1 ? Code::kUInt8 : bytes == 2 ? Code::kUInt16 : bytes == 4 ? Code::kUInt32 : Code::kUInt64;
    }
  } else if constexpr (std::is_same_v<T, penstock::float16>) {
    return Code::kFloat16;
  } else if constexpr (std::is_same_v<T, penstock::bfloat16>) {
    return Code::kBFloat16;
  } else if constexpr (std::is_same_v<T, float>) {
    return Code::kFloat32;
  } else if constexpr (std::is_same_v<T, double>) {
    return Code::kFloat64;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return Code::kComplex64;
  } else {
    static_assert(std::is_same_v<T, std::complex<double>>, "no DType corresponds to this C++ type");
    return Code::kComplex128;
  }
}

inline constinit const DType DType::boolean{Code::kBool};
inline constinit const DType DType::uint8{Code::kUInt8};
inline constinit const DType DType::uint16{Code::kUInt16};
inline constinit const DType DType::uint32{Code::kUInt32};
inline constinit const DType DType::uint64{Code::kUInt64};
inline constinit const DType DType::int8{Code::kInt8};
inline constinit const DType DType::int16{Code::kInt16};
inline constinit const DType DType::int32{Code::kInt32};
inline constinit const DType DType::int64{Code::kInt64};
inline constinit const DType DType::float16{Code::kFloat16};
inline constinit const DType DType::bfloat16{Code::kBFloat16};
inline constinit const DType DType::float32{Code::kFloat32};
inline constinit const DType DType::float64{Code::kFloat64};
inline constinit const DType DType::complex32{Code::kComplex32};
inline constinit const DType DType::complex64{Code::kComplex64};
inline constinit const DType DType::complex128{Code::kComplex128};
inline constinit const DType DType::float8_e4m3fn{Code::kFloat8E4M3FN};
inline constinit const DType DType::float8_e5m2{Code::kFloat8E5M2};
inline constinit const DType DType::float8_e4m3fnuz{Code::kFloat8E4M3FNUZ};
inline constinit const DType DType::float8_e5m2fnuz{Code::kFloat8E5M2FNUZ};
inline constinit const DType DType::float8_e8m0fnu{Code::kFloat8E8M0FNU};

}  // namespace penstock

template <>
struct std::hash<penstock::DType> {
  std::size_t operator()(const penstock::DType& dtype) const noexcept { return dtype.hash(); }
};
