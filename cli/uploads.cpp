#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "io/remote/list.h"
#include "io/remote/object.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

using io::remote::Begun;
using io::remote::Location;

struct UploadsOptions {
  std::string url;
  std::int64_t hours = 24;
  bool end = false;
  bool json = false;
};

struct Listed {
  Begun upload;
  std::optional<double> hours = {};  ///< since it was begun; nothing where the store does not say
  bool ended = false;
};

std::optional<double> hours_since(const std::string& when) {
  std::tm parts{};
  if (::strptime(when.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return std::nullopt;
  return std::difftime(std::time(nullptr), ::timegm(&parts)) / 3600;
}

Location place_of(const std::string& url) {
  if (std::optional<Location> bucket = io::remote::parse_in_bucket(url)) return *std::move(bucket);
  throw Error(ErrorCode::kInvalidArgument, "uploads are in buckets; name one, such as s3://bucket/run-7/",
              {.path = url});
}

std::vector<Listed> uploads_of(const Location& place) {
  std::vector<Listed> out;
  for (Begun& one : io::remote::list_uploads(place, place.key)) {
    const std::optional<double> hours = hours_since(one.when);
    out.push_back({std::move(one), hours});
  }
  return out;
}

/// Whether all that are old enough were ended.
bool end_old_ones(const Location& place, std::int64_t hours, std::vector<Listed>& uploads) {
  bool all = true;
  for (Listed& one : uploads) {
    if (hours > 0 && one.hours.value_or(0) < static_cast<double>(hours)) continue;
    Location object = place;
    object.key = one.upload.key;
    one.ended = io::remote::abort_parts(object, one.upload.id);
    all = all && one.ended;
  }
  return all;
}

void print(const std::vector<Listed>& uploads, const UploadsOptions& options) {
  if (options.json) {
    Json list = Json::array();
    for (const Listed& one : uploads) {
      list.push_back(
          Json{{"key", one.upload.key}, {"id", one.upload.id}, {"begun", one.upload.when}, {"ended", one.ended}});
    }
    return print_json(Json{{"path", core::shown_path(options.url)}, {"uploads", std::move(list)}});
  }
  if (uploads.empty()) return core::print("no upload was left there\n");
  std::vector<std::vector<std::string>> rows;
  for (const Listed& one : uploads) {
    rows.push_back({printable(one.upload.key), printable(one.upload.when), one.ended ? "ended" : ""});
  }
  print_table({"KEY", "BEGUN", ""}, rows, {});
}

int run(const UploadsOptions& options) {
  const Location place = place_of(options.url);
  std::vector<Listed> uploads = uploads_of(place);
  const bool all = !options.end || end_old_ones(place, options.hours, uploads);
  print(uploads, options);
  if (all) return 0;
  print_error("some uploads could not be ended; check what the keys may do, and try again");
  return 1;
}

std::function<int()> attach_uploads(Arguments& arguments) {
  auto options = std::make_shared<UploadsOptions>();
  arguments.add("URL", &options->url, "A bucket, or the beginning of keys in it").required().takes("URL");
  arguments.add("--end", &options->end, "End them: their parts are deleted, and nobody can complete them");
  arguments
      .add("--older-than", &options->hours,
           "With --end, only those begun so many hours ago; 0 for all, also those that somebody is writing")
      .shows_default(std::to_string(options->hours))
      .takes_number(0);
  arguments.add("--json", &options->json, "Print JSON");
  arguments.refuse = [options](const Arguments& given) {
    if (given.has("--older-than") && !options->end) throw WrongUsage("--older-than: says which of them --end ends");
  };
  return [options] { return run(*options); };
}

}  // namespace

const Command kUploads{"uploads",
                       "List uploads that were begun and not completed, or end them",
                       "A program that is killed while it writes a large object to s3:// or gs:// leaves the parts "
                       "that it has sent. No object shows them, and the store charges for them. Those of az:// are "
                       "deleted by Azure within a week, and are not listed.",
                       {"penstock uploads s3://bucket", "penstock uploads s3://bucket/run-7/ --end --older-than 48",
                        "penstock uploads s3://bucket --json"},
                       attach_uploads};

}  // namespace penstock::cli
