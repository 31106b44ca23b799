// A part of a file's content as an archive by itself. Entries and storages that only the rest needs are left out, so
// that whatever loads an archive reads no other bytes than the part's.

#include "archive/archive_part.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "archive/archive_state.h"
#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "value/nodes.h"
#include "value/part.h"

namespace penstock {
namespace {

using Kind = Value::Kind;
using Node = ValueGraph::Node;

constexpr std::size_t kMostShown = 8;

/// Says what keys the content has, for the error of a wrong one.
std::string contents(const Value& value) {
  if (value.is(Kind::kList) || value.is(Kind::kTuple)) return core::format("it is a list of {} items", value.size());
  if (value.is(Kind::kTensor)) return "it is a tensor and has no keys";
  if (!value.is(Kind::kDict)) return "it is not a dict, so it has no keys";
  if (value.size() == 0) return "it is an empty dict";
  std::string out = "its keys are ";
  for (std::size_t i = 0; i < std::min(value.size(), kMostShown); ++i) {
    const Value key = value.item(i).first;
    out += (i == 0 ? "" : ", ") + (key.is(Kind::kString) ? core::quoted(key.as_string()) : key.to_string());
  }
  return value.size() > kMostShown ? core::format("{} and {} more", out, value.size() - kMostShown) : out;
}

[[noreturn]] void throw_no_key(const detail::ArchiveState& state, std::string_view key) {
  const Value& content = state.index.structure;
  core::NearestNames nearest(key);
  for (std::size_t i = 0; content.is(Kind::kDict) && i < content.size(); ++i) {
    const Value name = content.item(i).first;
    if (name.is(Kind::kString)) nearest.add(name.as_string());
  }
  const std::string meant = core::did_you_mean(nearest.take());
  throw Error(ErrorCode::kKeyNotFound,
              core::format("the file's content has no {}: {}{}{}", core::quoted(key), contents(content),
                           meant.empty() ? "" : "; ", meant),
              {state.path()});
}

// The index of a part.

class Narrowing {
 public:
  Narrowing(const detail::ArchiveState& state, std::string_view stem)
      : from_(state.index), stem_(stem), positions_(state.index.entries.size(), archive::kNowhere) {}

  format::Index run(const Value& part) {
    out_.sources = from_.sources;
    out_.metadata = from_.metadata;
    out_.empty_metadata = from_.empty_metadata;
    collect(part);
    take_named();
    take_others();
    number_storages();
    out_.structure = with_entries(part, positions_);
    return std::move(out_);
  }

 private:
  /// Notes the entries and the unknown names that the part leads to.
  void collect(const Value& part) {
    std::unordered_set<std::string> names;
    for_each_node(part, [&](const Node& node) {
      if (const auto* entry = std::get_if<Node::Entry>(&node.scalar)) wanted_.push_back(entry->index);
      if (node.kind == Kind::kObject || node.kind == Kind::kGlobal) names.insert(node.type_name);
    });
    std::sort(wanted_.begin(), wanted_.end());
    for (const std::string& name : from_.unknown_globals) {
      if (names.contains(name)) out_.unknown_globals.push_back(name);
    }
    for (const std::size_t entry : wanted_) at_[&from_.entries[entry]].numbers.push_back(entry);
  }

  /// Takes an entry for each name within the part. A tensor that several ways lead to has a name for each; the
  /// structure knows only the first, which may lie outside of the part.
  void take_named() {
    for (std::size_t i = 0; i < from_.entries.size(); ++i) {
      const TensorEntry& entry = from_.entries[i];
      if (!entry.name.starts_with(stem_) || entry.name.size() == stem_.size()) continue;
      const auto found = at_.find(&entry);
      if (found == at_.end()) continue;
      auto& [numbers, has_name] = found->second;
      if (!std::exchange(has_name, true)) {
        for (const std::size_t number : numbers) positions_[number] = out_.entries.size();
      } else if (std::binary_search(wanted_.begin(), wanted_.end(), i)) {
        positions_[i] = out_.entries.size();
      }
      out_.entries.push_back(entry);
      out_.entries.back().name.erase(0, stem_.size());
    }
  }

  void take_others() {
    for (const std::size_t entry : wanted_) {
      if (positions_[entry] != archive::kNowhere) continue;
      positions_[entry] = out_.entries.size();
      out_.entries.push_back(from_.entries[entry]);
    }
  }

  void number_storages() {
    std::vector<std::size_t> numbers(from_.storages.size(), archive::kNowhere);
    for (TensorEntry& entry : out_.entries) {
      std::size_t& number = numbers[entry.storage];
      if (number == archive::kNowhere) {
        number = out_.storages.size();
        out_.storages.push_back(from_.storages[entry.storage]);
      }
      entry.storage = number;
    }
  }

  /// Tensors that are one but for their names. Very many may be one, or begin at one byte.
  struct Same {
    std::vector<std::size_t> numbers;
    bool has_name = false;  ///< within the part
  };
  struct ByView {
    bool operator()(const TensorEntry* a, const TensorEntry* b) const {
      if (a->shape != b->shape) return std::ranges::lexicographical_compare(a->shape, b->shape);
      if (a->strides != b->strides) return std::ranges::lexicographical_compare(a->strides, b->strides);
      if (a->dtype != b->dtype) return a->dtype.name() < b->dtype.name();
      const auto rest = [](const TensorEntry& of) {
        return std::tuple(of.storage, of.byte_offset, of.requires_grad, of.encoding.swapped, of.encoding.conjugate,
                          of.encoding.negative);
      };
      return rest(*a) < rest(*b);
    }
  };

  const format::Index& from_;
  std::string_view stem_;
  std::vector<std::size_t> positions_;  ///< of each entry that the part leads to, among those that are taken
  std::vector<std::size_t> wanted_;
  std::map<const TensorEntry*, Same, ByView> at_;
  format::Index out_;
};

// A dict with only the keys that begin with a prefix.

/// The state of an OrderedDict, which torch keeps beside its items: `_metadata` has the version of each module by the
/// module's name, which is a key without its last step.
std::unique_ptr<Value> stripped_state(const Value& state, std::string_view prefix) {
  const std::optional<Value> versions = state.find("_metadata");
  if (!versions || !versions->is(Kind::kDict)) return std::make_unique<Value>(state);
  std::vector<Value::Item> items;
  const std::string_view stem = prefix.ends_with('.') ? prefix.substr(0, prefix.size() - 1) : prefix;
  for (std::size_t i = 0; i < versions->size(); ++i) {
    const auto [key, item] = versions->item(i);
    if (!key.is(Kind::kString)) continue;
    const std::string_view name = key.as_string();
    if (name == stem) items.emplace_back(Value::string({}), item);
    if (name.starts_with(prefix)) items.emplace_back(Value::string(std::string(name.substr(prefix.size()))), item);
  }
  Value kept = Value::dict(std::move(items), versions->type_name());
  return std::make_unique<Value>(
      Value::dict(std::vector<std::pair<std::string, Value>>{{"_metadata", std::move(kept)}}));
}

std::unique_ptr<Value> stripped(const Value& dict, std::string_view prefix) {
  ValueGraph graph;
  Node* const out = graph.add(Kind::kDict);
  out->type_name = dict.type_name();
  for (std::size_t i = 0; i < dict.size(); ++i) {
    const auto [key, item] = dict.item(i);
    if (!key.is(Kind::kString) || !key.as_string().starts_with(prefix)) continue;
    out->items.push_back(Value::string(key.as_string().substr(prefix.size())));
    out->items.push_back(item);
  }
  if (out->items.empty()) return nullptr;
  if (const std::optional<Value> state = dict.state()) out->state = stripped_state(*state, prefix);
  return std::make_unique<Value>(graph.seal(out));
}

}  // namespace

namespace archive {

std::shared_ptr<const detail::ArchiveState> narrowed(const detail::ArchiveState& state, const Value& part,
                                                     std::string_view stem) {
  auto out = std::make_shared<detail::ArchiveState>();
  out->format = state.format;
  out->index = Narrowing(state, stem).run(part);
  out->content = state.content;
  out->verify_checksums = state.verify_checksums;
  out->open_seconds = state.open_seconds;
  out->open_traffic = state.open_traffic;
  return out;
}

}  // namespace archive

Archive Archive::part(TextView key) const {
  const std::optional<Value> found = value::part_at(structure(), key);
  if (!found) throw_no_key(*state_, key);
  return Archive(archive::narrowed(*state_, *found, std::string(key) + "."));
}

Archive Archive::part(const Value& key) const {
  if (!key.is(Kind::kString) && !key.is(Kind::kInt)) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("{} was given as a key, which must be a string or an integer", key.to_string()));
  }
  const bool is_text = key.is(Kind::kString);
  const std::string text = is_text ? key.as_string() : std::to_string(key.as_int());
  const std::optional<Value> found = is_text ? structure().find(text) : value::part_at(structure(), key.as_int());
  if (!found) throw_no_key(*state_, text);
  return Archive(archive::narrowed(*state_, *found, text + "."));
}

Archive Archive::with_prefix(TextView prefix) const {
  if (!structure().is(Kind::kDict)) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("keys that begin with {} were asked for, but the content has none: {}",
                             core::quoted(prefix), contents(structure())),
                {path()});
  }
  const std::unique_ptr<Value> found = stripped(structure(), prefix);
  if (!found) {
    throw Error(ErrorCode::kKeyNotFound,
                core::format("no key of the content begins with {}: {}", core::quoted(prefix), contents(structure())),
                {path()});
  }
  return Archive(archive::narrowed(*state_, *found, prefix));
}

}  // namespace penstock
