#pragma once

/// The index of a file: which tensors there are and where their bytes lie. Plain data, which Archive::entries and
/// Archive::storages give. Programs that only load need OpenOptions from here, the options of `open`.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/buffer.h"
#include "penstock/dtype.h"
#include "penstock/flag.h"
#include "penstock/shape.h"

namespace penstock {

enum class Compression : std::uint8_t { kNone, kDeflate };

/// A run of bytes in a file that one or more tensors are views of.
struct StorageEntry {
  std::string name = {};     ///< record or tensor name, for errors
  std::uint32_t source = 0;  ///< which of the archive's files
  std::uint64_t offset = 0;  ///< first byte in that file
  std::uint64_t stored_bytes = 0;
  std::uint64_t nbytes = 0;  ///< bytes after decompression
  Compression compression = Compression::kNone;
  std::optional<std::uint32_t> crc32 = {};  ///< of the bytes after decompression, when the file records it
  /// The device that a `.pt` says it was saved from, "cuda:0"; empty for the CPU and where the file does not say.
  /// Penstock does not act on it.
  std::string location = {};
  /// The bytes, when they are in memory already (legacy or inline values); source and offset then only tell where they
  /// came from.
  Buffer resident = {};

  bool is_deflated() const noexcept { return compression != Compression::kNone; }
  /// Whether the file holds the storage's bytes as they are, so that any part of them can be read or mapped.
  bool lies_in_file() const noexcept { return !is_deflated() && !resident; }
};

/// How the bytes of a tensor in a file become its values. A format writes the first three. The last two repeat what the
/// tensor's storage says, so that code that has the entry need not look at the storage.
struct Encoding {
  bool swapped = false;    ///< stored in the other byte order than this machine's; false where a type has no order
  bool conjugate = false;  ///< torch's lazy conj bit: applied when loaded
  bool negative = false;   ///< torch's lazy neg bit: applied when loaded
  bool deflated = false;   ///< the storage is compressed
  bool resident = false;   ///< the storage is already in memory

  /// Whether the bytes in the file are the values: they can be read into place, or mapped.
  bool is_plain() const noexcept { return !changes_elements() && !deflated && !resident; }
  /// Whether each element has to be changed when the bytes of the storage are in memory.
  bool changes_elements() const noexcept { return swapped || has_math_bits(); }
  /// Whether that change is arithmetic, which needs elements of the tensor's type and not bytes alone.
  bool has_math_bits() const noexcept { return conjugate || negative; }

  friend bool operator==(const Encoding&, const Encoding&) = default;
};

/// One tensor of a file, as its index describes it; no payload. Plain data.
struct TensorEntry {
  std::string name = {};  ///< "encoder.weight"; the path of keys joined with '.' for a nested `.pt`
  DType dtype;
  Shape shape;
  Strides strides;                ///< in elements
  std::size_t storage = 0;        ///< which StorageEntry
  std::uint64_t byte_offset = 0;  ///< of the first element in the storage, after decompression
  Encoding encoding = {};
  bool requires_grad = false;
  /// An array of Python objects in an `.npz`. It is listed (dtype opaque, "object"), but its payload is a pickle, so
  /// loading it is kUnsafe.
  bool pickled = false;

  /// numel * itemsize: the memory that loading it alone takes.
  std::uint64_t nbytes() const;
};

struct OpenOptions {
  /// Verify recorded checksums, when the file is opened and in each load from it. LoadOptions::verify is for one load.
  Flag verify = true;
  /// Decodes the byte strings of a `.pt` that Python 2 wrote: returns their text (UTF-8), or nothing to keep them as
  /// bytes. Exceptions that it throws leave `open`. Unset: text where they are UTF-8, else bytes.
  std::function<std::optional<std::string>(std::string_view bytes)> decode = {};
  /// Whether a zipped `.pt` that does not record its byte order is big-endian.
  Flag big_endian = false;
};

}  // namespace penstock
