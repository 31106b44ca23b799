// One array as a `.npy` holds it, which is a file of its own, a member of an `.npz`, or written piece by piece.

#include "format/numpy/npy_array.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "core/view.h"
#include "penstock/error.h"

namespace penstock::format {

NpyHeader read_npy_header(std::span<const std::byte> start, const NpyHead& head, std::uint64_t bytes,
                          std::string_view path, std::string_view record, std::uint64_t base) {
  std::vector<std::byte> longer;
  const std::optional<std::size_t> size = npy_header_size(start);
  if (size && *size > start.size()) {
    longer.resize(std::min<std::uint64_t>(bytes, *size));
    start = std::span(longer).first(head(longer));
  }
  NpyHeader header = parse_npy_header(start, path, record, base);
  if (header.payload > bytes - header.size) {
    throw Error(
        ErrorCode::kTruncated,
        core::format(
            "the array of shape {} takes {}, but {} follow its header: the file was cut short; fetch or write it again",
            header.shape.to_string(), core::counted(header.payload, "byte"), bytes - header.size),
        {std::string(path), base + header.size, std::string(record)});
  }
  return header;
}

TensorEntry npy_entry(const NpyHeader& header) {
  return {.dtype = header.dtype,
          .shape = header.shape,
          .strides = header.strides,
          .encoding = {.swapped = header.byte_swapped},
          .pickled = header.has_objects};
}

std::string npy_header_of(const TensorEntry& entry) {
  return make_npy_header(entry.dtype, entry.shape, core::is_fortran_order(entry.shape, entry.strides));
}

NpyImage::NpyImage(const Tensor& value) : tensor(value.to(Device{})) {
  const bool fortran = core::is_fortran_order(tensor.shape(), tensor.strides());
  if (!fortran) tensor = tensor.contiguous();
  header = make_npy_header(tensor.dtype(), tensor.shape(), fortran);
  payload = {tensor.data(), tensor.nbytes()};
}

}  // namespace penstock::format
