// Each shard says in its metadata how the samples are nested and which array holds each of their tensors. That text is
// written and read here. It is JSON, and what is read may come from anybody, so depth is limited and a text that is not
// of this form is kCorrupt.

#include "data/pack/sample_form.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "format/text/utf8.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

using Json = nlohmann::json;
using Node = Structure::Node;

constexpr std::size_t kMaxDepth = 64;
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

class Parser {
 public:
  explicit Parser(std::string path) : path_(std::move(path)) {}

  SampleForm parse(const Json& json) {
    form_.structure.root = node(json, {}, {}, 0);
    if (form_.arrays.empty()) refuse("there is no array in it");
    return std::move(form_);
  }

 private:
  Node node(const Json& json, const std::string& path, const std::string& key, std::size_t depth) {
    if (depth > kMaxDepth) throw Error(ErrorCode::kLimit, "the form of samples is nested too deeply", {.path = path_});
    if (!json.is_object() || json.empty()) refuse("a part of it is not an object");
    if (json.contains(kValues)) return leaf(json, path, key);
    const auto only = json.begin();
    const Json& children = only.value();
    if (json.size() != 1 || !children.is_array()) refuse("a part of it is neither an array nor children");
    Node out;
    out.kind = kind_of(only.key());
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (out.kind != Node::Kind::kDict) {
        out.children.push_back(node(children[i], core::format("{}[{}]", path, i), key, depth + 1));
        continue;
      }
      const Json& pair = children[i];
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) refuse("a child of a dict is not a pair");
      const auto& child = pair[0].get_ref<const std::string&>();
      out.keys.push_back(Value::string(child));
      out.children.push_back(node(pair[1], core::format("{}[{}]", path, core::quoted(child)), child, depth + 1));
    }
    return out;
  }

  Node::Kind kind_of(std::string_view name) const {
    if (name == kDict) return Node::Kind::kDict;
    if (name == kList) return Node::Kind::kList;
    if (name == kTuple) return Node::Kind::kTuple;
    refuse(core::format("it has {}, which no version of Penstock knows", core::quoted(name)));
  }

  Node leaf(const Json& json, const std::string& path, const std::string& key) {
    const auto number = static_cast<std::uint32_t>(form_.arrays.size());
    form_.structure.leaves.push_back({LeafKind::kTensor, number, path, key});
    form_.arrays.push_back({text(json[kValues]), json.contains(kOffsets) ? text(json[kOffsets]) : ""});
    // Else a few bytes could make a sample of any size.
    const std::string& values = form_.arrays.back().values;
    if (!taken_.insert(values).second) refuse(core::format("{} is two parts of it", core::quoted(values)));
    Node out;
    out.leaf = number;
    return out;
  }

  std::string text(const Json& json) const {
    if (!json.is_string()) refuse("an array is not named by text");
    return json.get<std::string>();
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::kCorrupt,
                core::format("the metadata {} is not the form of packed samples: {}", kSampleFormKey, why),
                {.path = path_});
  }

  std::string path_;
  SampleForm form_;
  std::set<std::string> taken_;
};

}  // namespace

SampleForm form_of(const Structure& structure, const std::string& what) { return Former(structure, what).form(); }

std::string to_json(const SampleForm& form) { return json_of(form.structure.root, form).dump(); }

SampleForm parse_sample_form(std::string_view json, const std::string& path) {
  return Parser(path).parse(Json::parse(json, nullptr, false));
}

}  // namespace penstock::data
