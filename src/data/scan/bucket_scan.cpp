// A bucket has keys and no folders, so a pattern is matched with whole keys: what is listed begins with the part of the
// pattern in front of its first '*', and below that the store gives all keys, or one level where the pattern has no
// more.

#include "data/scan/bucket_scan.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "core/url_scheme.h"
#include "data/scan/exclusion.h"
#include "data/scan/folder_scan.h"
#include "data/scan/name_match.h"
#include "data/scan/sample_extensions.h"
#include "io/remote/list.h"
#include "io/remote/location.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

using Names = std::span<const std::string_view>;

std::vector<std::string_view> split(std::string_view key) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t slash = key.find('/');
    out.push_back(key.substr(0, slash));
    if (slash == std::string_view::npos) return out;
    key.remove_prefix(slash + 1);
  }
}

bool is_hidden(std::string_view name) { return name.starts_with('.'); }

bool fits(const PatternPart& part, std::string_view name) {
  switch (part.kind) {
    case PatternPart::Kind::kLiteral:
      return part.text == name;
    case PatternPart::Kind::kGlob:
      return matches(part.text, name);
    case PatternPart::Kind::kAnyDepth:
      return !is_hidden(name);
    case PatternPart::Kind::kTensorFile:
      return is_sample_name(name);
  }
  return false;
}

/// Each part against each name once, so that many `**` cost no more than their product.
bool fits(std::span<const PatternPart> parts, Names names) {
  // can[i]: whether the parts so far may have taken the first i names.
  std::vector<bool> can(names.size() + 1, false);
  can[0] = true;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const bool any_depth = parts[p].kind == PatternPart::Kind::kAnyDepth;
    const bool last = p + 1 == parts.size();
    std::vector<bool> next(names.size() + 1, false);
    for (std::size_t i = 0; i <= names.size(); ++i) {
      if (any_depth) {
        next[i] = (!last && can[i]) || (i > 0 && (next[i - 1] || can[i - 1]) && fits(parts[p], names[i - 1]));
      } else {
        next[i] = i > 0 && can[i - 1] && fits(parts[p], names[i - 1]);
      }
    }
    can = std::move(next);
  }
  return can[names.size()];
}

bool is_left_out(const Exclusion& exclude, const std::string& root, Names names) {
  if (exclude.empty()) return false;
  std::string folder = root;
  for (const std::string_view name : names) {
    if (exclude.leaves_out(folder, name)) return true;
    folder.append(name).push_back('/');
  }
  return false;
}

[[noreturn]] void throw_no_object(const std::string& url, bool folder) {
  throw Error(ErrorCode::kNotFound,
              folder
                  ? core::format("there are no tensor files ({}) in it; check the name, or give a pattern such as {}",
                                 fmt::join(sample_extensions(), " "),
                                 core::quoted(url + (url.ends_with('/') ? "" : "/") + "**/*.pt"))
                  : "no object matches the pattern; check the bucket, and the extension in it",
              {.path = url});
}

/// Whether a URL that is in no bucket is meant for several files. By http, '?' begins the query, and hosts have
/// brackets.
bool is_pattern(const io::remote::Location& location, std::string_view url) {
  if (location.kind == io::remote::Kind::kHf) return is_magic(url);
  const std::string_view path = url.substr(0, url.find('?'));
  return path.find('*') != std::string_view::npos;
}

}  // namespace

std::string fixed_prefix(const std::string& pattern) {
  const std::size_t magic = pattern.find_first_of("*?[");
  return pattern.substr(0, magic);
}

PathTable expand_url(const std::string& url, const FilesOptions& options) {
  const io::remote::Location location = io::remote::parse(url);
  PathTable out;
  const bool magic = location.in_bucket() ? is_magic(location.key) : is_pattern(location, url);
  const std::string& key = location.key;
  const std::string name = key.substr(key.rfind('/') + 1);
  if (!magic && (!location.in_bucket() || is_sample_name(name))) {
    out.add(url);
    out.seal();
    return out;
  }
  if (!location.in_bucket()) {
    throw Error(ErrorCode::kUnsupported,
                core::format("only buckets ({}) can be listed; name each file of this URL, with %2A for a '*' in its "
                             "name",
                             core::store_schemes("and")),
                {url});
  }
  if (options.index) {
    throw Error(ErrorCode::kUnsupported, "an index is kept of folders of this machine, not of URLs; leave it out",
                {url});
  }
  std::string prefix = magic ? fixed_prefix(key) : key;
  if (!magic && !prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  std::vector<PatternPart> parts = split_pattern(magic ? key : prefix, true);
  if (!magic) parts.push_back({PatternPart::Kind::kTensorFile, {}});
  // Below the last '/' of the prefix there is one level more, unless the pattern goes deeper.
  const bool deep =
      magic && (key.find('/', prefix.size()) != std::string::npos || parts.back().kind == PatternPart::Kind::kAnyDepth);
  const std::string root = url.substr(0, url.size() - key.size());
  const std::string slash = root.ends_with('/') ? "" : "/";
  const Exclusion exclude(options.exclude);
  for (const io::remote::Object& object : io::remote::list_objects(location, prefix, deep).objects) {
    if (object.key.ends_with('/')) continue;  // what stands for a folder
    if (object.key == key) {                  // the name goes first, as that of a file
      out = PathTable();
      out.add(url, object.size);
      break;
    }
    const std::vector<std::string_view> names = split(object.key);
    if (!fits(parts, names) || is_left_out(exclude, root + slash, names)) continue;
    out.add(root + slash + object.key, object.size);
  }
  if (out.size() == 0) throw_no_object(url, !magic);
  out.seal();
  return out;
}

}  // namespace penstock::data
