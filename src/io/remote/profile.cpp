// The files that Amazon's tools share. They are looked at for each request, because a program may set a variable late
// and a tool may write new keys; their text is only read when they have changed.

#include "io/remote/profile.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/ascii.h"
#include "core/format.h"
#include "core/text.h"
#include "io/remote/settings.h"
#include "io/remote/small_file.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

using core::trimmed;

std::string path_of(const char* name, const char* otherwise) {
  const std::string path = path_variable(name);
  return path.empty() ? with_home(otherwise) : path;
}

/// A file as it was last seen.
struct Known {
  std::string path = {};
  std::string seen = {};
  Sections sections = {};
  bool is_there = false;
  bool is_read = false;

  void look(std::string where) {
    path = std::move(where);
    struct stat status {};
    std::string now = path;
    is_there = ::stat(path.c_str(), &status) == 0;
    if (is_there) {
      now = core::format("{}\n{} {} {} {}.{:09}", path, status.st_dev, status.st_ino, status.st_size,
                         status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    }
    if (now == seen) return;
    const std::optional<std::string> text = text_of(path);
    is_read = text.has_value();
    sections = read_profiles(text.value_or(""));
    seen = std::move(now);
  }

  const Entries* find(const std::string& section) const {
    const auto found = sections.find(section);
    return found == sections.end() ? nullptr : &found->second;
  }
};

/// One for each thread, so that no lock is held when the process forks.
struct Files {
  Known credentials;
  Known config;
};

constexpr const char* kCredentials = "AWS_SHARED_CREDENTIALS_FILE";
constexpr const char* kConfig = "AWS_CONFIG_FILE";

const Files& files() {
  thread_local Files one;
  one.credentials.look(path_of(kCredentials, "~/.aws/credentials"));
  one.config.look(path_of(kConfig, "~/.aws/config"));
  return one;
}

/// The second is an older name of the first.
constexpr auto kProfiles = std::to_array<const char*>({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});

/// Of the file of credentials before that of settings, where "[profile default]" goes before "[default]".
std::string entry(std::string_view name) {
  const Files& known = files();
  const std::string profile = profile_name();
  bool is_there = false;
  for (const Entries* const entries : {known.credentials.find(profile), known.config.find("profile " + profile),
                                       profile == "default" ? known.config.find(profile) : nullptr}) {
    if (entries == nullptr) continue;
    is_there = true;
    if (const auto found = entries->find(name); found != entries->end()) return found->second;
  }
  for (const char* const name_of_it : kProfiles) {
    if (is_there || variable(name_of_it).empty()) continue;
    throw Error(ErrorCode::kPermission, core::format("there is no profile {}; {} names it{}", core::quoted(profile),
                                                     name_of_it, unread_profiles()));
  }
  return {};
}

/// What stands in "[profile dev]", with one space between the words and no quotes around the name.
std::string section_name(std::string_view text) {
  text = trimmed(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  std::string_view rest = trimmed(text.substr(word.size()));
  const bool is_quoted =
      rest.size() > 1 && rest.front() == rest.back() && (rest.front() == '"' || rest.front() == '\'');
  if (is_quoted) rest = rest.substr(1, rest.size() - 2);
  return rest.empty() ? std::string(word) : core::format("{} {}", word, rest);
}

}  // namespace

Sections read_profiles(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Sections out;
  Entries* section = nullptr;
  std::string above;       ///< the entry that lines further in belong to, where it has no value of its own
  std::size_t margin = 0;  ///< of the section's entries, because a whole file may be indented
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::string_view content = trimmed(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    const std::size_t indent = line.find_first_not_of(" \t");
    if (content.front() == '[') {
      section = &out[section_name(content.substr(1, content.find(']') - 1))];
      above.clear();
      margin = std::string_view::npos;
    } else if (const std::size_t mark = content.find_first_of("=:");
               mark != std::string_view::npos && section != nullptr) {
      const std::string name = core::lower(trimmed(content.substr(0, mark)));
      const std::string_view value = trimmed(content.substr(mark + 1));
      if (indent <= margin) {
        margin = indent;
        (*section)[name] = value;
        above = value.empty() ? name : std::string();
      } else if (!above.empty()) {
        (*section)[core::format("{}.{}", above, name)] = value;
      }
    }
  }
  return out;
}

std::string profile_name() {
  for (const char* const setting : kProfiles) {
    if (std::string name = variable(setting); !name.empty()) return name;
  }
  return "default";
}

std::string unread_profiles() {
  std::string out;
  const Files& known = files();
  const auto add = [&](const Known& file, const char* setting) {
    const bool is_named = !variable(setting).empty();
    if (file.is_read || (!file.is_there && !is_named)) return;
    out += core::format(", the file {}{} cannot be read", core::quoted(file.path),
                        is_named ? core::format(", which {} names,", setting) : "");
  };
  add(known.credentials, kCredentials);
  add(known.config, kConfig);
  return out;
}

std::string profile_setting(std::string_view name) { return entry(name); }

std::string service_setting(std::string_view service, std::string_view name) {
  const std::string services = entry("services");
  if (services.empty()) return {};
  const Entries* const section = files().config.find("services " + services);
  if (section == nullptr) {
    throw Error(ErrorCode::kPermission,
                core::format("the profile {} names the services {}, and {} has no section of them",
                             core::quoted(profile_name()), core::quoted(services), core::quoted(files().config.path)));
  }
  const auto found = section->find(core::format("{}.{}", service, name));
  return found == section->end() ? std::string() : found->second;
}

std::string aws_ca_bundle() {
  const std::string file = path_variable("AWS_CA_BUNDLE");
  return file.empty() ? with_home(entry("ca_bundle")) : file;
}

}  // namespace penstock::io::remote
