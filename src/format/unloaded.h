#pragma once

// How a file is written whose tensors are never in memory together: a conversion of a checkpoint larger than the
// machine. archive/unloaded.h brings the bytes.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "io/file/atomic_file.h"
#include "penstock/entry.h"
#include "penstock/value.h"

namespace penstock::format {

/// Writes the bytes of a storage of the file that is written, in this machine's byte order.
using WritePayload = std::function<void(std::size_t storage, io::ByteSink& sink)>;

/// A value whose tensors are not loaded. Their bytes are asked for one storage after the other, so that a file of any
/// size is written in little memory.
struct Unloaded {
  Value structure = {};  ///< its tensors are Value::entry(i)
  /// How each tensor lies in the storages that are written: dtype, shape, strides, storage and byte_offset say it; the
  /// rest is not looked at, but for requires_grad. Of a format without storages (Format::has_storages) each tensor has
  /// one for itself, from its first byte to its last, in C order. For `.npy` and `.npz` Fortran order will do, too.
  std::vector<TensorEntry> entries = {};
  std::vector<std::uint64_t> storage_bytes = {};
  WritePayload payload = {};
};

/// What a writer asks of a tensor, loaded or not.
struct TensorFacts {
  DType dtype;
  Shape shape;
  Strides strides;
  std::uint64_t nbytes = 0;
  bool requires_grad = false;
};

/// `entries`: of those that are not loaded. Of others that are not, the error of Value::as_tensor.
TensorFacts facts_of(const Value& tensor, std::span<const TensorEntry> entries);

}  // namespace penstock::format
