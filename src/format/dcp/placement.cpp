// A dimension of a rank's part is a list of runs: whole numbers that follow each other in the tensor. Each placement
// cuts the list of its dimension as torch cuts tensors (torch.chunk, so the last parts are shorter or empty). The boxes
// are all combinations of the dimensions' runs.

#include "format/dcp/placement.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "core/format.h"
#include "core/text.h"
#include "format/dcp/item_error.h"

namespace penstock::format::dcp {
namespace {

using Kind = Value::Kind;

constexpr std::size_t kMaxRuns = 64 * 1024;

struct Run {
  std::int64_t at;
  std::int64_t size;
};
using Runs = std::vector<Run>;

std::int64_t total(const Runs& runs) {
  std::int64_t out = 0;
  for (const Run& run : runs) out += run.size;
  return out;
}

/// Adds the elements [from, to) of the list `runs` to `out`.
void add_slice(const Runs& runs, std::int64_t from, std::int64_t to, Runs& out, std::string_view item) {
  std::int64_t begin = 0;
  for (const Run& run : runs) {
    const std::int64_t first = std::max(from, begin);
    const std::int64_t last = std::min(to, begin + run.size);
    begin += run.size;
    if (first >= last) continue;
    const Run part{run.at + first - (begin - run.size), last - first};
    if (!out.empty() && out.back().at + out.back().size == part.at) {
      out.back().size += part.size;
    } else if (out.size() == kMaxRuns) {
      fail("a rank's part of it is more than 65,536 pieces", item, ErrorCode::kLimit);
    } else {
      out.push_back(part);
    }
  }
}

/// Where part `number` of `parts` begins and ends, of `size` elements.
Run chunk_of(std::int64_t size, std::int64_t parts, std::int64_t number) {
  const std::int64_t each = size / parts + (size % parts == 0 ? 0 : 1);
  const std::int64_t from = each == 0 || number > size / each ? size : std::min(size, each * number);
  return {from, std::min(each, size - from)};
}

Runs dealt(const Runs& runs, std::int64_t turns, std::int64_t parts, std::int64_t number, std::string_view item) {
  Runs out;
  const std::int64_t size = total(runs);
  for (std::int64_t turn = 0; turn < std::min(turns, size); ++turn) {
    const Run piece = chunk_of(size, turns, turn);
    if (piece.size == 0) break;
    const Run mine = chunk_of(piece.size, parts, number);
    add_slice(runs, piece.at + mine.at, piece.at + mine.at + mine.size, out, item);
  }
  return out;
}

std::int64_t number_in(const Value& dict, std::string_view key, std::string_view item) {
  return required_in(dict, key, Kind::kInt, item).as_int();
}

/// The runs of each dimension.
std::vector<Runs> runs_of(const Shape& shape, const Mesh& mesh, const std::vector<std::int64_t>& place,
                          const Value& placements, std::string_view item) {
  std::vector<Runs> out;
  for (const std::int64_t size : shape.dims()) out.push_back(size == 0 ? Runs{} : Runs{{0, size}});
  if (placements.size() != mesh.shape().size())
    fail("it has another number of placements than its mesh dimensions", item);
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const std::string type = required_in(placements[i], "type", Kind::kString, item).as_string();
    if (type == "Replicate") continue;
    if (type != "Shard" && type != "StridedShard") {
      fail(core::format("its placement {} is not known", core::quoted(type)), item, ErrorCode::kUnsupported);
    }
    const std::int64_t dim = number_in(placements[i], "dim", item);
    const std::int64_t turns = type == "Shard" ? 1 : number_in(placements[i], "split_factor", item);
    if (dim < 0 || static_cast<std::size_t>(dim) >= out.size() || turns < 1) {
      fail("a placement has a dimension that the tensor lacks, or is split into no parts", item);
    }
    Runs& runs = out[static_cast<std::size_t>(dim)];
    runs = dealt(runs, turns, mesh.shape()[i], place[i], item);
  }
  return out;
}

void add_boxes(std::span<const Runs> dims, PlacedBox& open, std::vector<PlacedBox>& out, std::string_view item) {
  const std::size_t dim = open.inside.rank();
  if (dim == dims.size()) {
    if (out.size() == kMaxRuns) fail("a rank's part of it is more than 65,536 boxes", item, ErrorCode::kLimit);
    return out.push_back(open);
  }
  std::int64_t inside = 0;
  for (const Run& run : dims[dim]) {
    PlacedBox next = open;
    next.box.at.push_back(run.at);
    next.box.shape.push_back(run.size);
    next.inside.push_back(inside);
    inside += run.size;
    add_boxes(dims, next, out, item);
  }
}

}  // namespace

Mesh::Mesh(const Value& described, std::string_view item) : shape_(sizes_in(described, "mesh_shape", item)) {
  const std::vector<std::int64_t> ranks = sizes_in(described, "mesh_data", item);
  for (const std::int64_t rank : ranks) numbers_.emplace(rank, static_cast<std::int64_t>(numbers_.size()));
  std::uint64_t count = 1;
  for (const std::int64_t size : shape_)
    count = count > ranks.size() ? count : count * static_cast<std::uint64_t>(size);
  if (count == ranks.size() && numbers_.size() == ranks.size() && !ranks.empty()) return;
  fail("its mesh has another shape than ranks, or a rank twice", item);
}

std::vector<std::int64_t> Mesh::place_of(std::int64_t rank, std::string_view item) const {
  const auto found = numbers_.find(rank);
  if (found == numbers_.end()) fail(core::format("rank {} is not in its mesh", rank), item);
  std::vector<std::int64_t> out(shape_.size());
  std::int64_t number = found->second;
  for (std::size_t d = shape_.size(); d-- > 0; number /= shape_[d]) out[d] = number % shape_[d];
  return out;
}

PlacedPart part_of(const Shape& shape, const Mesh& mesh, const Value& placements, std::int64_t rank,
                   std::string_view item) {
  const std::vector<Runs> dims = runs_of(shape, mesh, mesh.place_of(rank, item), placements, item);
  PlacedPart out;
  out.shape.emplace();
  for (const Runs& runs : dims) out.shape->push_back(total(runs));
  PlacedBox open;
  add_boxes(dims, open, out.boxes, item);
  return out;
}

Value required_in(const Value& dict, std::string_view key, Kind kind, std::string_view item) {
  const std::optional<Value> found = dict.is(Kind::kDict) ? dict.find(key) : std::nullopt;
  if (!found || !found->is(kind)) {
    fail(core::format("its {} is missing or of another type in metadata.pkl; save the checkpoint again", key), item);
  }
  return *found;
}

std::vector<std::int64_t> sizes_in(const Value& dict, std::string_view key, std::string_view item) {
  const std::optional<Value> found = dict.is(Kind::kDict) ? dict.find(key) : std::nullopt;
  std::vector<std::int64_t> out;
  if (found && (found->is(Kind::kTuple) || found->is(Kind::kList))) {
    for (const Value& size : *found) {
      if (!size.is(Kind::kInt) || size.as_int() < 0) break;
      out.push_back(size.as_int());
    }
  }
  if (!found || out.size() != found->size()) {
    fail(core::format("its {} are missing in metadata.pkl, or not numbers of 0 or more", key), item);
  }
  return out;
}

}  // namespace penstock::format::dcp
