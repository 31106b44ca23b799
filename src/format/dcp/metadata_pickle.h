#pragma once

// Writes `.metadata`; metadata.h reads it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "penstock/dtype.h"
#include "penstock/shape.h"
#include "penstock/value.h"

namespace penstock::format::dcp {

/// An item of a checkpoint, and where its stream lies.
struct WrittenItem {
  std::string name;
  Value path;  ///< a tuple of strings and integers
  bool is_tensor = false;
  DType dtype;  ///< of a tensor, as is the next
  Shape shape;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// The `Metadata` of torch.distributed.checkpoint, pickled, for items that each are one chunk in `file`.
std::string metadata_pickle(std::span<const WrittenItem> items, std::string_view file);

}  // namespace penstock::format::dcp
