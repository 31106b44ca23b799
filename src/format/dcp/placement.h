#pragma once

// Which elements of a tensor a rank has, as the metadata of a checkpoint describes it.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/dcp/metadata.h"
#include "penstock/shape.h"
#include "penstock/value.h"

namespace penstock::format::dcp {

/// A box of a tensor that lies in a rank's own part of it.
struct PlacedBox {
  Box box;       ///< in the whole tensor
  Shape inside;  ///< its first element in the rank's tensor
};

/// A rank's part of a tensor. Parts that were dealt in turns are several boxes.
struct PlacedPart {
  std::optional<Shape> shape;  ///< of the rank's tensor, where it is known
  std::vector<PlacedBox> boxes;
};

/// The ranks that share a tensor, in an array of several dimensions.
class Mesh {
 public:
  /// Of a dict that has `mesh_shape` and `mesh_data`. kCorrupt where they contradict each other.
  Mesh(const Value& described, std::string_view item);

  std::span<const std::int64_t> shape() const { return shape_; }
  /// How many ranks there are.
  std::size_t size() const { return numbers_.size(); }
  /// Where a rank stands. kCorrupt where it does not.
  std::vector<std::int64_t> place_of(std::int64_t rank, std::string_view item) const;

 private:
  std::vector<std::int64_t> shape_;
  std::unordered_map<std::int64_t, std::int64_t> numbers_;
};

/// The part of `rank` of a tensor of `shape` by the placements of a DTensor, one for each dimension of the mesh, which
/// are dicts as torch_checkpointing writes them: Shard, StridedShard, Replicate. kCorrupt where they contradict each
/// other, kUnsupported for other placements, kLimit for parts of very many boxes.
PlacedPart part_of(const Shape& shape, const Mesh& mesh, const Value& placements, std::int64_t rank,
                   std::string_view item);

/// What a dict of the metadata has under a key. kCorrupt where it is missing or of another kind.
Value required_in(const Value& dict, std::string_view key, Value::Kind kind, std::string_view item);
/// The same of numbers of 0 or more in a list or tuple.
std::vector<std::int64_t> sizes_in(const Value& dict, std::string_view key, std::string_view item);

}  // namespace penstock::format::dcp
