#pragma once

// The header of a `.npy` file: magic, version, and a Python literal, read by a strict parser. docs/formats/npy.md.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/text/npy_dtype.h"
#include "penstock/dtype.h"
#include "penstock/shape.h"

namespace penstock::format {

/// NumPy refuses headers beyond 10,000 characters unless told otherwise; wide structured types need more.
inline constexpr std::size_t kMaxNpyHeader = 1 << 20;
/// Magic, version and length: what npy_header_size looks at.
inline constexpr std::size_t kNpyPrefix = 12;

struct NpyHeader {
  DType dtype;
  bool byte_swapped = false;
  bool fortran_order = false;
  bool python2 = false;       ///< integers are written as Python 2 writes long ones
  bool has_objects = false;   ///< the payload is a pickle
  Shape shape;                ///< sub-array dimensions included
  Strides strides;            ///< in elements
  std::size_t size = 0;       ///< bytes of the header: where the payload starts
  std::uint64_t payload = 0;  ///< bytes of the payload; 0 when it is a pickle
};

/// True when `head` begins with the magic.
bool is_npy(std::span<const std::byte> head) noexcept;

/// Bytes of the whole header, when `head` (kNpyPrefix bytes tell) begins with one that parse_npy_header may accept.
std::optional<std::size_t> npy_header_size(std::span<const std::byte> head) noexcept;

/// Parses the header that `head` begins with; what follows it is not looked at. kTruncated when `head` ends inside it,
/// kCorrupt for what is not exactly the dict that NumPy's rules ask for, kUnsupported for an unknown type or version,
/// kLimit for a shape or nesting beyond bounds. `path` and, for a member, `record` are for errors, `base` is the file
/// offset of `head`. About a microsecond; allocates only for types with a descr and for more than Shape::kInline
/// dimensions.
NpyHeader parse_npy_header(std::span<const std::byte> head, std::string_view path, std::string_view record = {},
                           std::uint64_t base = 0);

/// The header NumPy would write: version 1.0, or 2.0 when it is too long for that, or 3.0 when a field's name needs
/// UTF-8; padded so that the payload is 64-aligned. kUnsupported for a dtype that NumPy has no form of.
std::string make_npy_header(const DType& dtype, const Shape& shape, bool fortran_order);

}  // namespace penstock::format
