#include "format/folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "format/dcp/dcp.h"
#include "format/dcp/shards.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool has_distcp(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == kCheckpointExtension) return true;
  }
  return false;
}

}  // namespace

std::vector<Content> contents_of(std::span<const Source> sources) {
  const Format* const format = find_format(*sources.front());
  if (format == nullptr || !format->is_folder) return {};
  return dcp::streams_of(sources);
}

std::optional<Source> open_folder(const std::string& path) {
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
    std::array<std::byte, kSniffBytes> head{};
    const auto known =
        std::span(head).first(static_cast<std::size_t>(std::min<std::uint64_t>(kSniffBytes, metadata.size())));
    metadata.read(0, known);
    if (kDcpFormat.sniff(known, *metadata)) return metadata;
  }
  const fs::path index = folder / "model.safetensors.index.json";
  if (is_there(index)) return open_source(index.string());
  return dcp::list_shards(path);
}

}  // namespace penstock::format
