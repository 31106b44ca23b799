#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "data/sample/held_file.h"
#include "data/sample/sample.h"
#include "io/read/resident_pages.h"
#include "penstock/load.h"
#include "penstock/tensor.h"

namespace penstock::data {

/// An array of a file whose parts are samples: a view of the mapped file, a place in it that is read, or loaded.
struct SampleArray {
  Shape shape = {};
  Strides strides = {};
  DType dtype = {};
  Tensor values = {};        ///< undefined: parts are read from `file`
  std::uint64_t offset = 0;  ///< of the first element in `file`
  std::shared_ptr<const HeldFile> file = {};
  std::string key = {};  ///< of the tensor in `file`, empty where it has no name
  bool requires_grad = false;

  /// What a part of it is that has this shape and these strides.
  TensorLayout layout(Shape part, Strides steps) const {
    TensorLayout out(dtype, std::move(part), std::move(steps));
    out.requires_grad = requires_grad;
    return out;
  }

  /// "a.npy", or "a.npz['x']".
  std::string name() const;
  /// Whether it is a tensor of the program's, and no file, of which these bytes behind the first element are there.
  bool is_at_hand(std::uint64_t begin, std::uint64_t bytes, io::ResidentPages& pages) const noexcept {
    return values.defined() && !file->is_file() && pages.hold({values.data() + begin, bytes});
  }
  /// Where the part that begins so many bytes behind the first element is.
  Payload at(std::uint64_t bytes) const {
    if (values.defined()) return {.place = InMapping{values.data() + bytes, file.get()}};
    return {.place = InFile{file.get(), offset + bytes}};
  }
};

/// How the samples of an array are got at.
enum class Access : std::uint8_t { kMapped, kRead };

/// By `mmap` where it is set; else mapped where that many bytes, of all files together, fit into the memory that this
/// process may use. What is mapped and does not fit is read ahead and dropped again before it was looked at.
Access access_for(std::optional<bool> mmap, std::uint64_t bytes);

/// Loads where the bytes are not the values, and maps where parts have gaps within and would be many reads.
SampleArray sample_array(const LazyTensor& lazy, Access access, const std::shared_ptr<const HeldFile>& file);
/// An array in memory, `name` for errors.
SampleArray sample_array(const Tensor& tensor, std::string name);

}  // namespace penstock::data
