#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/sample/layout.h"
#include "penstock/load.h"
#include "penstock/value.h"

namespace penstock::data {

/// What a file's sample is made of: its layout, and for tensor i of it the position of its entry in the file's index.
struct FileSample {
  LayoutPtr layout;
  std::vector<std::uint32_t> entries;
};
/// The sample in a file's content. `keys`, when not empty, selects keys of the dict at its root. kKeyNotFound;
/// kDTypeMismatch when keys are asked of something else; kUnsafe for an array of Python objects; kUnsupported names the
/// first part that is neither a container, a scalar, a string nor a tensor; kLimit for extreme nesting.
FileSample file_sample(const Value& content, std::span<const TensorEntry> entries, std::span<const std::string> keys,
                       StructureInterner& interner);

}  // namespace penstock::data
