#pragma once

// What the `.metadata` of a distributed checkpoint says, as plain data. docs/formats/dcp.md describes it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/dtype.h"
#include "penstock/shape.h"
#include "penstock/value.h"

namespace penstock::format::dcp {

/// A run of bytes of a file beside `.metadata`: one stream of torch.save.
struct StreamSpan {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// A box of a tensor's elements.
struct Box {
  Shape at;  ///< of its first element
  Shape shape;
};

struct Chunk {
  Box box;
  StreamSpan place;
};

/// An entry of the flattened state dict.
struct Item {
  std::string name;
  bool is_tensor = false;
  DType dtype;  ///< of a tensor, as is the next
  Shape shape;
  std::vector<Chunk> chunks;  ///< of any other object there is one, and its box says nothing
};

struct Metadata {
  std::vector<Item> items;  ///< in the order of the state dict
  /// The keys that lead to an item in the nested state dict, by its name: a tuple of strings and integers. Items that
  /// are not in it have their name as key.
  std::vector<std::pair<std::string, Value>> paths;
};

/// Whether a file that begins with `head` is such a pickle.
bool is_metadata(std::span<const std::byte> head) noexcept;

/// Reads the pickle, of which nothing is run. `path` is for errors. kCorrupt where something is missing or of another
/// type, kUnsupported for streams that are compressed or encrypted, kLimit.
Metadata read_metadata(std::span<const std::byte> pickle, std::string_view path);

}  // namespace penstock::format::dcp
