// The files are walked side by side, as one tree. Where a tensor is described, the ranks' parts of it become chunks of
// a whole one; everything else is taken as it stands.

#include "format/dcp/ranked_item.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/format.h"
#include "format/dcp/assembly.h"
#include "format/dcp/coverage.h"
#include "format/dcp/item_error.h"
#include "io/source/composed_source.h"
#include "penstock/error.h"
#include "value/graph.h"
#include "value/nodes.h"

namespace penstock::format::dcp {
namespace {

using Kind = Value::Kind;

constexpr std::size_t kMaxNesting = 500;
/// Containers are visited once for each way that leads to them.
constexpr std::size_t kMaxVisited = std::size_t{1} << 22;
/// How a pickle has a DTensor: torch.wrapper_subclass(...), with this among its attributes.
constexpr std::string_view kWrapper = "torch.wrapper_subclass";
constexpr std::string_view kLocalPart = "_local_tensor";

/// The entry that a value is, or that is the part of a DTensor which its rank has.
std::optional<std::size_t> entry_of(const Value& value) {
  if (value.entry_index() || !value.is(Kind::kObject) || value.type_name() != kWrapper) return value.entry_index();
  std::optional<Value> attributes = value.state();
  // Attributes in __slots__ make it a pair, of which the second has them.
  if (attributes && attributes->is(Kind::kTuple) && attributes->size() == 2) attributes = (*attributes)[1];
  if (!attributes || !attributes->is(Kind::kDict)) return std::nullopt;
  const std::optional<Value> part = attributes->find(kLocalPart);
  return part ? part->entry_index() : std::nullopt;
}

/// Puts one item together.
class ItemReader {
 public:
  ItemReader(const RankedItem& item, std::vector<RankFile> files, const OpenOptions& options, Index& index)
      : item_(item), files_(std::move(files)), options_(options), index_(index) {
    for (const RankedTensor& tensor : item.tensors) {
      by_place_.emplace(tensor.place, &tensor);
      by_name_.emplace(tensor.name, &tensor);
    }
  }

  Value read() {
    std::vector<Node> roots;
    for (const RankFile& file : files_) roots.push_back({&file, file.index.structure});
    Value out = content(roots, {}, item_.name, 0);
    for (const RankedTensor& tensor : item_.tensors) {
      if (!found_.contains(&tensor)) {
        fail("no file of a rank has it; metadata.pkl and the files are not of one save", full_name(tensor));
      }
    }
    return out;
  }

 private:
  /// What a rank's file has at some place.
  struct Node {
    const RankFile* file;
    Value value;
  };

  std::string full_name(const RankedTensor& tensor) const {
    return tensor.name == item_.name ? item_.name : core::format("{}.{}", item_.name, tensor.name);
  }

  /// The tensor that is described at a place. A file of named tensors (.safetensors) has names in place of places.
  const RankedTensor* described(const PlaceText& place, const std::string& name) const {
    const auto found = by_place_.find(place.text());
    if (found != by_place_.end()) return found->second;
    const std::size_t prefix = item_.name.size() + 1;
    const auto named = name.size() > prefix ? by_name_.find(std::string_view(name).substr(prefix)) : by_name_.end();
    return named == by_name_.end() ? nullptr : named->second;
  }

  /// What the files have together at a place: of dicts all keys, of other content what the first rank has.
  Value content(const std::vector<Node>& nodes, const PlaceText& place, const std::string& name, std::size_t depth) {
    if (depth > kMaxNesting || ++visited_ > kMaxVisited) {
      fail("it is nested too deep, or held too often, to be put together", name, ErrorCode::kLimit);
    }
    const Value& first = nodes.front().value;
    const bool is_parted = first.is(Kind::kDict) || first.is(Kind::kList) || first.is(Kind::kTuple);
    if (!is_parted) {
      const RankedTensor* const tensor = described(place, name);
      return tensor == nullptr ? alone(nodes.front(), name) : whole(*tensor, nodes);
    }
    return first.is(Kind::kDict) ? dict(nodes, place, name, depth) : list(nodes, place, name, depth);
  }

  Value dict(const std::vector<Node>& nodes, const PlaceText& place, const std::string& name, std::size_t depth) {
    struct Part {
      Value key;
      PlaceText place;
      std::string name;
      std::vector<Node> nodes;
    };
    std::vector<Part> parts;
    std::unordered_map<std::string, std::size_t> numbers;
    for (const Node& node : nodes) {
      if (!node.value.is(Kind::kDict)) continue;
      for (const auto& [key, value] : node.value.items()) {
        PlaceText below = place;
        key.is(Kind::kInt) ? below.add_number(key.as_int())
                           : below.add_key(key.is(Kind::kString) ? key.as_string() : key.to_string());
        const auto [at, added] = numbers.emplace(below.text(), parts.size());
        if (added) {
          const std::string step = key.is(Kind::kString) ? key.as_string() : key.to_string();
          parts.push_back({key, std::move(below), core::format("{}.{}", name, step), {}});
        }
        parts[at->second].nodes.push_back({node.file, value});
      }
    }
    std::vector<Value::Item> out;
    for (Part& part : parts) {
      out.emplace_back(std::move(part.key), content(part.nodes, part.place, part.name, depth + 1));
    }
    return Value::dict(std::move(out), nodes.front().value.type_name());
  }

  Value list(const std::vector<Node>& nodes, const PlaceText& place, const std::string& name, std::size_t depth) {
    const Value& first = nodes.front().value;
    std::vector<Value> out;
    for (std::size_t i = 0; i < first.size(); ++i) {
      PlaceText below = place;
      below.add_number(static_cast<std::int64_t>(i));
      std::vector<Node> parts;
      for (const Node& node : nodes) {
        if (node.value.kind() != first.kind() || node.value.size() != first.size()) {
          fail("its ranks have lists of unlike lengths at one place, which cannot be put together", name,
               ErrorCode::kUnsupported);
        }
        parts.push_back({node.file, node.value[i]});
      }
      out.push_back(content(parts, below, core::format("{}.{}", name, i), depth + 1));
    }
    return first.is(Kind::kList) ? Value::list(std::move(out)) : Value::tuple(std::move(out), first.type_name());
  }

  /// Content that is not described: a number, an object, a tensor of one rank.
  Value alone(const Node& node, const std::string& name) {
    std::vector<std::size_t> positions(node.file->index.entries.size());
    const std::vector<std::string>& unknown = node.file->index.unknown_globals;
    for_each_node(node.value, [&](const ValueGraph::Node& part) {
      if (std::ranges::find(unknown, part.type_name) != unknown.end()) index_.unknown_globals.push_back(part.type_name);
      const auto* const entry = std::get_if<ValueGraph::Node::Entry>(&part.scalar);
      if (entry == nullptr) return;
      TensorEntry copy = node.file->index.entries[entry->index];
      copy.name = node.value.entry_index() ? name : core::format("{}: {}", name, copy.name);
      StorageEntry storage = node.file->index.storages[copy.storage];
      storage.source = node.file->number;
      copy.storage = index_.storages.size();
      positions[entry->index] = index_.entries.size();
      index_.entries.push_back(std::move(copy));
      index_.storages.push_back(std::move(storage));
      share_last_storage();
    });
    return with_entries(node.value, positions);
  }

  Value whole(const RankedTensor& tensor, const std::vector<Node>& nodes) {
    const std::string name = full_name(tensor);
    if (!found_.insert(&tensor).second) fail("metadata.pkl describes it once, and a file has it twice", name);
    std::vector<StoredChunk> chunks;
    for (const auto& [rank, part] : tensor.parts) {
      const auto node =
          std::ranges::find_if(nodes, [&, wanted = rank](const Node& each) { return each.file->rank == wanted; });
      if (node == nodes.end()) fail(core::format("the file of rank {} has no such tensor", rank), name);
      add_chunks(part, *node, name, chunks);
    }
    require_whole(chunks, tensor.shape, name);
    const std::optional<DType> dtype = DType::from_name(tensor.dtype);
    if (!dtype) fail(core::format("metadata.pkl says that it is of {}, which is no dtype", tensor.dtype), name);
    add_tensor(name, *dtype, tensor.shape, std::move(chunks), options_.verify, index_);
    share_last_storage();
    return Value::entry(index_.entries.size() - 1);
  }

  static void add_chunks(const PlacedPart& part, const Node& node, const std::string& name,
                         std::vector<StoredChunk>& chunks) {
    const std::optional<std::size_t> number = entry_of(node.value);
    const ErrorContext where{node.file->source.name(), {}, name};
    if (!number) {
      throw Error(
          ErrorCode::kUnsupported,
          "a rank's part of it is no plain tensor; load the checkpoint with torch_checkpointing and save it again",
          where);
    }
    const TensorEntry& entry = node.file->index.entries[*number];
    // A class of the program's own does not say it: its boxes must lie inside.
    if (part.shape && entry.shape != *part.shape) {
      throw Error(ErrorCode::kCorrupt,
                  core::format("its part has shape {}, where metadata.pkl gives this rank {}; the files are not of one "
                               "save: copy them again",
                               entry.shape.to_string(), part.shape->to_string()),
                  where);
    }
    for (const PlacedBox& each : part.boxes) {
      StoredChunk& chunk = chunks.emplace_back(
          StoredChunk{each.box, entry, node.file->index.storages[entry.storage], node.file->source});
      chunk.storage.source = node.file->number;
      take_box(chunk.entry, each, where);
    }
  }

  /// Makes an entry that of a box in it.
  static void take_box(TensorEntry& entry, const PlacedBox& each, const ErrorContext& where) {
    const Shape& shape = each.box.shape;
    bool fits = entry.shape.rank() == shape.rank() && each.inside.rank() == shape.rank();
    for (std::size_t d = 0; fits && d < shape.rank(); ++d) {
      fits = shape[d] <= entry.shape[d] && each.inside[d] <= entry.shape[d] - shape[d];
    }
    if (!fits) {
      throw Error(ErrorCode::kCorrupt, "a box that metadata.pkl gives this rank is not in its tensor; copy them again",
                  where);
    }
    if (shape.numel() > 0) {
      for (std::size_t d = 0; d < shape.rank(); ++d) {
        entry.byte_offset += static_cast<std::uint64_t>(each.inside[d] * entry.strides[d]) * entry.dtype.itemsize();
      }
    }
    entry.shape = shape;
  }

  /// Checks that the chunks are all of the tensor, and drops those without elements.
  static void require_whole(std::vector<StoredChunk>& chunks, const Shape& shape, const std::string& name) {
    std::vector<Chunk> boxes;
    for (const StoredChunk& chunk : chunks) boxes.push_back({chunk.box, {}});
    require_cover(boxes, shape, name);
    std::erase_if(chunks, [](const StoredChunk& chunk) { return chunk.box.shape.numel() == 0; });
  }

  /// Tensors of a file that share bytes share them in memory.
  void share_last_storage() {
    const StorageEntry& storage = index_.storages.back();
    if (io::as_composed(index_.sources[storage.source]) != nullptr) return;
    const std::size_t last = index_.storages.size() - 1;
    const auto [at, added] = storages_.emplace(std::tuple(storage.source, storage.offset, storage.nbytes), last);
    if (added) return;
    index_.storages.pop_back();
    index_.entries.back().storage = at->second;
  }

  const RankedItem& item_;
  const std::vector<RankFile> files_;
  const OpenOptions& options_;
  Index& index_;
  std::unordered_map<std::string_view, const RankedTensor*> by_place_;
  std::unordered_map<std::string_view, const RankedTensor*> by_name_;
  std::unordered_set<const RankedTensor*> found_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::size_t> storages_;
  std::size_t visited_ = 0;
};

}  // namespace

Value read_item(const RankedItem& item, std::vector<RankFile> files, const OpenOptions& options, Index& index) {
  return ItemReader(item, std::move(files), options, index).read();
}

}  // namespace penstock::format::dcp
