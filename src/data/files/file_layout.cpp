#include "data/files/file_layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/view.h"
#include "penstock/error.h"

namespace penstock::data {

FileLayout::FileLayout(FileSample sample_in_it, std::span<const TensorEntry> its_entries,
                       std::span<const StorageEntry> its_storages)
    : sample(std::move(sample_in_it)),
      entries(its_entries.begin(), its_entries.end()),
      storages(its_storages.begin(), its_storages.end()) {
  for (const std::uint32_t e : sample.entries) {
    const TensorEntry& entry = entries[e];
    // The index was checked: all of the tensor lies in its storage.
    tensors.push_back({.storage = entry.storage,
                       .offset = entry.byte_offset,
                       .nbytes = entry.nbytes(),
                       .extent = core::view_span(entry.shape, entry.strides, entry.dtype.itemsize()).value()});
    is_plain = is_plain && entry.encoding.is_plain();
    has_gaps = has_gaps || (entry.nbytes() != 0 && !TensorLayout(entry.dtype, entry.shape, entry.strides).contiguous);
  }
}

bool FileLayout::has_storage(std::uint64_t begin, std::uint64_t bytes,
                             std::span<const format::StorageLocation> locations) const noexcept {
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (storages[s].nbytes == bytes && location(s, locations).offset == begin) return true;
  }
  return false;
}

bool FileLayout::begins(std::span<const std::byte> bytes) const noexcept {
  return !head.empty() && std::memcmp(bytes.data(), head.data(), head.size()) == 0;
}

bool FileLayout::lies_at(std::span<const format::StorageLocation> locations) const noexcept {
  return std::equal(locations.begin(), locations.end(), storages.begin(), storages.end(),
                    [](const auto& location, const auto& storage) { return location.offset == storage.offset; });
}

bool FileLayout::matches(std::span<const std::byte> image, std::string_view path, bool verify,
                         StorageLocations& locations) const {
  locations.clear();
  if (!directory) return begins(image);
  try {
    // What was left out of the frame is what holds the tensors, and nothing else.
    return directory->matches(image, path, verify, locations) && lies_at(locations);
  } catch (const Error&) {
    return false;  // parsing says what is wrong
  }
}

std::vector<FileRange> frame_around_tensors(const FileLayout& layout) {
  std::vector<FileRange> payload;
  for (const StorageEntry& storage : layout.storages) {
    payload.push_back({storage.offset + storage.nbytes, storage.offset + storage.nbytes});
  }
  for (const TensorEntry& entry : layout.entries) {
    FileRange& range = payload[entry.storage];
    range.begin = std::min(range.begin, layout.storages[entry.storage].offset + entry.byte_offset);
  }
  std::sort(payload.begin(), payload.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<FileRange> out;
  std::uint64_t at = 0;
  for (const FileRange& range : payload) {
    if (range.begin > at) out.push_back({at, range.begin});
    at = std::max(at, range.end);
  }
  if (layout.file_bytes > at) out.push_back({at, layout.file_bytes});
  return out;
}

}  // namespace penstock::data
