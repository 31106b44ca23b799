// Templates are taken apart once. For a file, what they stand for is put together, and then laid onto the folder that
// it begins in, part by part, because ".." of a template must not depend on where links lead.

#include "data/files/path_template.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "data/files/path_name.h"
#include "io/locations.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

constexpr auto kNames = std::to_array<std::string_view>({"stem", "name", "ext", "parent", "root", "path"});

/// Takes the last folder off `folder`, which is "" or ends in '/'.
void go_up(std::string& folder, std::size_t floor) {
  while (folder.size() > floor) {
    const std::size_t slash = folder.size() < 2 ? std::string::npos : folder.rfind('/', folder.size() - 2);
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    const std::string_view last = std::string_view(folder).substr(begin);
    if (last == "../") break;
    const bool is_folder = last != "/" && last != "./";
    folder.resize(std::max(begin, floor));
    if (is_folder) return;
  }
  if (folder == "/") return;
  if (floor > 1) {
    core::refuse("a template of fields leads out of the host or bucket of its URL; take '..' out of it");
  }
  folder += "../";
}

/// `path` as seen from `folder`.
std::string laid_onto(std::string folder, std::string_view path) {
  const std::size_t floor = io::root_size(folder);
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part == "..") {
      go_up(folder, floor);
    } else if (part != "." && slash != 0) {
      folder.append(part);
      if (slash != std::string_view::npos) folder += '/';
    }
    if (slash == std::string_view::npos) return folder;
    path.remove_prefix(slash + 1);
  }
}

std::string_view last_folder(std::string_view folder) noexcept {
  if (folder.size() < 2) return {};
  folder.remove_suffix(1);
  return folder.substr(folder.rfind('/') + 1);
}

}  // namespace

PathTemplate::What PathTemplate::what_of(std::string_view name, std::string_view whole) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return static_cast<What>(found - kNames.begin() + 1);
  const std::string hint = core::did_you_mean(core::nearest_names(name, kNames));
  core::refuse(
      core::format("the template {} has {{{}}}, which stands for nothing; {}there are {{stem}}, {{name}}, "
                   "{{ext}}, {{parent}}, {{root}} and {{path}}, and {{{{ for a brace",
                   core::quoted(whole), core::escaped(name), hint.empty() ? "" : hint + " "));
}

void PathTemplate::add_text(char c) {
  if (pieces_.empty() || pieces_.back().what != What::kText) pieces_.emplace_back();
  pieces_.back().text += c;
}

PathTemplate::PathTemplate(std::string_view text) : text_(text) {
  if (text.empty()) core::refuse("a template of fields is empty; name a file, such as '{stem}.npy'");
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      add_text(c);
    } else if (i + 1 < text.size() && text[i + 1] == c) {
      add_text(c);
      ++i;
    } else {
      const std::size_t end = c == '{' ? text.find_first_of("{}", i + 1) : std::string_view::npos;
      if (end == std::string_view::npos || text[end] != '}') {
        core::refuse(
            core::format("the template {} has a brace without its partner; write {{{{ or }}}} for a brace "
                         "of a name",
                         core::quoted(text)));
      }
      pieces_.push_back({.what = what_of(text.substr(i + 1, end - i - 1), text)});
      i = end;
    }
  }
  check();
}

void PathTemplate::check() const {
  const auto is_root = [](const Token& piece) { return piece.what == What::kRoot; };
  if (std::any_of(pieces_.begin() + 1, pieces_.end(), is_root)) {
    core::refuse(
        core::format("the template {} has {{root}} behind its beginning; a path begins with it", core::quoted(text_)));
  }
  const bool ends_in_root = is_root(pieces_[0]) && (pieces_.size() == 1 || !pieces_[1].text.starts_with('/'));
  if (ends_in_root || text_.ends_with('/')) {
    core::refuse(
        core::format("the template {} names no file; {{root}} and other folders have a '/' and a name behind "
                     "them",
                     core::quoted(text_)));
  }
}

std::string PathTemplate::rest_of(const PathName& file, std::string_view below) const {
  std::string out;
  for (const Token& piece : pieces_) {
    switch (piece.what) {
      case What::kText:
        out += piece.text;
        break;
      case What::kStem:
        out += file.stem();
        break;
      case What::kName:
        out += file.name;
        break;
      case What::kExt:
        out += file.extension();
        break;
      case What::kParent:
        out += last_folder(file.folder);
        break;
      case What::kPath:
        out += without_extension(below);
        break;
      case What::kRoot:
        break;
    }
  }
  return out;
}

std::string PathTemplate::of(std::string_view path, std::size_t root_size) const {
  const PathName file(path);
  if (file.name.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the path has no name at its end that others could be derived from",
                {.path = std::string(path)});
  }
  const std::string_view root = file.folder.substr(0, root_size);
  const std::string_view below = path.substr(root.size(), file.folder.size() + file.name.size() - root.size());
  std::string rest = rest_of(file, below);
  const Token& first = pieces_.front();
  if (first.what == What::kText && io::root_size(rest) > 0) {
    const std::size_t begin = io::root_size(rest);
    return laid_onto(rest.substr(0, begin), std::string_view(rest).substr(begin));
  }
  std::string folder(first.what == What::kRoot ? root : file.folder);
  // Behind a '?' of a URL by http there are no folders.
  const bool has_query = folder.starts_with("http://") || folder.starts_with("https://");
  const std::size_t query = has_query ? std::min(rest.find('?'), rest.size()) : rest.size();
  std::string out = laid_onto(std::move(folder), std::string_view(rest).substr(0, query));
  return out.append(query < rest.size() ? std::string_view(rest).substr(query) : file.query);
}

}  // namespace penstock::data
