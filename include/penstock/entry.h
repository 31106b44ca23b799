#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/buffer.h"
#include "penstock/dtype.h"
#include "penstock/shape.h"

/// What the index of a file says: which tensors there are and where their bytes lie.

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
  /// The device that a `.pt` says it was saved from, "cuda:0"; empty for the CPU and where nothing is said. Never
  /// honoured by Penstock.
  std::string location = {};
  /// Bytes that are already in memory (legacy or inline values); then source and offset tell only where they came from.
  Buffer resident = {};
};

/// One tensor of a file, as its index describes it; no payload. Plain data.
struct TensorEntry {
  std::string name = {};  ///< "encoder.weight"; the path of keys joined with '.' for a nested `.pt`
  DType dtype;
  Shape shape;
  Strides strides;                ///< in elements
  std::size_t storage = 0;        ///< which StorageEntry
  std::uint64_t byte_offset = 0;  ///< of the first element in the storage, after decompression
  bool byte_swapped = false;      ///< stored in the other byte order than this machine's
  bool requires_grad = false;
  bool conjugate = false;  ///< torch's lazy conj bit: applied when loaded
  bool negative = false;   ///< torch's lazy neg bit: applied when loaded
  /// An array of Python objects in an `.npz`: listed (dtype opaque, "object"), but its payload is a pickle, so that
  /// loading it is refused with kUnsafe.
  bool pickled = false;

  /// numel * itemsize, what loading it alone takes.
  std::uint64_t nbytes() const;
};

struct OpenOptions {
  /// Verify recorded CRCs of what is read. Off: wrong ones are not looked at.
  bool verify_checksums = true;
  /// What the byte strings of a `.pt` that Python 2 wrote become: the text that this makes of them (UTF-8), or bytes
  /// where it makes none. What it throws comes out of `open`. Unset: text where they are UTF-8, else bytes.
  std::function<std::optional<std::string>(std::string_view bytes)> decode = {};
  /// Whether a zipped `.pt` that does not record its byte order is big-endian.
  bool big_endian = false;
};

}  // namespace penstock
