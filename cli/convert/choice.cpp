// Walks the structure of each file, and keeps of its dicts the items that are chosen. A list is kept or left out as a
// whole, because what lies behind an element that is left out would move.

#include "cli/convert/choice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <unordered_set>
#include <utility>

#include "archive/composition.h"
#include "archive/inspect/leaves.h"
#include "cli/name_patterns.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/shared_walk.h"
#include "core/text.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock::cli {
namespace {

using Kind = Value::Kind;

/// std::regex goes a call deeper for each character.
constexpr std::size_t kMostRenamed = 4096;

// s/REGEX/TEXT/

class Renaming {
 public:
  /// Throws std::regex_error, and std::invalid_argument for what has another form.
  explicit Renaming(const std::string& text) : given_(text) {
    if (text.size() < 4 || text[0] != 's') throw std::invalid_argument("");
    const std::vector<std::string> parts = split(text.substr(2), text[1]);
    if (parts.size() != 3 || parts[2].find_first_not_of("gi") != std::string::npos) throw std::invalid_argument("");
    const bool any_case = parts[2].find('i') != std::string::npos;
    const auto syntax = std::regex::ECMAScript | (any_case ? std::regex::icase : std::regex::flag_type{});
    regex_ = std::regex(parts[0], syntax);
    text_ = parts[1];
    if (parts[2].find('g') == std::string::npos) flags_ |= std::regex_constants::format_first_only;
  }

  std::string operator()(const std::string& name) {
    if (name.size() > kMostRenamed) {
      throw Error(ErrorCode::kLimit, core::format("names of more than {} bytes are not renamed", kMostRenamed),
                  {.tensor = name.substr(0, 80)});
    }
    std::string out = std::regex_replace(name, regex_, text_, flags_);
    changes_any_ |= out != name;
    return out;
  }

  /// Told and no error, because one renaming may be meant for many files, of which some have such names.
  void tell_unused() const {
    if (!changes_any_) print_error(core::format("--rename {}: it changes no name", core::quoted(given_)));
  }

 private:
  /// The separator is part of the text behind a backslash.
  static std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) {
        if (text[i + 1] != separator) parts.back() += '\\';
        parts.back() += text[++i];
      } else if (text[i] == separator) {
        parts.emplace_back();
      } else {
        parts.back() += text[i];
      }
    }
    return parts;
  }

  std::string given_;
  std::regex regex_;
  std::string text_;
  bool changes_any_ = false;
  std::regex_constants::match_flag_type flags_ = std::regex_constants::format_sed;
};

class Chooser {
 public:
  explicit Chooser(const Choice& choice) : only_(choice.only), exclude_(choice.exclude), text_keys_(choice.text_keys) {
    for (const std::string& text : choice.rename) renamings_.emplace_back(text);
  }

  Archive run(const std::vector<Archive>& archives) {
    for (const Archive& archive : archives) {
      composition_.add_files(archive);
      add(archive);
    }
    only_.require_used(names_);
    exclude_.require_used(names_);
    if (is_nothing_) throw Error(ErrorCode::kKeyNotFound, "nothing is left of the content by --only and --exclude");
    for (const Renaming& renaming : renamings_) renaming.tell_unused();
    return composition_.take(archives.size() == 1 && renamings_.empty() ? *whole_ : Value::dict(std::move(items_)));
  }

 private:
  void add(const Archive& archive) {
    archive_ = &archive;
    const Value& root = archive.structure();
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
      const std::string name = archive::path_below({}, key);
      put(name, name, item);
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
    if (const auto state = value.state()) out->state = std::make_unique<Value>(*state);
    above_.erase(value.node_id());
    return out->items.empty() ? std::nullopt : std::optional(graph.seal(out));
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

std::string check_rename(const std::string& text) {
  try {
    Renaming renaming(text);
    return {};
  } catch (const std::regex_error& error) {
    return core::format("a regular expression of ECMAScript ({})", error.what());
  } catch (const std::invalid_argument&) {
    return "s/REGEX/TEXT/, with g (each match) or i (any case) behind it where wanted";
  }
}

Archive chosen(const std::vector<Archive>& archives, const Choice& choice) { return Chooser(choice).run(archives); }

}  // namespace penstock::cli
