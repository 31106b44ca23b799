#pragma once

// NumPy's `descr`: the type of an array as `.npy` headers (and pickled NumPy dtypes) write it.

#include <string>
#include <string_view>
#include <vector>

#include "penstock/dtype.h"
#include "penstock/shape.h"

namespace penstock::format {

/// A descr understood. Everything but structures is given in native order with `byte_swapped` apart; a structure keeps
/// the order of each field in its own descr.
struct NpyType {
  DType dtype;
  bool byte_swapped = false;
  /// It holds Python objects, whose payload is a pickle: dtype is opaque with item size 0 and must not be loaded.
  bool has_objects = false;
  /// Of a sub-array type `(descr, shape)`: dimensions that follow the array's own. dtype is the element's.
  Shape inner = {};
  /// `inner` as the descr has it, a sub-array of sub-arrays: the outermost first, those without dimensions left out.
  std::vector<Shape> levels = {};
};

/// Parses the string form of a simple descr: "<f4", "|b1", ">M8[25us]", "<U7", "f8", or a type's name where NumPy
/// writes ml_dtypes so ("bfloat16"). Long double ("<f16", "<c32") is opaque raw bytes. kUnsupported for an unknown
/// type. The error carries only the message: callers add where.
NpyType npy_type_from_string(std::string_view descr);

/// The descr of a type as NumPy would have it in a structure of the file, its byte order included: ">f4", "|O", "|V2"
/// for bfloat16.
std::string npy_descr_in_file_order(const NpyType& type);

/// The descr by which `.npy` files hold `dtype`, as a Python literal: "'<f4'", "[('a', '<f4')]", "'<V2'" for bfloat16.
/// kUnsupported for types that NumPy has no form of.
std::string npy_descr_literal(const DType& dtype);

}  // namespace penstock::format
