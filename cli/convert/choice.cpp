// Walks the structure of each file, and keeps of its dicts the items that are chosen. A list is kept or left out as a
// whole, because what lies behind an element that is left out would move.

#include "cli/convert/choice.h"

#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "archive/composition.h"
#include "archive/inspect/leaves.h"
#include "cli/convert/renaming.h"
#include "cli/name_patterns.h"
#include "core/format.h"
#include "core/shared_walk.h"
#include "core/text.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock::cli {
namespace {

using Kind = Value::Kind;

class Chooser {
 public:
  explicit Chooser(const Choice& choice) : only_(choice.only), exclude_(choice.exclude), text_keys_(choice.text_keys) {
    for (const std::string& text : choice.rename) renamings_.emplace_back(text);
  }

  Archive run(const std::vector<Archive>& archives, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < archives.size(); ++i) {
      composition_.add_files(archives[i]);
      add(archives[i], names.empty() ? std::string() : names[i]);
    }
    only_.require_used(names_);
    exclude_.require_used(names_);
    if (is_nothing_) throw Error(ErrorCode::kKeyNotFound, "nothing is left of the content by --only and --exclude");
    for (const Renaming& renaming : renamings_) renaming.tell_unused();
    return composition_.take(archives.size() == 1 && renamings_.empty() ? *whole_ : Value::dict(std::move(items_)));
  }

 private:
  void add(const Archive& archive, const std::string& name) {
    archive_ = &archive;
    const bool is_named = !archive.structure().is(Kind::kDict) && !name.empty();
    const Value root = is_named ? Value::dict({{name, archive.structure()}}) : archive.structure();
    if (!root.is(Kind::kDict)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "its content is not a dict and has no names to choose, rename or put together by",
                  {.path = archive.path()});
    }
    whole_ = kept(root, {});
    if (!whole_) return;
    is_nothing_ = false;
    if (!renamings_.empty()) return;  // kept_whole has put each
    for (const auto& [key, item] : whole_->items()) {
      const std::string known = archive::path_below({}, key);
      put(known, known, item);
    }
  }

  bool is_to_be_text(const Value& key) const { return text_keys_ && key.is(Kind::kInt); }

  /// 1 and "1" would be one key.
  void require_different_keys(const Value& dict, const std::string& path) const {
    for (const auto& [key, item] : dict.items()) {
      if (!is_to_be_text(key) || !dict.find(key.to_string())) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("{} has the key {} as an integer and as text, which --text-keys would make one",
                               path.empty() ? "the content" : core::quoted(path), key.to_string()),
                  {.path = archive_->path()});
    }
  }

  /// What is kept of a value, over the entries of the new archive. Nothing where all of it is left out.
  std::optional<Value> kept(const Value& value, const std::string& path) {
    if (!value.is(Kind::kDict) || (value.size() == 0 && !path.empty())) return kept_whole(value, path);
    if (!above_.insert(value.node_id()).second) {
      throw Error(ErrorCode::kUnsupported, core::format("{} holds itself", core::quoted(path)),
                  {.path = archive_->path()});
    }
    walk_.visit(value.node_id(), value.size(), value.size() * path.size());
    ValueGraph graph;
    ValueGraph::Node* const out = graph.add(Kind::kDict);
    out->type_name = value.type_name();
    require_different_keys(value, path);
    for (const auto& [key, item] : value.items()) {
      std::optional<Value> part = kept(item, archive::path_below(path, key));
      if (!part) continue;
      out->items.push_back(is_to_be_text(key) ? Value::string(key.to_string()) : key);
      out->items.push_back(std::move(*part));
    }
    above_.erase(value.node_id());
    if (out->items.empty()) return std::nullopt;
    // Tensors may lie in it too. Names that change are those of one dict, which has no state.
    if (const auto state = value.state(); state && renamings_.empty()) {
      out->state = std::make_unique<Value>(composition_.add(*archive_, *state));
    }
    return graph.seal(out);
  }

  std::optional<Value> kept_whole(const Value& value, const std::string& path) {
    std::size_t wanted = 0;
    std::size_t others = 0;
    for (const std::string& name : archive::paths_in(value, path)) ++(is_wanted(name) ? wanted : others);
    if (wanted == 0) return std::nullopt;
    if (others != 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("{} of {} parts of {} were chosen, which is kept or left out as a whole", wanted,
                               wanted + others, core::quoted(path)),
                  {.path = archive_->path()});
    }
    std::string name = path;
    for (Renaming& renaming : renamings_) name = renaming(name);
    const auto entry = value.entry_index();
    Value out = entry ? composition_.add(*archive_, *entry, name) : composition_.add(*archive_, value);
    if (!renamings_.empty()) put(name, path, out);
    return out;
  }

  bool is_wanted(const std::string& name) {
    names_.push_back(name);
    const bool is_excluded = exclude_.match(name);
    return (only_.empty() || only_.match(name)) && !is_excluded;
  }

  void put(const std::string& name, const std::string& was, const Value& item) {
    if (name.empty()) {
      throw Error(ErrorCode::kInvalidArgument, core::format("nothing is left of the name {}", core::quoted(was)),
                  {.path = archive_->path()});
    }
    const auto [known, added] = taken_.try_emplace(name, core::format("{} of {}", core::quoted(was), archive_->path()));
    if (!added) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("{} and {} would both be called {}; give one another name with --rename", known->second,
                               core::quoted(was), core::quoted(name)),
                  {.path = archive_->path()});
    }
    items_.emplace_back(Value::string(name), item);
  }

  NamePatterns only_;
  NamePatterns exclude_;
  bool text_keys_;
  std::vector<Renaming> renamings_;
  archive::Composition composition_;
  const Archive* archive_ = nullptr;
  std::optional<Value> whole_;
  bool is_nothing_ = true;
  std::vector<Value::Item> items_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> taken_;  ///< names, and where each comes from
  std::unordered_set<const void*> above_;
  core::SharedWalk walk_{"each way to a tensor has a name of its own; convert a part of it with --part"};
};

}  // namespace

Archive chosen(const std::vector<Archive>& archives, const std::vector<std::string>& names, const Choice& choice) {
  return Chooser(choice).run(archives, names);
}

}  // namespace penstock::cli
