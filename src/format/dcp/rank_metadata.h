#pragma once

// What the `metadata.pkl` of a folder of torch_checkpointing says, as plain data. docs/formats/dcp.md describes it.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/dcp/placement.h"
#include "penstock/shape.h"

namespace penstock::format::dcp {

/// Where a value lies in nested content, as one text: two places differ in it where they differ at all.
class PlaceText {
 public:
  void add_key(std::string_view key) { (text_ += 'k').append(key) += '\0'; }
  void add_number(std::int64_t number) { (text_ += 'n').append(std::to_string(number)) += '\0'; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A tensor, of which each of some ranks has a part.
struct RankedTensor {
  std::string place;  ///< in its item: a PlaceText
  std::string name;   ///< in its item: keys joined by '.'
  std::string dtype;  ///< "float32"
  Shape shape;
  std::vector<std::pair<std::int64_t, PlacedPart>> parts;  ///< by rank; ranks that have the same elements are left out
};

/// An entry of the checkpoint, such as "model". Each rank has its part in a file of its own.
struct RankedItem {
  std::string name;
  std::map<std::int64_t, std::string> files;  ///< of the ranks that have some of it
  std::vector<RankedTensor> tensors;
};

/// Reads the pickle, of which nothing is run. kCorrupt where something is missing or of another type, kUnsupported for
/// what neither DTensor nor CheckpointableTensor describes, kLimit. Errors have no path.
std::vector<RankedItem> read_rank_metadata(std::span<const std::byte> pickle);

}  // namespace penstock::format::dcp
