#pragma once

// Arrays for the tests of `.npy` and `.npz`.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"
#include "format/zip/inflate.h"
#include "io/copy/crc32.h"
#include "ops/kernels.h"
#include "penstock/tensor.h"
#include "support/bytes.h"
#include "support/files.h"

namespace penstock::test {

/// Entry `i` of an index, loaded the plain way.
inline Tensor load_entry(const format::Index& index, std::size_t i) {
  const TensorEntry& entry = index.entries.at(i);
  const StorageEntry& storage = index.storages.at(entry.storage);
  const ByteSource& source = *index.sources.at(storage.source);
  std::vector<std::byte> stored(storage.stored_bytes);
  source.read(storage.offset, stored);
  Buffer bytes = Buffer::allocate(storage.nbytes);
  const std::span<std::byte> to(bytes.data(), bytes.size());
  if (storage.is_deflated()) {
    format::inflate(stored, to, source.name(), storage.name);
  } else {
    std::copy(stored.begin(), stored.end(), to.begin());
  }
  if (storage.crc32) {
    EXPECT_EQ(io::crc32(0, to), *storage.crc32) << storage.name;
  }
  if (entry.encoding.swapped) {
    const std::size_t payload = static_cast<std::size_t>(entry.shape.numel()) * entry.dtype.itemsize();
    ops::swap_bytes(to.subspan(entry.byte_offset, payload), entry.dtype.swap_width());
  }
  return {std::move(bytes), entry.dtype, entry.shape, entry.strides, entry.byte_offset};
}

/// A contiguous tensor of bytes that differ from each other.
inline Tensor numbered(const DType& dtype, const Shape& shape) {
  Tensor out = Tensor::empty(shape, dtype);
  const std::vector<std::byte> bytes = numbered_bytes(out.nbytes());
  std::copy(bytes.begin(), bytes.end(), out.data());
  return out;
}

/// The types that NumPy has, of every kind.
inline std::vector<DType> numpy_dtypes() {
  using enum DType::Code;
  std::vector<DType> out;
  for (const DType::Code code : {kBool, kUInt8, kUInt16, kUInt32, kUInt64, kInt8, kInt16, kInt32, kInt64, kFloat16,
                                 kFloat32, kFloat64, kComplex64, kComplex128}) {
    out.emplace_back(code);
  }
  out.push_back(DType::with_descr(kBytes, 3, "|S3"));
  out.push_back(DType::with_descr(kBytes, 0, "|S0"));
  out.push_back(DType::with_descr(kText, 20, "<U5"));
  out.push_back(DType::with_descr(kVoid, 7, "|V7"));
  out.push_back(DType::with_descr(kDateTime64, 8, "<M8[25us]"));
  out.push_back(DType::with_descr(kTimeDelta64, 8, "<m8[ns]"));
  out.push_back(DType::with_descr(kStructured, 14, "[('a', '<f4'), ('', '|V2'), ('b', '>i2', (2, 2))]"));
  out.push_back(DType::with_descr(kOpaque, 16, "<f16"));
  return out;
}

inline std::string written(const format::Format& format, const Value& value, const SaveOptions& options = {}) {
  StringSink sink;
  format.write(value, sink, options, "out");
  return sink.text;
}

}  // namespace penstock::test
