#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include "cli/command.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/text.h"
#include "data/scan/name_match.h"
#include "io/remote/cache/block_cache.h"
#include "io/remote/cache/ledger.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

using io::remote::CacheSettings;
using io::remote::CacheUsage;

struct CacheOptions {
  std::string pattern;
  std::string folder;
  bool clear = false;
  bool json = false;
};

CacheSettings settings_of(const CacheOptions& options) {
  CacheSettings out = io::remote::cache_settings();
  if (!options.folder.empty()) out.folder = options.folder;
  if (out.folder.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "there is no cache, because PENSTOCK_CACHE names no folder; set it, or name one with --folder");
  }
  std::error_code ignored;
  const std::filesystem::file_status found = std::filesystem::status(out.folder, ignored);
  if (std::filesystem::exists(found) && !std::filesystem::is_directory(found)) {
    throw Error(ErrorCode::kInvalidArgument, "this is no folder, and a cache is one; name its folder",
                {.path = out.folder});
  }
  return out;
}

/// What a URL has to be: nothing where any will do.
std::function<bool(const std::string&)> wanted_by(const std::string& pattern) {
  if (pattern.empty()) return {};
  return [pattern](const std::string& url) {
    return data::matches(pattern, url) || (pattern.ends_with('/') && url.starts_with(pattern));
  };
}

void print(const CacheSettings& settings, const CacheUsage& usage, const CacheOptions& options) {
  if (options.json) {
    print_json(Json{{"path", settings.folder},
                    {"objects", usage.objects},
                    {"blocks", usage.blocks},
                    {"bytes", usage.bytes},
                    {"limit", settings.limit},
                    {"cleared", options.clear}});
    return;
  }
  core::print("{}: {}{}, {} in {}; the limit is {}\n", printable(settings.folder), options.clear ? "cleared of " : "",
              counted(usage.objects, "object"), core::format_bytes(usage.bytes), counted(usage.blocks, "block"),
              core::format_bytes(settings.limit));
}

int run(const CacheOptions& options) {
  const CacheSettings settings = settings_of(options);
  const std::string root = io::remote::cache_root(settings.folder);
  const auto wanted = wanted_by(options.pattern);
  print(settings, options.clear ? io::remote::clear_cache(root, wanted) : io::remote::cache_usage(root, wanted),
        options);
  return 0;
}

std::function<int()> attach_cache(Arguments& arguments) {
  auto options = std::make_shared<CacheOptions>();
  arguments
      .add("PATTERN", &options->pattern,
           "Only objects whose URL is this or matches it; * stands for any characters, / too, and a URL that ends "
           "in / for all that is below it")
      .takes("URL");
  arguments.add("--clear", &options->clear, "Delete what is there; programs that use the cache go on");
  arguments.add("--folder", &options->folder, "The cache's folder (default: PENSTOCK_CACHE)").takes("FOLDER");
  arguments.add("--json", &options->json, "Print JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kCache{"cache",
                     "Show how much the cache of PENSTOCK_CACHE holds, or empty it",
                     "What is read by URL is kept in the folder that PENSTOCK_CACHE names, up to PENSTOCK_CACHE_BYTES, "
                     "and read from there the next time. The whole folder may also be deleted at any time.",
                     {"penstock cache --folder cache", "penstock cache --folder cache --clear 's3://bucket/train/*'",
                      "PENSTOCK_CACHE=cache penstock cache --json"},
                     attach_cache};

}  // namespace penstock::cli
