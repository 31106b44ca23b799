// `metadata.pkl` is a pickle of plain dicts. By item it has the places of tensors, each as JSON (["layers", 0, "w"]),
// with groups of ranks that describe their parts alike; and the file of each rank. Version 1.0 has one dict of
// places, which begin with the item.

#include "format/dcp/rank_metadata.h"

#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "core/format.h"
#include "core/json_reader.h"
#include "core/parse_number.h"
#include "core/text.h"
#include "format/dcp/item_error.h"
#include "format/pt/pickle/read_pickle.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

using Kind = Value::Kind;

constexpr std::string_view kDTensor = "DTensorShardingMetadata";
constexpr std::string_view kPlainTensor = "default_tensor_v1";
constexpr std::string_view kDTypePrefix = "torch.";
/// Ranks of all tensors together: a pickle names the same list of ranks many times in few bytes.
constexpr std::uint64_t kMaxParts = std::uint64_t{1} << 26;

class PathReader final : public core::JsonReader {
 public:
  /// `json` must outlive it. `with_item`: the first step is the name of the item.
  PathReader(std::string_view json, bool with_item)
      : core::JsonReader(json, {}, std::nullopt), json_(json), needs_item_(with_item) {}

  std::string item;
  std::string name;
  PlaceText place;

  void read_path() {
    read_any();
    if (!is_list_ || needs_item_) refuse();
  }

 private:
  void on_array() override {
    if (is_list_) refuse();
    is_list_ = true;
  }
  void on_key(std::string&) override { refuse(); }
  void on_string(std::string& key) override {
    if (needs_item_) {
      needs_item_ = false;
      item = key;
      return;
    }
    add_name(key);
    place.add_key(key);
  }
  void on_unsigned(std::uint64_t value) override {
    if (needs_item_ || value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) refuse();
    add_name(std::to_string(value));
    place.add_number(static_cast<std::int64_t>(value));
  }
  void on_negative(std::int64_t value) override {
    add_name(std::to_string(value));
    place.add_number(value);
  }
  void add_name(std::string_view step) {
    if (!is_list_) refuse();
    if (!name.empty()) name += '.';
    name += step;
  }
  [[noreturn]] void unexpected(std::string_view) override { refuse(); }
  [[noreturn]] void refuse() const {
    dcp::fail(core::format("the place {} in metadata.pkl is no list of keys and numbers", core::quoted(json_)));
  }

  std::string_view json_;
  bool needs_item_;
  bool is_list_ = false;
};

Shape shape_from(const std::vector<std::int64_t>& sizes) { return Shape(std::span<const std::int64_t>(sizes)); }

std::vector<Shape> shapes_in(const Value& dict, std::string_view key, std::string_view item) {
  const Value lists = required_in(dict, key, Kind::kList, item);
  std::vector<Shape> out;
  for (const Value& list : lists) {
    out.push_back(shape_from(sizes_in(Value::dict({{std::string(key), list}}), key, item)));
  }
  return out;
}

/// The part of a tensor of a class of the program's own, which says itself which boxes it has.
PlacedPart said_part(const Value& data, std::string_view item) {
  const std::vector<Shape> at = shapes_in(data, "global_offsets", item);
  const std::vector<Shape> inside = shapes_in(data, "local_offsets", item);
  const std::vector<Shape> sizes = shapes_in(data, "local_sizes", item);
  if (at.size() != sizes.size() || inside.size() != sizes.size()) fail("its lists of boxes differ in length", item);
  PlacedPart out;  // its shape is not said
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (at[i].rank() != sizes[i].rank() || inside[i].rank() != sizes[i].rank()) fail("a box of it is none", item);
    out.boxes.push_back({{at[i], sizes[i]}, inside[i]});
  }
  return out;
}

/// Takes the groups of one tensor apart.
class TensorReader {
 public:
  /// `parts`: how many ranks were looked at so far.
  TensorReader(RankedTensor& tensor, std::uint64_t& parts) : tensor_(tensor), parts_(parts) {}

  /// `all_ranks`: those that have some of the tensor, for the item.
  void add(const Value& groups, std::set<std::int64_t>& all_ranks) {
    if (!groups.is(Kind::kList) || groups.size() == 0) fail("no rank has it", tensor_.name);
    for (const Value& group : groups) {
      const std::vector<std::int64_t> ranks = sizes_in(group, "ranks", tensor_.name);
      count(ranks.size());
      all_ranks.insert(ranks.begin(), ranks.end());
      const Value sharding = required_in(group, "sharding_metadata", Kind::kDict, tensor_.name);
      const std::string type = required_in(sharding, "type", Kind::kString, tensor_.name).as_string();
      const Value data = required_in(sharding, "data", Kind::kDict, tensor_.name);
      if (type != kDTensor && type != kPlainTensor) {
        fail(core::format("its sharding is described by {}, which is not known", core::quoted(type)), tensor_.name,
             ErrorCode::kUnsupported);
      }
      if (is_whole_) continue;  // each group of a DTensor has all of it
      describe(data);
      if (type == kDTensor) {
        place(data, ranks);
      } else {
        for (const std::int64_t rank : ranks) keep(rank, said_part(data, tensor_.name));
      }
      is_whole_ = type == kDTensor;
    }
  }

 private:
  void describe(const Value& data) {
    const std::string dtype = required_in(data, "dtype", Kind::kString, tensor_.name).as_string();
    Shape shape = shape_from(sizes_in(data, "global_shape", tensor_.name));
    const std::string name = dtype.starts_with(kDTypePrefix) ? dtype.substr(kDTypePrefix.size()) : dtype;
    if (!tensor_.dtype.empty() && (tensor_.dtype != name || tensor_.shape != shape)) {
      fail("its ranks differ in dtype or shape", tensor_.name);
    }
    tensor_.dtype = name;
    tensor_.shape = std::move(shape);
  }

  void place(const Value& data, const std::vector<std::int64_t>& ranks) {
    const Mesh mesh(required_in(data, "mesh_spec", Kind::kDict, tensor_.name), tensor_.name);
    count(mesh.size());
    const Value placements = required_in(data, "placements", Kind::kList, tensor_.name);
    for (const std::int64_t rank : ranks) keep(rank, part_of(tensor_.shape, mesh, placements, rank, tensor_.name));
  }

  void count(std::size_t ranks) {
    parts_ += ranks;
    if (parts_ > kMaxParts) fail("the ranks of all tensors are too many", tensor_.name, ErrorCode::kLimit);
  }

  /// Leaves out boxes that an earlier rank has.
  void keep(std::int64_t rank, PlacedPart part) {
    std::erase_if(part.boxes, [&](const PlacedBox& each) {
      return !seen_.insert(each.box.at.to_string() + each.box.shape.to_string()).second;
    });
    if (!part.boxes.empty() || tensor_.parts.empty()) tensor_.parts.emplace_back(rank, std::move(part));
  }

  RankedTensor& tensor_;
  std::uint64_t& parts_;
  bool is_whole_ = false;
  std::set<std::string> seen_;
};

class MetadataReader {
 public:
  explicit MetadataReader(const Value& root) : root_(root), metadata_(required_in(root, "metadata", Kind::kDict, {})) {}

  std::vector<RankedItem> read() {
    const std::optional<Value> version = root_.find("version");
    const std::string number = version && version->is(Kind::kString) ? version->as_string() : "1.0";
    if (number == "1.0") {
      read_flat();
    } else if (number == "2.0") {
      read_items();
    } else {
      fail(core::format("metadata.pkl is of version {}; 1.0 and 2.0 are read", core::quoted(number)), {},
           ErrorCode::kUnsupported);
    }
    return std::move(items_);
  }

 private:
  void read_items() {
    for (const auto& [key, described] : metadata_.items()) {
      const std::string name = text_of(key);
      items_.push_back({name, {}, {}});
      std::set<std::int64_t> ranks;
      for (const auto& [path, groups] : required_in(described, "nested_path_to_metadata", Kind::kDict, name).items()) {
        const std::string json = text_of(path);
        PathReader reader(json, false);
        reader.read_path();
        add_tensor(items_.back(), reader, groups, ranks);
      }
      name_files(items_.back(), ranks, required_in(described, "rank_to_layout_info", Kind::kDict, name));
    }
  }

  void read_flat() {
    std::map<std::string, std::size_t> numbers;
    std::vector<std::set<std::int64_t>> ranks;
    for (const auto& [path, groups] : metadata_.items()) {
      const std::string json = text_of(path);
      PathReader reader(json, true);
      reader.read_path();
      const auto [at, added] = numbers.emplace(reader.item, items_.size());
      if (added) {
        items_.push_back({reader.item, {}, {}});
        ranks.emplace_back();
      }
      add_tensor(items_[at->second], reader, groups, ranks[at->second]);
    }
    const Value layouts = required_in(root_, "rank_to_layout_info_mappings", Kind::kDict, {});
    for (std::size_t i = 0; i < items_.size(); ++i) {
      std::vector<Value::Item> files;
      for (const auto& [rank, by_item] : layouts.items()) {
        const std::optional<Value> layout = by_item.is(Kind::kDict) ? by_item.find(items_[i].name) : std::nullopt;
        files.emplace_back(rank, layout.value_or(Value()));
      }
      name_files(items_[i], ranks[i], Value::dict(std::move(files)));
    }
  }

  static std::string text_of(const Value& key) {
    if (!key.is(Kind::kString)) fail("a name in metadata.pkl is not a text");
    return key.as_string();
  }

  void add_tensor(RankedItem& item, const PathReader& reader, const Value& groups, std::set<std::int64_t>& ranks) {
    RankedTensor& tensor = item.tensors.emplace_back();
    tensor.place = reader.place.text();
    tensor.name = reader.name.empty() ? item.name : reader.name;
    TensorReader(tensor, parts_).add(groups, ranks);
  }

  /// The layout's file of each rank, or the usual one where it says none.
  static void name_files(RankedItem& item, const std::set<std::int64_t>& ranks, const Value& layouts) {
    if (ranks.empty()) fail("no rank has any of it in metadata.pkl", item.name);
    for (const std::int64_t rank : ranks) item.files[rank] = core::format("{}_{}.pt", item.name, rank);
    for (const auto& [rank, layout] : layouts.items()) {
      const std::optional<std::int64_t> number = number_of(rank);
      if (!number) fail("a rank in metadata.pkl is no number", item.name);
      if (layout.is(Kind::kNone) || !ranks.contains(*number)) continue;
      item.files[*number] = required_in(layout, "file_path", Kind::kString, item.name).as_string();
    }
  }

  /// JSON would have made a text of it.
  static std::optional<std::int64_t> number_of(const Value& rank) {
    if (rank.is(Kind::kInt)) return rank.as_int();
    return rank.is(Kind::kString) ? core::parse_number<std::int64_t>(rank.as_string()) : std::nullopt;
  }

  const Value& root_;
  Value metadata_;
  std::vector<RankedItem> items_;
  std::uint64_t parts_ = 0;
};

}  // namespace

std::vector<RankedItem> read_rank_metadata(std::span<const std::byte> pickle) {
  Index read;
  pickle::NoStorages none;
  pickle::read_pickle(pickle, 0, read, none);
  if (!read.structure.is(Kind::kDict)) fail("metadata.pkl is not a dict; save the checkpoint again");
  return MetadataReader(read.structure).read();
}

}  // namespace penstock::format::dcp
