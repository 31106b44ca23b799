// The nested content becomes nodes first, and nodes become rows: a layer's row tells the sum of its children, so it can
// only be written when they are known.

#include "cli/info/tree.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/text.h"
#include "penstock/value.h"

namespace penstock::cli {
namespace {

using Kind = Value::Kind;

/// Of lists of numbers as many items are shown, of text as many bytes.
constexpr std::size_t kMostItems = 8;
constexpr std::size_t kMostText = 50;
/// Names are taken apart at their dots down to this level: a file's nesting is bounded by its reader, dots are not.
constexpr std::size_t kMostGrouped = 64;

struct Node {
  std::string label;
  std::string what = {};   ///< type and shape, or a value; what a layer is
  std::string where = {};  ///< the file that holds a tensor
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  bool has_tensors = false;
  bool is_again = false;  ///< counted elsewhere
  bool is_group = false;  ///< made of names with dots
  std::vector<Node> children = {};
  std::unordered_map<std::string, std::size_t> groups = {};  ///< children that are groups, by label
};

std::string key_text(const Value& key) { return key.is(Kind::kString) ? key.as_string() : key.to_string(); }

/// Values that stand for themselves on a line.
bool is_plain(const Value& value) { return !is_container(value) && !value.is(Kind::kTensor); }

class Builder {
 public:
  explicit Builder(const Archive& archive) : archive_(archive), has_shards_(archive.sources().size() > 2) {}

  Node build() { return make("", archive_.structure(), "", 0); }

 private:
  Node make(std::string label, const Value& value, const std::string& path, std::size_t level) {
    Node node{.label = std::move(label)};
    if (value.is(Kind::kTensor)) {
      describe_tensor(node, value, path);
    } else if (!is_container(value)) {
      node.what = shortened(value.to_string(), kMostText);
    } else if (const auto [seen, is_new] = seen_.try_emplace(value.node_id(), path); !is_new && value.size() > 0) {
      node.what = "the same as " + (seen->second.empty() ? "the whole" : seen->second);
    } else {
      describe_container(node, value, path, level);
    }
    return node;
  }

  void describe_tensor(Node& node, const Value& value, const std::string& path) {
    const TensorEntry& entry = archive_.entries()[*value.entry_index()];
    node.what = core::format("{} {}", entry.dtype.name(), entry.shape.to_string());
    node.has_tensors = true;
    if (const auto [seen, is_new] = tensors_.try_emplace(*value.entry_index(), path); !is_new) {
      node.what += ", the same as " + seen->second;
      node.is_again = true;
      return;
    }
    node.elements = static_cast<std::uint64_t>(entry.shape.numel());
    node.bytes = entry.nbytes();
    if (!has_shards_) return;
    const Source& source = archive_.sources()[archive_.storages()[entry.storage].source];
    node.where = std::filesystem::path(source.name()).filename().string();
  }

  void describe_container(Node& node, const Value& value, const std::string& path, std::size_t level) {
    if (is_row_of_values(value)) {
      node.what = row_of_values(value);
      return;
    }
    if (value.is(Kind::kObject)) node.what = value.type_name() + " (kept inert, not run)";
    if (value.size() == 0 && !value.is(Kind::kObject)) node.what = value.to_string();
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value.is(Kind::kDict)) {
        const auto [key, item] = value.item(i);
        add(node, key, item, path, level);
      } else {
        node.children.push_back(
            make(core::format("[{}]", i), value[i], below(path, core::format("[{}]", i)), level + 1));
      }
    }
    // Of a dict it is what torch notes beside the tensors: versions of modules.
    if (const auto state = value.is(Kind::kObject) ? value.state() : std::nullopt) {
      node.children.push_back(make("state", *state, below(path, "state"), level + 1));
    }
    sum_up(node);
  }

  /// Under the groups that the dots of its key name.
  void add(Node& parent, const Value& key, const Value& item, const std::string& path, std::size_t level) {
    Node* at = &parent;
    std::string text = key_text(key);
    const std::string whole = below(path, text);
    if (key.is(Kind::kString)) {
      for (; level < kMostGrouped; ++level) {
        const std::size_t dot = text.find('.');
        if (dot == 0 || dot >= text.size() - 1) break;
        at = &group(*at, text.substr(0, dot));
        text.erase(0, dot + 1);
      }
    }
    at->children.push_back(make(std::move(text), item, whole, level + 1));
  }

  static Node& group(Node& parent, const std::string& label) {
    const auto [found, is_new] = parent.groups.try_emplace(label, parent.children.size());
    if (is_new) parent.children.push_back({.label = label, .is_group = true});
    return parent.children[found->second];
  }

  static void sum_up(Node& node) {
    for (Node& child : node.children) {
      if (child.is_group) sum_up(child);
      node.elements += child.elements;
      node.bytes += child.bytes;
      node.has_tensors = node.has_tensors || child.has_tensors;
    }
  }

  /// Short, since every part keeps its own.
  static std::string below(const std::string& path, const std::string& key) {
    if (path.empty()) return shortened(key, kMostText);
    return (path.size() > 2 * kMostText ? "..." : path) + (key.starts_with('[') ? "" : ".") + shortened(key, kMostText);
  }

  /// A list of nothing but numbers, text and the like, which takes one line.
  static bool is_row_of_values(const Value& value) {
    if (value.is(Kind::kDict) || value.is(Kind::kObject)) return false;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (!is_plain(value[i])) return false;
    }
    return true;
  }

  static std::string row_of_values(const Value& value) {
    if (value.size() <= kMostItems) return shortened(value.to_string(), kMostText);
    const std::string_view kind = value.is(Kind::kTuple) ? "tuple" : value.is(Kind::kSet) ? "set" : "list";
    std::string text = core::format("{} of ", kind) + counted(value.size(), "item") + ": ";
    for (std::size_t i = 0; i < kMostItems; ++i) text += shortened(value[i].to_string(), kMostText) + ", ";
    return shortened(text + "...", kMostText);
  }

  const Archive& archive_;
  bool has_shards_;
  std::unordered_map<const void*, std::string> seen_;     ///< containers, by the path of their first place
  std::unordered_map<std::size_t, std::string> tensors_;  ///< entries, likewise
};

/// The lines that lead to a node, as `tree` draws them.
struct Branches {
  std::string_view middle, last, through, none;
};

Branches branches() {
  return speaks_utf8() ? Branches{"├─ ", "└─ ", "│  ", "   "} : Branches{"|- ", "`- ", "|  ", "   "};
}

class Rows {
 public:
  explicit Rows(std::size_t depth) : depth_(depth), branches_(branches()) {}

  std::vector<std::vector<std::string>> take(const Node& root) {
    if (root.children.empty()) add_row("", root);
    below(root, "", 1);
    return std::move(rows_);
  }

 private:
  void below(const Node& node, const std::string& before, std::size_t level) {
    if (level > depth_) return;
    for (const Node& child : node.children) {
      const bool is_last = &child == &node.children.back();
      add_row(before + std::string(is_last ? branches_.last : branches_.middle) +
                  printable(shortened(child.label, kMostText)),
              child);
      below(child, before + std::string(is_last ? branches_.none : branches_.through), level + 1);
    }
  }

  void add_row(std::string label, const Node& node) {
    const bool counts = node.has_tensors && !node.is_again;
    rows_.push_back({std::move(label), printable(node.what), counts ? human_count(node.elements) : "",
                     counts ? core::format_bytes(node.bytes) : "", printable(node.where)});
  }

  std::size_t depth_;
  Branches branches_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace

bool is_container(const Value& value) {
  const Value::Kind kind = value.kind();
  return kind == Value::Kind::kDict || kind == Value::Kind::kList || kind == Value::Kind::kTuple ||
         kind == Value::Kind::kSet || kind == Value::Kind::kObject;
}

void print_tree(const Archive& archive, std::size_t depth) {
  const Node root = Builder(archive).build();
  print_table({"NAME", "TYPE OR VALUE", "ELEMENTS", "BYTES", archive.sources().size() > 2 ? "FILE" : ""},
              Rows(depth).take(root), {2, 3});
}

}  // namespace penstock::cli
