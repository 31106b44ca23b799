#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "data/sample/layout.h"
#include "penstock/value.h"

namespace penstock::data {

/// What a sample may be, in one place for files and for values of the program: the layout of `content`, whose tensors
/// `tensor` is asked about, in the order of their numbers. `keys`, when not empty, selects keys of the dict at its
/// root. kKeyNotFound; kDTypeMismatch when keys are asked of something else; kUnsupported names the first part that is
/// neither a container, a scalar, a string nor a tensor; kLimit for extreme nesting. `advice` ends these two.
LayoutPtr value_layout(const Value& content, std::span<const std::string> keys,
                       const std::function<TensorLayout(const Value&)>& tensor, std::string_view advice,
                       StructureInterner& interner);

}  // namespace penstock::data
