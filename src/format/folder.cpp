#include "format/folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "format/dcp/dcp.h"
#include "format/dcp/shards.h"
#include "format/format.h"
#include "io/file/folder_names.h"
#include "io/file/url.h"
#include "io/remote/location.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexName = "model.safetensors.index.json";

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool has_distcp(const std::string& folder) {
  std::error_code ignored;
  const std::vector<std::string> names = io::folder_names(folder, ignored);
  return std::ranges::any_of(names, [](const std::string& name) { return name.ends_with(kCheckpointExtension); });
}

bool is_checkpoint(const Source& metadata) {
  std::array<std::byte, kSniffBytes> head{};
  const auto known =
      std::span(head).first(static_cast<std::size_t>(std::min<std::uint64_t>(kSniffBytes, metadata.size())));
  metadata.read(0, known);
  return kDcpFormat.sniff(known, *metadata);
}

/// Whether an object is there is found out by opening it. One that may not be read is for the caller to tell: a store
/// that lists nothing to strangers gives 403 for what is not there.
std::optional<Source> open_if_there(const std::string& location) {
  try {
    return open_source(location);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kPermission) throw;
    return std::nullopt;
  }
}

/// "model.pt" is a file that is not there, and not a folder: no request is spent on what may lie in it.
bool has_format_extension(std::string_view url) {
  const std::string_view path = url.substr(0, url.find('?'));
  return std::ranges::any_of(formats(), [&](const Format& format) {
    return std::ranges::any_of(format.extensions, [&](std::string_view end) { return path.ends_with(end); });
  });
}

std::optional<Source> open_folder_url(const std::string& url) {
  if (has_format_extension(url)) return std::nullopt;
  const std::string metadata = io::remote::in_folder(url, ".metadata");
  if (metadata.empty()) return std::nullopt;
  if (std::optional<Source> found = open_if_there(metadata); found && is_checkpoint(*found)) return found;
  return open_if_there(io::remote::in_folder(url, kIndexName));
}

}  // namespace

std::optional<std::vector<Content>> contents_of(std::span<const Source> sources) {
  const Format* const format = find_format(*sources.front());
  if (format == nullptr || !format->is_folder) return std::nullopt;
  return dcp::streams_of(sources);
}

std::optional<Source> open_folder(const std::string& path) {
  if (io::is_url(path)) return open_folder_url(path);
  const fs::path folder(path);
  if (has_distcp(path)) {
    if (is_there(folder / ".metadata")) return open_source((folder / ".metadata").string());
    throw Error(ErrorCode::kNotFound,
                "the folder has .distcp files and no .metadata, which says what they hold: the save did not end, or "
                ".metadata was not copied, as hidden files often are not",
                {path});
  }
  if (is_there(folder / ".metadata")) {
    Source metadata = open_source((folder / ".metadata").string());
    if (is_checkpoint(metadata)) return metadata;
  }
  const fs::path index = folder / kIndexName;
  if (is_there(index)) return open_source(index.string());
  return dcp::list_shards(path);
}

}  // namespace penstock::format
