#pragma once

/// Arrays in files that have no header: what `numpy.memmap` and `numpy.fromfile` read and `tofile` writes, such as the
/// tokens of a `train.bin`. Such a file does not say what it holds, so you say it. Tokens with a header of their own
/// (Megatron, llm.c) are files of a known format, which `open` and `documents` (documents.h) read.

#include <bit>
#include <cstdint>

#include "penstock/dtype.h"
#include "penstock/flag.h"
#include "penstock/load.h"
#include "penstock/shape.h"
#include "penstock/source.h"
#include "penstock/text_view.h"

namespace penstock {

/// Where an array lies in a file, and what its bytes are.
struct RawLayout {
  /// Any type whose elements have bytes.
  DType dtype = {};
  /// One size may be -1: as many as the rest of the file has. Without any -1 the file may be longer than the array.
  Shape shape = {-1};
  /// Bytes in front of the first element; any number, also one that is no multiple of the element's size.
  std::uint64_t offset = 0;
  /// Whether the first dimension is the one whose elements lie together, as NumPy's order "F".
  Flag fortran_order = false;
  /// The order of the bytes of an element in the file. Loads give values in this machine's.
  std::endian byte_order = std::endian::native;
};

/// The array that lies in the file so, not loaded: load it, slice it, or give it to `rows`. Nothing of the file is
/// read, so its content is not looked at either: a `.npy` is bytes here, its header too. `path` may be a location as of
/// `open_source`. kInvalidArgument for a layout that no file can have. kShapeMismatch says how many bytes are left over
/// where a size of -1 does not divide the rest of the file. kTruncated where the file is shorter than the array.
LazyTensor raw(TextView path, const RawLayout& layout);
/// The same for bytes from elsewhere, such as `memory_source` gives.
LazyTensor raw(Source source, const RawLayout& layout);

}  // namespace penstock
