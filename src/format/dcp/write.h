#pragma once

// What a distributed checkpoint of one process holds: a stream of torch.save for each tensor and each other object of
// the flattened state dict, and the pickle of `.metadata`, which says where they lie.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/unloaded.h"
#include "io/file/output.h"
#include "penstock/entry.h"
#include "penstock/value.h"

namespace penstock::format::dcp {

/// An item of the flattened state dict.
struct Leaf {
  std::string name;
  Value path;   ///< a tuple of the keys that lead to it
  Value value;  ///< a tensor, the entry of one, or what has no tensors in dicts and lists
};

/// Flattens a state dict as torch does: dicts, and lists in which there is a tensor or a dict, are taken apart. Keys
/// become text. A single tensor is called "tensor". An empty dict is an object. kUnsupported for content that is no
/// dict, keys that are neither text nor integers, and two items of one name; kLimit for what nests too deep or grows by
/// sharing.
std::vector<Leaf> flat_leaves(const Value& root);

std::uint64_t tensor_bytes(std::span<const Leaf> leaves, std::span<const TensorEntry> entries);

/// Writes the streams of all items to `sink`, whose file is called `file`, and returns the pickle of `.metadata`.
/// `content` has the tensors that are not loaded. Streams begin at multiples of 64, so that tensors can be mapped.
std::string write_leaves(std::span<const Leaf> leaves, const Unloaded& content, io::ByteSink& sink,
                         std::string_view file);

}  // namespace penstock::format::dcp
