// WebDataset's ways to name shards. Lists of shards (wids) may come from anybody: a file that one names must lie beside
// it, so that a list cannot choose which files of this machine are read. URLs are open to whoever asks, so it may name
// them.
#include "data/tar/shard_list.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/json_reader.h"
#include "core/parse_number.h"
#include "core/shown_url.h"
#include "core/text.h"
#include "data/scan/glob.h"
#include "data/scan/name_match.h"
#include "io/file/file_url.h"
#include "io/file/open_path.h"
#include "io/file/url.h"
#include "io/locations.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::data {
namespace {

constexpr std::size_t kMostShards = 1'000'000;
constexpr std::uint64_t kMostList = std::uint64_t{256} << 20;

[[noreturn]] void throw_too_many(std::string_view text) {
  throw Error(ErrorCode::kLimit, "this stands for more than a million shards; name fewer at once",
              {.path = core::shown_path(text)});
}

struct Braces {
  std::size_t begin;  ///< the opening one
  std::size_t end;    ///< behind the closing one
  std::vector<std::string> choices;
};

/// The numbers of "000..146"; where one has zeros in front, all are as wide as the wider of the two. Nothing where it
/// is no range.
std::optional<std::vector<std::string>> range_of(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos) return std::nullopt;
  const auto number = [](std::string_view digits) -> std::optional<std::uint64_t> {
    return digits.size() <= 18 ? core::parse_number<std::uint64_t>(digits) : std::nullopt;
  };
  const std::string_view first_text = text.substr(0, dots);
  const std::string_view last_text = text.substr(dots + 2);
  const auto first = number(first_text);
  const auto last = number(last_text);
  if (!first || !last || *last < *first) {
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("found {{{}}}, expected a range such as {{000..146}}, whose numbers rise", core::escaped(text)));
  }
  if (*last - *first >= kMostShards) throw_too_many(text);
  const auto is_wide = [](std::string_view digits) { return digits.size() > 1 && digits.front() == '0'; };
  const std::size_t width =
      is_wide(first_text) || is_wide(last_text) ? std::max(first_text.size(), last_text.size()) : 0;
  std::vector<std::string> out;
  for (std::uint64_t i = *first; i <= *last; ++i) out.push_back(core::format("{:0{}}", i, width));
  return out;
}

/// The choices of the braces that open at `open`, which may have braces of their own; nothing where these braces stand
/// for nothing.
std::optional<Braces> braces_at(std::string_view text, std::size_t open) {
  std::vector<std::size_t> commas{open};
  std::size_t depth = 0;
  bool is_nested = false;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') is_nested = ++depth > 1 || is_nested;
    if (text[i] == ',' && depth == 1) commas.push_back(i);
    if (text[i] != '}' || --depth != 0) continue;
    auto range = is_nested ? std::nullopt : range_of(text.substr(open + 1, i - open - 1));
    if (range) return Braces{open, i + 1, std::move(*range)};
    if (commas.size() == 1) return std::nullopt;
    commas.push_back(i);
    Braces out{open, i + 1, {}};
    for (std::size_t c = 0; c + 1 < commas.size(); ++c) {
      out.choices.emplace_back(text.substr(commas[c] + 1, commas[c + 1] - commas[c] - 1));
    }
    return out;
  }
  return std::nullopt;
}

/// The first braces that stand for something.
std::optional<Braces> find_braces(std::string_view text) {
  for (std::size_t open = text.find('{'); open != text.npos; open = text.find('{', open + 1)) {
    if (auto braces = braces_at(text, open)) return braces;
  }
  return std::nullopt;
}

/// A list of shards as WebDataset's wids has it: {"shardlist": [{"url": ..., "nsamples": ...}, ...], ...}.
class WidsReader final : public core::JsonReader {
 public:
  WidsReader(std::string_view text, const std::string& path) : JsonReader(text, path, 0) {}

  struct Entry {
    std::string url = {};
    std::optional<std::int64_t> samples = {};
  };
  std::vector<Entry> entries;
  std::string base;

 private:
  enum class State : std::uint8_t { kStart, kTop, kList, kEntry };

  void on_object() override {
    if (state_ == State::kStart) {
      state_ = State::kTop;
    } else if (state_ == State::kList) {
      state_ = State::kEntry;
      known_.erase("url");
      known_.erase("nsamples");
      if (entries.size() == kMostShards) throw_too_many(path());
      entries.emplace_back();
    } else {
      unexpected("an object");
    }
  }
  void on_object_end() override {
    if (state_ == State::kEntry && entries.back().url.empty()) fail("a shard of the list has no url");
    state_ = state_ == State::kEntry ? State::kList : State::kStart;
  }
  void on_array() override {
    if (state_ != State::kTop || key_ != "shardlist") unexpected("a list");
    state_ = State::kList;
  }
  void on_array_end() override { state_ = State::kTop; }
  void on_key(std::string& name) override {
    const bool is_wanted =
        state_ == State::kTop ? name == "shardlist" || name == "base" : name == "url" || name == "nsamples";
    if (!is_wanted) skip_value();
    if (is_wanted && !known_.insert(name).second) fail(core::format("the list of shards says {} twice", name));
    key_ = std::move(name);
  }
  void on_string(std::string& text) override {
    if (state_ == State::kEntry && key_ == "url") {
      entries.back().url = std::move(text);
    } else if (state_ == State::kTop && key_ == "base") {
      base = std::move(text);
    } else {
      unexpected("a text");
    }
  }
  void on_unsigned(std::uint64_t number) override {
    if (state_ != State::kEntry || key_ != "nsamples" || number > (std::uint64_t{1} << 62)) unexpected("a number");
    entries.back().samples = static_cast<std::int64_t>(number);
  }
  void on_null() override {
    if (key_ != "base" && key_ != "nsamples") unexpected("null");
  }
  [[noreturn]] void unexpected(std::string_view kind) override {
    fail(core::format("the list of shards holds {} where a list of wids has none", kind));
  }

  State state_ = State::kStart;
  std::string key_;
  std::set<std::string> known_;  ///< names of the list, and of the shard at hand
};

/// Whether a name leads nowhere but into the folder that it is seen from.
bool stays_inside(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\0') != name.npos) return false;
  if (name.find("://") != name.npos || name.starts_with("pipe:")) return false;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    if (name.substr(at, slash - at) == "..") return false;
    at = slash + 1;
  }
  return true;
}

/// Beside the list at `list`, or at `base`, which the list names.
std::string place_of(const std::string& name, const std::string& base, const std::string& list) {
  if (io::is_url(name)) return name;
  if (stays_inside(name)) {
    if (io::is_url(base)) return base + (base.ends_with('/') ? "" : "/") + name;
    const bool is_inside = base.empty() || stays_inside(base);
    const std::string folder = list.substr(0, list.rfind('/') + 1);
    if (is_inside) return folder + (base.empty() || base.ends_with('/') ? base : base + '/') + name;
  }
  throw Error(
      ErrorCode::kUnsafe,
      core::format("the list of shards names {}, which is neither a URL nor a file below the list's folder; give "
                   "the shards themselves",
                   core::quoted(core::shown_path(name))),
      {.path = core::shown_path(list)});
}

void add_list(const std::string& list, ShardList& out) {
  const Source source = open_source(list);
  if (source.size() > kMostList) {
    throw Error(ErrorCode::kLimit, "a list of shards has more than 256 MiB; name the shards", {.path = source.name()});
  }
  std::string text(static_cast<std::size_t>(source.size()), '\0');
  source.read(0, std::as_writable_bytes(std::span(text)));
  WidsReader reader(text, source.name());
  reader.read();
  for (const WidsReader::Entry& entry : reader.entries) {
    out.samples.resize(out.paths.size());
    out.paths.push_back(place_of(entry.url, reader.base, list));
    out.samples.push_back(entry.samples);
  }
}

void add(const std::string& location, ShardList& out) {
  const std::string text = io::local_path(location);
  if (text.starts_with("pipe:")) {
    throw Error(ErrorCode::kUnsafe,
                "Penstock runs no program to read shards; name the object's URL, or read the program's output as '-'",
                {.path = text});
  }
  if (text.ends_with(".json")) return add_list(text, out);
  const bool is_folder = text.ends_with('/') || io::is_local_folder(text);
  // The '?' of a web address begins its query.
  const bool is_pattern = !text.starts_with("http://") && !text.starts_with("https://") && is_magic(text);
  if (!is_folder && !is_pattern) {
    out.paths.push_back(text);
    return;
  }
  const PathTable found = expand(is_folder ? text + (text.ends_with('/') ? "*.tar" : "/*.tar") : text);
  for (std::int64_t i = 0; i < found.size(); ++i) out.paths.push_back(found.path(i));
}

}  // namespace

std::vector<std::string> expand_braces(std::string_view text) {
  std::vector<std::string> out;
  std::vector<std::string> open{std::string(text)};
  while (!open.empty()) {
    const std::string next = std::move(open.back());
    open.pop_back();
    const auto braces = find_braces(next);
    if (!braces) {
      out.push_back(next);
      continue;
    }
    if (out.size() + open.size() + braces->choices.size() > kMostShards) throw_too_many(text);
    for (auto choice = braces->choices.rbegin(); choice != braces->choices.rend(); ++choice) {
      open.push_back(next.substr(0, braces->begin) + *choice + next.substr(braces->end));
    }
  }
  return out;
}

namespace {

/// Where a list ends: at "::", but not at that of an address such as http://[::1]/a.tar.
std::size_t end_of_list(std::string_view joined, std::size_t begin) {
  for (std::size_t at = joined.find("::", begin); at != joined.npos; at = joined.find("::", at + 1)) {
    const std::size_t bracket = joined.substr(begin, at - begin).find_last_of("[]");
    if (bracket == joined.npos || joined[begin + bracket] == ']') return at;
  }
  return joined.size();
}

}  // namespace

ShardList list_shards(std::span<const std::string> given) {
  ShardList out;
  for (const std::string& joined : given) {
    for (std::size_t at = 0; at <= joined.size();) {
      const std::size_t end = end_of_list(joined, at);
      for (const std::string& text : expand_braces(std::string_view(joined).substr(at, end - at))) add(text, out);
      at = end + 2;
    }
  }
  if (out.paths.empty()) {
    throw Error(ErrorCode::kNotFound, "there is no shard; name at least one, such as \"train-{000..146}.tar\"");
  }
  if (!out.samples.empty()) out.samples.resize(out.paths.size());
  return out;
}

bool is_pipe(const std::string& path) noexcept { return path == "-" || io::is_fifo(path); }

void require_told(const ShardList& list, std::size_t shard, std::int64_t samples) {
  if (list.samples.empty() || !list.samples[shard] || *list.samples[shard] == samples) return;
  throw Error(ErrorCode::kCorrupt,
              core::format("the list of shards says {}, but the shard has {}; make the list anew, or name the shards",
                           core::counted(static_cast<std::uint64_t>(*list.samples[shard]), "sample"), samples),
              {.path = core::shown_path(list.paths[shard])});
}

}  // namespace penstock::data
