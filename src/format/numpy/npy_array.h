#pragma once

// What `.npy` and `.npz` share.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "format/numpy/npy_header.h"
#include "penstock/entry.h"
#include "penstock/tensor.h"

namespace penstock::format {

/// This many bytes from the start of an array's file cover most headers; only long structures have longer ones.
inline constexpr std::size_t kUsualNpyHeader = 512;

/// Fills `out` with the first bytes of an array's file and returns how many there were.
using NpyHead = std::function<std::size_t(std::span<std::byte> out)>;

/// Parses the header of an array of `bytes` bytes whose file offset is `base`. `start` are its first bytes,
/// kUsualNpyHeader or all; `head` is called when the header is longer. Errors as parse_npy_header; kTruncated when the
/// payload does not fit in `bytes`.
NpyHeader read_npy_header(std::span<const std::byte> start, const NpyHead& head, std::uint64_t bytes,
                          std::string_view path, std::string_view record = {}, std::uint64_t base = 0);

/// The entry of an array; name and storage are left to the caller.
TensorEntry npy_entry(const NpyHeader& header);

/// The header of a tensor that is not loaded, which lies in C or Fortran order.
std::string npy_header_of(const TensorEntry& entry);

/// A tensor as a `.npy` file holds it: `header`, then `payload`, which `tensor` keeps alive. Fortran order is kept
/// where the tensor has it.
struct NpyImage {
  explicit NpyImage(const Tensor& value);

  std::string header;
  Tensor tensor;
  std::span<const std::byte> payload;
};

}  // namespace penstock::format
