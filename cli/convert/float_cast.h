#pragma once

// `penstock convert --dtype`: what becomes of values on the way (archive/unloaded.h calls it piece by piece).

#include <cstdint>
#include <optional>

#include "archive/unloaded.h"
#include "penstock/dtype.h"
#include "penstock/tensor.h"

namespace penstock::cli {

/// What becomes of the values on the way: floats, but neither complex numbers nor integers, become `dtype`.
class FloatCast final : public archive::ElementChange {
 public:
  explicit FloatCast(std::optional<DType> dtype) : dtype_(std::move(dtype)) {}

  bool is_none() const noexcept { return !dtype_; }
  DType type_of(const DType& dtype) const override;
  /// Notes how many of its values become infinite.
  Tensor operator()(const Tensor& tensor) override;
  /// How many values were finite and are not any more.
  std::int64_t overflows() const noexcept { return overflows_; }

 private:
  bool changes(const DType& dtype) const { return dtype_ && dtype.is_floating() && dtype != *dtype_; }

  std::optional<DType> dtype_;
  std::int64_t overflows_ = 0;
};

}  // namespace penstock::cli
