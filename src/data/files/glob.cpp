#include "data/files/glob.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/system_error.h"
#include "core/text.h"
#include "format/format.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

bool is_magic(std::string_view component) { return component.find_first_of("*?[") != std::string_view::npos; }

/// Matches the set that `pattern` begins with ('[' consumed) and moves behind it; nothing when it is not closed.
std::optional<bool> match_set(std::string_view& pattern, unsigned char c) {
  std::string_view rest = pattern;
  const bool negated = !rest.empty() && (rest[0] == '!' || rest[0] == '^');
  if (negated) rest.remove_prefix(1);
  bool found = false;
  for (bool first = true; !rest.empty(); first = false) {
    if (rest[0] == ']' && !first) {
      pattern = rest.substr(1);
      return found != negated;
    }
    const auto low = static_cast<unsigned char>(rest[0]);
    auto high = low;
    rest.remove_prefix(1);
    if (rest.size() >= 2 && rest[0] == '-' && rest[1] != ']') {
      high = static_cast<unsigned char>(rest[1]);
      rest.remove_prefix(2);
    }
    found |= low <= c && c <= high;
  }
  return std::nullopt;
}

/// Matches one character against what `pattern` begins with, which is not '*', and moves behind it.
bool match_one(std::string_view& pattern, char c) {
  const char p = pattern[0];
  pattern.remove_prefix(1);
  if (p == '?') return true;
  if (p == '[') {
    if (const auto in_set = match_set(pattern, static_cast<unsigned char>(c))) return *in_set;
  }
  return p == c;
}

enum class FileKind { kFile, kFolder, kLinkToFolder, kOther };

FileKind kind_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return FileKind::kOther;
  const bool link = S_ISLNK(status.st_mode);
  if (link && ::stat(path.c_str(), &status) != 0) return FileKind::kOther;
  if (S_ISREG(status.st_mode)) return FileKind::kFile;
  if (!S_ISDIR(status.st_mode)) return FileKind::kOther;
  return link ? FileKind::kLinkToFolder : FileKind::kFolder;
}

std::string join(const std::string& folder, std::string_view name) {
  if (folder.empty() || folder.back() == '/') return folder + std::string(name);
  return fmt::format("{}/{}", folder, name);
}

/// Calls visit(name, kind) for what lies in `folder` ("" is the working folder), in no order.
template <class Visit>
void list(const std::string& folder, Visit visit) {
  struct Close {
    void operator()(DIR* d) const { ::closedir(d); }
  };
  const std::unique_ptr<DIR, Close> dir(::opendir(folder.empty() ? "." : folder.c_str()));
  if (!dir) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    core::throw_errno(errno, "cannot list the folder", {.path = folder});
  }
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) {
      if (errno != 0) core::throw_errno(errno, "cannot list the folder", {.path = folder});
      return;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const FileKind kind = entry->d_type == DT_REG   ? FileKind::kFile
                          : entry->d_type == DT_DIR ? FileKind::kFolder
                                                    : kind_of(join(folder, name));
    visit(name, kind);
  }
}

class Expander {
 public:
  explicit Expander(PathTable& out) : out_(out) {}

  /// Files below `folder` that match `components`, of which there is at least one.
  void walk(const std::string& folder, std::span<const std::string_view> components) {
    const std::string_view component = components[0];
    const bool last = components.size() == 1;
    if (component == "**") return walk_deep(folder, components);
    if (!is_magic(component)) {
      const std::string path = join(folder, component);
      if (!last) return walk(path, components.subspan(1));
      if (kind_of(path) == FileKind::kFile) out_.add(path);
      return;
    }
    const std::uint32_t number = last ? out_.folder(folder) : 0;
    std::vector<std::string> folders;
    list(folder, [&](std::string_view name, FileKind kind) {
      if (!matches(component, name)) return;
      if (last && kind == FileKind::kFile) out_.add(number, name);
      if (!last && (kind == FileKind::kFolder || kind == FileKind::kLinkToFolder)) folders.emplace_back(name);
    });
    for (const std::string& name : folders) walk(join(folder, name), components.subspan(1));
  }

 private:
  void walk_deep(const std::string& folder, std::span<const std::string_view> components) {
    constexpr std::string_view kAny = "*";
    const auto rest = components.subspan(1);
    walk(folder, rest.empty() ? std::span(&kAny, 1) : rest);
    std::vector<std::string> folders;
    list(folder, [&](std::string_view name, FileKind kind) {
      if (kind == FileKind::kFolder && name[0] != '.') folders.emplace_back(name);
    });
    for (const std::string& name : folders) walk_deep(join(folder, name), components);
  }

  PathTable& out_;
};

std::vector<std::string_view> split(std::string_view pattern) {
  std::vector<std::string_view> out;
  while (!pattern.empty()) {
    const std::size_t slash = std::min(pattern.find('/'), pattern.size());
    const std::string_view component = pattern.substr(0, slash);
    // Neighbouring `**` mean no more than one and would list each folder several times.
    if (!component.empty() && !(component == "**" && !out.empty() && out.back() == "**")) out.push_back(component);
    pattern.remove_prefix(std::min(slash + 1, pattern.size()));
  }
  return out;
}

/// The extensions of formats that hold samples; an index of shards is not a sample beside its shards.
std::vector<std::string_view> sample_extensions() {
  std::vector<std::string_view> out;
  for (const format::Format& format : format::formats()) {
    for (const std::string_view extension : format.extensions) {
      if (!extension.ends_with(".json")) out.push_back(extension);
    }
  }
  return out;
}

void add_folder(const std::string& folder, PathTable& out) {
  const std::vector<std::string_view> extensions = sample_extensions();
  const std::uint32_t number = out.folder(folder);
  list(folder, [&](std::string_view name, FileKind kind) {
    const auto fits = [&](std::string_view extension) { return name.ends_with(extension); };
    if (kind == FileKind::kFile && name[0] != '.' && std::any_of(extensions.begin(), extensions.end(), fits)) {
      out.add(number, name);
    }
  });
}

[[noreturn]] void throw_nothing(const std::string& pattern, bool folder) {
  const ErrorContext where{.path = pattern};
  if (folder) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("the folder holds no tensor files ({}); name another folder, or a pattern such as {}",
                            fmt::join(sample_extensions(), " "), core::quoted(join(pattern, "**/*.pt"))),
                where);
  }
  if (is_magic(pattern)) {
    throw Error(ErrorCode::kNotFound, "no file matches the pattern; check the folder and the extension in it", where);
  }
  throw Error(ErrorCode::kNotFound, "there is no file or folder of this name; check the path", where);
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) noexcept {
  if (!name.empty() && name[0] == '.' && (pattern.empty() || pattern[0] != '.')) return false;
  // After a mismatch only the last '*' can give more: it takes one character more than before.
  std::string_view star_pattern;
  std::string_view star_name;
  bool star = false;
  while (!name.empty()) {
    if (!pattern.empty() && pattern[0] == '*') {
      pattern.remove_prefix(1);
      star_pattern = pattern;
      star_name = name;
      star = true;
      continue;
    }
    if (!pattern.empty() && match_one(pattern, name[0])) {
      name.remove_prefix(1);
      continue;
    }
    if (!star) return false;
    star_name.remove_prefix(1);
    pattern = star_pattern;
    name = star_name;
  }
  return pattern.find_first_not_of('*') == std::string_view::npos;
}

PathTable expand(std::string_view pattern) {
  const std::string text(pattern);
  PathTable out;
  // A name that exists as it is written is taken so, whatever characters it has.
  const FileKind kind = kind_of(text);
  const bool folder = kind == FileKind::kFolder || kind == FileKind::kLinkToFolder;
  if (kind == FileKind::kFile) {
    out.add(text);
  } else if (folder) {
    add_folder(text, out);
  } else if (is_magic(text)) {
    const std::vector<std::string_view> components = split(text);
    Expander(out).walk(text[0] == '/' ? "/" : "", components);
  }
  if (out.size() == 0) throw_nothing(text, folder);
  out.sort();
  out.seal();
  return out;
}

}  // namespace penstock::data
