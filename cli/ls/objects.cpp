#include "cli/ls/objects.h"

#include <utility>
#include <vector>

#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "io/remote/location.h"

namespace penstock::cli {
namespace {

std::vector<std::vector<std::string>> rows_of(const std::string& path, const io::remote::Objects& found) {
  const std::string key = io::remote::parse(path).key;
  const std::size_t front = key.empty() || key.ends_with('/') ? key.size() : key.size() + 1;
  std::vector<std::vector<std::string>> rows;
  for (const std::string& folder : found.folders) rows.push_back({printable(folder.substr(front)), ""});
  for (const io::remote::Object& object : found.objects) {
    rows.push_back({printable(object.key.substr(front)), human_count(object.size)});
  }
  return rows;
}

}  // namespace

std::optional<io::remote::Objects> objects_in(const std::string& path) {
  const std::optional<io::remote::Location> location = io::remote::parse_in_bucket(path);
  if (!location) return std::nullopt;
  const bool is_folder = location->key.empty() || location->key.ends_with('/');
  io::remote::Objects found = io::remote::list_objects(*location, location->key + (is_folder ? "" : "/"), false);
  if (!is_folder && found.objects.empty() && found.folders.empty()) return std::nullopt;
  return found;
}

void print_objects(const std::string& path, const io::remote::Objects& found, bool with_title) {
  if (with_title) core::print("{}:\n", printable(path));
  print_table({"NAME", "BYTES"}, rows_of(path, found), {1});
}

void print_object_names(const std::string& path, const io::remote::Objects& found) {
  for (const std::vector<std::string>& row : rows_of(path, found)) core::print("{}\n", row.front());
}

Json to_json(const std::string& path, const io::remote::Objects& found) {
  Json objects = Json::array();
  for (const io::remote::Object& object : found.objects) {
    objects.push_back(Json{{"key", object.key}, {"bytes", object.size}});
  }
  return Json{{"path", path}, {"folders", found.folders}, {"objects", std::move(objects)}};
}

}  // namespace penstock::cli
