#pragma once

// Slices as users type them, for `cat`, `show` and `convert`.

#include <cstdint>
#include <string_view>
#include <vector>

#include "penstock/load.h"

namespace penstock::cli {

struct Arguments;

/// What a slice does to one dimension, or to those that "..." stands for.
struct SlicePart {
  enum class Kind : std::uint8_t { kIndex, kRange, kEllipsis };
  Kind kind = Kind::kEllipsis;
  std::int64_t start = 0;  ///< or the index
  std::int64_t stop = 0;
  std::int64_t step = 1;
};

/// The parts of text in Python's notation, "0:4,:,2", "-1", "...,0", "::2". kInvalidArgument names the part that is
/// wrong: steps below 1 are.
std::vector<SlicePart> parse_slice(std::string_view text);
/// Narrows `tensor`; kInvalidArgument for more parts than it has dimensions, kIndexOutOfRange. Reads nothing.
LazyTensor apply_slice(LazyTensor tensor, const std::vector<SlicePart>& parts);

/// --slice SLICE, parsed; what is wrong in it is wrong usage.
void take_slice(Arguments& arguments, std::vector<SlicePart>& slice);

}  // namespace penstock::cli
