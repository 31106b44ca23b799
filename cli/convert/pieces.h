#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "io/file/atomic_file.h"
#include "penstock/dtype.h"
#include "penstock/load.h"

namespace penstock::cli {

/// What becomes of the values on the way: floats, but neither complex numbers nor integers, become `dtype`.
class Conversion {
 public:
  explicit Conversion(std::optional<DType> dtype) : dtype_(std::move(dtype)) {}

  bool is_none() const noexcept { return !dtype_; }
  /// The entries of the file that is written.
  std::vector<TensorEntry> entries(const Archive& archive) const;
  /// A tensor, or a piece of one. Notes how many of its values become infinite.
  Tensor operator()(const Tensor& tensor);
  /// How many values were finite and are not any more.
  std::int64_t overflows() const noexcept { return overflows_; }

 private:
  bool changes(const DType& dtype) const { return dtype_ && dtype.is_floating() && dtype != *dtype_; }

  std::optional<DType> dtype_;
  std::int64_t overflows_ = 0;
};

/// Whether views of the mapped file are its tensors as they are: those that the file does not align would each be read
/// alone, and share no storage any more.
bool can_be_mapped(const Archive& archive);

/// Whether each tensor is one for itself, so that they can be written one after the other without the others. A file
/// that has tensors share their bytes is loaded, because the writer says what it makes of that.
bool is_apart(const Archive& archive);

/// Reads a tensor in pieces, and writes each. Checksums are compared.
void write_tensor(const Archive& archive, std::size_t number, Conversion& conversion, io::ByteSink& sink,
                  const std::stop_token& stop);

}  // namespace penstock::cli
