// Each shard says in its metadata how the samples are nested and which array holds each of their tensors. That text is
// written and read here. It is JSON, and what is read may come from anybody, so depth is limited and a text that is not
// of this form is kCorrupt.

#include "data/pack/sample_form.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/format.h"
#include "core/json_reader.h"
#include "core/text.h"
#include "format/text/utf8.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

using Json = nlohmann::json;
using Node = Structure::Node;

/// Each part's place repeats the keys that lead to it.
constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;
constexpr const char* kDict = "dict";
constexpr const char* kList = "list";
constexpr const char* kTuple = "tuple";
constexpr const char* kValues = "values";
constexpr const char* kOffsets = "offsets";
/// What save() calls a tensor alone.
constexpr const char* kOnly = "tensor";

/// Names arrays as `save` names tensors of nested dicts.
class Former {
 public:
  Former(const Structure& structure, std::string what) : structure_(structure), what_(std::move(what)) {}

  SampleForm form() {
    if (structure_.leaves.empty()) {
      throw Error(ErrorCode::kUnsupported,
                  "the sample is empty, and no array would say how many of them there are; leave such files out",
                  {.path = what_});
    }
    form_.structure = structure_;
    form_.arrays.resize(structure_.leaves.size());
    visit(structure_.root, "");
    for (std::size_t i = 0; i < form_.structure.leaves.size(); ++i) {
      Leaf& leaf = form_.structure.leaves[i];
      leaf.kind = LeafKind::kTensor;
      leaf.number = static_cast<std::uint32_t>(i);
    }
    return std::move(form_);
  }

 private:
  void visit(const Node& node, const std::string& name) {
    if (node.kind == Node::Kind::kLeaf) return name_leaf(node.leaf, name);
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const std::string part = node.kind == Node::Kind::kDict ? key_of(node, i) : std::to_string(i);
      visit(node.children[i], name.empty() ? part : core::format("{}.{}", name, part));
    }
  }

  const std::string& key_of(const Node& node, std::size_t child) const {
    const Value& key = node.keys[child];
    if (key.is(Value::Kind::kString) && format::is_utf8(key.as_string())) return key.as_string();
    throw Error(ErrorCode::kUnsupported,
                core::format("the key {} of a dict is not text that arrays could be named by; leave it out with keys",
                             key.to_string()),
                {.path = what_});
  }

  void name_leaf(std::uint32_t leaf, const std::string& name) {
    const Leaf& found = structure_.leaves[leaf];
    const LeafKind kind = found.kind;
    if (kind != LeafKind::kTensor && kind != LeafKind::kBool && kind != LeafKind::kInt && kind != LeafKind::kFloat) {
      throw Error(
          ErrorCode::kUnsupported,
          core::format("found {} at {}, expected a tensor or a number, of which arrays can be made; choose what "
                       "to pack with keys",
                       kind_text(kind), found.path.empty() ? "the sample" : found.path),
          {.path = what_});
    }
    PackedArray& array = form_.arrays[leaf];
    array.values = free_name(name.empty() ? kOnly : name);
    array.offsets = free_name(array.values + ".offsets");
  }

  std::string free_name(std::string name) {
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  const Structure& structure_;
  std::string what_;
  SampleForm form_;
  std::set<std::string> taken_ = {"__metadata__"};  // no tensor of a .safetensors may be called so
};

Json json_of(const Node& node, const SampleForm& form) {
  if (node.kind == Node::Kind::kLeaf) {
    const PackedArray& array = form.arrays[node.leaf];
    Json leaf = {{kValues, array.values}};
    if (!array.offsets.empty()) leaf[kOffsets] = array.offsets;
    return leaf;
  }
  Json children = Json::array();
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    Json child = json_of(node.children[i], form);
    const bool named = node.kind == Node::Kind::kDict;
    children.push_back(named ? Json::array({node.keys[i].as_string(), std::move(child)}) : std::move(child));
  }
  const char* const kind = node.kind == Node::Kind::kDict ? kDict : node.kind == Node::Kind::kList ? kList : kTuple;
  return {{kind, std::move(children)}};
}

/// Nests again what the text says. A part is an object: `{"values": ..., "offsets": ...}` or one of the three kinds
/// with its children; a child of a dict is a pair of its key and a part.
class FormReader final : public core::JsonReader {
 public:
  FormReader(std::string_view json, const std::string& path) : core::JsonReader(json, path, std::nullopt, kMaxLevels) {}

  SampleForm form() {
    if (form_.arrays.empty()) refuse("there is no array in it");
    return std::move(form_);
  }

 private:
  /// A list, a pair and an object for each level, and what is stepped over.
  static constexpr std::size_t kMaxLevels = 3 * kMaxDepth + core::JsonReader::kMaxDepth;

  /// A part that has not ended.
  struct OpenPart {
    std::string path = {};  ///< of the tensor in a sample
    std::string key = {};   ///< that of the nearest dict
    Node node = {};
    std::string kind = {};  ///< what its children are called; empty for an array
    std::string unknown = {};
    PackedArray array = {};
    bool in_children = false;
    bool in_pair = false;
    bool has_key = false;  ///< the pair has its key, and then wants its part
  };

  void on_object() override {
    OpenPart next;
    if (!parts_.empty()) {
      OpenPart& top = parts_.back();
      const bool named = top.kind == kDict;
      if (!top.in_children || top.in_pair != named || top.has_key != named) refuse("a part is not where one may be");
      const std::size_t number = top.node.children.size();
      next.key = named ? top.node.keys.back().as_string() : top.key;
      next.path = core::format("{}[{}]", top.path, named ? core::quoted(next.key) : std::to_string(number));
    }
    text_bytes_ += next.path.size() + next.key.size();
    if (parts_.size() > kMaxDepth) fail("its parts are nested too deeply", {}, ErrorCode::kLimit);
    if (text_bytes_ > kMaxTextBytes) fail("the places of its parts take too much text", {}, ErrorCode::kLimit);
    parts_.push_back(std::move(next));
    name_ = {};
  }

  void on_object_end() override {
    OpenPart part = std::move(parts_.back());
    parts_.pop_back();
    if (!part.array.values.empty()) {
      part.node.leaf = add(part);
    } else if (part.kind.empty()) {
      refuse(part.unknown.empty()
                 ? "a part of it has neither an array nor children"
                 : core::format("it has {}, which no version of Penstock knows", core::quoted(part.unknown)));
    } else {
      part.node.kind = kind_of(part.kind);
    }
    if (parts_.empty()) {
      form_.structure.root = std::move(part.node);
    } else {
      parts_.back().node.children.push_back(std::move(part.node));
      parts_.back().has_key = false;
    }
  }

  void on_array() override {
    if (parts_.empty()) refuse("it is not an object");
    OpenPart& top = parts_.back();
    if (!top.in_children && name_ == top.kind && !top.kind.empty()) {
      top.in_children = true;
    } else if (top.in_children && top.kind == kDict && !top.in_pair) {
      top.in_pair = true;
    } else {
      refuse("a list is not where one may be");
    }
  }

  void on_array_end() override {
    OpenPart& top = parts_.back();
    const bool whole = top.kind != kDict || top.node.keys.size() == top.node.children.size();
    if (!whole) refuse("a child of a dict is not a pair");
    (top.in_pair ? top.in_pair : top.in_children) = false;
  }

  void on_key(std::string& name) override {
    OpenPart& top = parts_.back();
    name_ = std::move(name);
    if (name_ == kDict || name_ == kList || name_ == kTuple) {
      if (!top.kind.empty() || !top.array.values.empty()) refuse("a part is two things");
      top.kind = name_;
    } else if (name_ != kValues && name_ != kOffsets) {
      top.unknown = std::move(name_);
      skip_value();
    } else if (!top.kind.empty()) {
      refuse("a part is two things");
    }
  }

  void on_string(std::string& text) override {
    if (parts_.empty()) refuse("it is not an object");
    OpenPart& top = parts_.back();
    if (top.in_pair) {
      if (top.has_key || top.node.keys.size() != top.node.children.size()) refuse("a child of a dict is not a pair");
      top.node.keys.push_back(Value::string(std::move(text)));
      top.has_key = true;
      return;
    }
    if (top.in_children || (name_ != kValues && name_ != kOffsets)) refuse("a text is not where one may be");
    std::string& place = name_ == kValues ? top.array.values : top.array.offsets;
    if (!place.empty() || text.empty()) refuse("an array has no name, or two");
    place = std::move(text);
  }

  [[noreturn]] void unexpected(std::string_view kind) override { refuse(core::format("there is {} in it", kind)); }

  static Node::Kind kind_of(std::string_view name) {
    if (name == kDict) return Node::Kind::kDict;
    return name == kList ? Node::Kind::kList : Node::Kind::kTuple;
  }

  std::uint32_t add(OpenPart& part) {
    const auto number = static_cast<std::uint32_t>(form_.arrays.size());
    // Else a few bytes could make a sample of any size.
    const std::string& values = part.array.values;
    if (!taken_.insert(values).second) refuse(core::format("{} is two parts of it", core::quoted(values)));
    form_.structure.leaves.push_back({LeafKind::kTensor, number, std::move(part.path), std::move(part.key)});
    form_.arrays.push_back(std::move(part.array));
    return number;
  }

  [[noreturn]] void refuse(const std::string& why) const { fail(why); }

  SampleForm form_;
  std::vector<OpenPart> parts_;
  std::string name_;  ///< of the member whose value comes next
  std::set<std::string> taken_;
  std::size_t text_bytes_ = 0;
};

}  // namespace

SampleForm form_of(const Structure& structure, const std::string& what) { return Former(structure, what).form(); }

std::string to_json(const SampleForm& form) { return json_of(form.structure.root, form).dump(); }

SampleForm parse_sample_form(std::string_view json, const std::string& path) {
  FormReader reader(json, path);
  try {
    reader.read();
    return reader.form();
  } catch (const Error& error) {
    throw Error(error.code(),
                core::format("the metadata {} is not the form of packed samples: {}", kSampleFormKey, error.message()),
                {.path = path});
  }
}

}  // namespace penstock::data
