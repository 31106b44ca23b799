#include "format/folder.h"

#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <vector>

#include "format/dcp/dcp.h"
#include "format/dcp/shards.h"
#include "format/format.h"
#include "io/file/folder_names.h"
#include "io/locations.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::string_view kIndexName = "model.safetensors.index.json";

bool has_distcp(const std::string& folder) {
  std::error_code ignored;
  const std::vector<std::string> names = io::folder_names(folder, ignored);
  return std::ranges::any_of(names, [](const std::string& name) { return name.ends_with(kCheckpointExtension); });
}

bool is_of(const Format& format, const Source& file) {
  std::array<std::byte, kSniffBytes> head{};
  const auto known = std::span(head).first(static_cast<std::size_t>(std::min<std::uint64_t>(kSniffBytes, file.size())));
  file.read(0, known);
  return format.sniff(known, *file);
}

bool has_format_extension(std::string_view location) {
  const std::string_view path = io::path_part(location);
  return std::ranges::any_of(formats(), [&](const Format& format) {
    return std::ranges::any_of(format.extensions, [&](std::string_view end) { return path.ends_with(end); });
  });
}

}  // namespace

std::optional<std::vector<Content>> contents_of(std::span<const Source> sources) {
  const Format* const format = find_format(*sources.front());
  if (format == nullptr || !format->is_folder) return std::nullopt;
  return dcp::streams_of(sources);
}

std::optional<Source> open_folder(const std::string& location) {
  const bool is_local = io::is_local_folder(location);
  // "model.pt" is an object that is not there, and not a folder: no request is spent on what may lie in it.
  if (!is_local && has_format_extension(location)) return std::nullopt;
  const bool has_data = is_local && has_distcp(location);
  const std::string metadata = io::in_folder(location, ".metadata");
  if (metadata.empty()) return std::nullopt;
  std::optional<Source> found = io::open_if_there(metadata);
  if (found && (has_data || is_of(kDcpFormat, *found))) return found;
  if (has_data) {
    throw Error(ErrorCode::kNotFound,
                "the folder has .distcp files and no .metadata, which says what they hold: the save did not end, or "
                ".metadata was not copied, as hidden files often are not",
                {location});
  }
  if (std::optional<Source> index = io::open_if_there(io::in_folder(location, kIndexName))) return index;
  std::optional<Source> ranks = io::open_if_there(io::in_folder(location, dcp::kRankMetadataName));
  if (ranks && is_of(kRankFilesFormat, *ranks)) return ranks;
  return is_local ? dcp::list_shards(location) : std::nullopt;
}

}  // namespace penstock::format
