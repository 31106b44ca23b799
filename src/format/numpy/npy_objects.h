#pragma once

// Arrays of Python objects, whose payload is a pickle. It is read by the machine of `.pt`, which runs nothing.

#include <cstddef>
#include <span>
#include <string_view>

#include "format/file_bytes.h"
#include "format/format.h"
#include "format/numpy/npy_header.h"
#include "format/pt/pickle/pickle_vm.h"

namespace penstock::format {

/// What the pickle `bytes` holds, which follows `header`: nested lists in the array's shape, with the type name
/// pickle::kObjectsName and the shape as state; of an array without dimensions its only object, unless that is such a
/// list. Numeric arrays in it become entries of `index`, named by the way to them behind `prefix`. `base` is the offset
/// of bytes[0], for errors. What stands behind the pickle is left alone. kCorrupt, kLimit, kUnsafe as any pickle, and
/// kTruncated where `bytes` ends inside it.
Value read_objects(std::span<const std::byte> bytes, std::uint64_t base, const NpyHeader& header,
                   std::string_view prefix, const pickle::Limits& limits, const OpenOptions& options, Index& index);

}  // namespace penstock::format
