// Of a large file only the size is known before it is read. It is taken to have the layout of earlier files of that
// size, as long as these had one layout: its frame is read together with its payload, in one call, and compared then
// (LargeFile::read). Where files of one size have several layouts, the frame is read first.

#include "data/files/large_samples.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "archive/archive_state.h"
#include "format/format.h"
#include "io/file/file_version.h"
#include "io/source/own_read.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

void read_frame(const ByteSource& source, std::span<const FileRange> frame, std::byte* image) {
  for (const FileRange& range : frame) {
    io::read_own(source, range.begin, {image + range.begin, static_cast<std::size_t>(range.bytes())});
  }
}

std::uint64_t bytes_of(std::span<const FileRange> frame) {
  std::uint64_t out = 0;
  for (const FileRange& range : frame) out += range.bytes();
  return out;
}

}  // namespace

Sample LargeSamples::sample(const penstock::Source& file, std::span<const std::string> keys,
                            const DescriptorLimit& limit, const Work& work) {
  Scratch& scratch = work.scratch;
  // Who wants headers alone reads no payload that would reveal a wrong assumption.
  KnownFile known = work.call.headers_only ? parse(file, keys, work) : find(file, keys, work);
  const FileLayout& layout = *known.layout;
  const std::span<Payload> payloads = scratch.arena.array<Payload>(layout.tensors.size());
  if (work.call.headers_only) {
    std::fill(payloads.begin(), payloads.end(), Payload{});
    scratch.objects.push_back(std::move(known.layout));
  } else {
    auto large = std::make_shared<const LargeFile>(file, std::move(known), work.call.verify, limit);
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      payloads[i] = {.place = InLargeFile{large.get(), layout.sample.entries[i]}};
    }
    scratch.objects.push_back(std::move(large));  // lives until the batch is made
  }
  return {layout.sample.layout.get(), {payloads.data()}};
}

KnownFile LargeSamples::find(const penstock::Source& source, std::span<const std::string> keys, const Work& work) {
  const LayoutStore::OfOneSize* const known = store_.of_size(source.size());
  if (known != nullptr && !known->layouts.empty()) {
    const FileLayout& first = *known->layouts.front();
    // A sample without tensors would never be read, and so never be found out. One with gaps is read by an archive.
    const bool is_sure_to_be_read = !first.has_gaps && !first.tensors.empty();
    if (work.guesses.allowed() && known->layouts.size() == 1 && !known->has_others && is_sure_to_be_read) {
      work.guesses.assume();
      return {.layout = known->layouts.front(), .is_assumed = true};
    }
    StorageLocations locations;
    if (FileLayoutPtr layout = recognise(*known, *source, work, locations)) {
      return {.layout = std::move(layout), .locations = std::move(locations)};
    }
  }
  return parse(source, keys, work);
}

// Files of one size and different layouts have frames of equal places mostly: tensors of another type or order, or
// other labels. Those of other places are parsed.
FileLayoutPtr LargeSamples::recognise(const LayoutStore::OfOneSize& known, const ByteSource& source, const Work& work,
                                      StorageLocations& locations) {
  const FileLayout& expected = *known.layouts.back();
  std::byte* const bytes = SparseImage::of(work.scratch).prepare(expected.image_bytes(), expected.frame);
  if (bytes == nullptr) return nullptr;
  const std::span<const std::byte> image(bytes, static_cast<std::size_t>(expected.image_bytes()));
  try {
    read_frame(source, expected.frame, bytes);
    work.figures.stats.read_bytes += bytes_of(expected.frame);
    format::DirectoryLayoutPtr directory;
    for (const auto& [format, cache] : store_.directories()) {
      if (!directory) directory = cache->find(image, source.name(), work.call.verify, locations);
    }
    for (auto it = known.layouts.rbegin(); it != known.layouts.rend(); ++it) {
      const FileLayout& layout = **it;
      if (layout.directory != directory || layout.frame != expected.frame) continue;
      if (directory ? layout.lies_at(locations) : layout.begins(image)) return *it;
    }
  } catch (const Error&) {
    // Opening it says what is wrong.
  }
  return nullptr;
}

KnownFile LargeSamples::parse(const penstock::Source& source, std::span<const std::string> keys, const Work& work) {
  const Archive archive = open(source, {.verify = work.call.verify});
  store_.format_of(archive);
  ++work.figures.stats.files_parsed;
  auto layout = layout_of(archive, keys, work.scratch);
  if (!work.call.headers_only) {
    bool is_learnt = false;
    try {
      const bool can_be_assumed = archive.sources().size() == 1 && layout->is_plain && !layout->has_gaps;
      is_learnt = can_be_assumed && (learn_start(archive, *layout) || learn_directory(archive, *layout, work)) &&
                  io::look_at(*archive.sources().front()) == io::FileState::kAsOpened;
    } catch (const Error&) {
      // Whoever reads it next says what is wrong.
    }
    store_.keep(layout, is_learnt, work.scratch);
  }
  return {.layout = std::move(layout), .others = {archive.sources().begin() + 1, archive.sources().end()}};
}

bool LargeSamples::learn_directory(const Archive& archive, FileLayout& layout, const Work& work) {
  const format::Format& format = *detail::ArchiveState::of(archive).format;
  const bool all_stored = std::all_of(layout.storages.begin(), layout.storages.end(),
                                      [](const StorageEntry& storage) { return storage.lies_in_file(); });
  if (format.directory_cache == nullptr || !all_stored) return false;
  layout.frame = frame_around_tensors(layout);
  if (bytes_of(layout.frame) > kMostFrame) return false;
  std::byte* const bytes = SparseImage::of(work.scratch).prepare(layout.file_bytes, layout.frame);
  if (bytes == nullptr) return false;
  const std::span<const std::byte> image(bytes, static_cast<std::size_t>(layout.file_bytes));
  read_frame(*archive.sources().front(), layout.frame, bytes);
  StorageLocations locations;
  layout.directory =
      store_.directories_of(format).locate(image, archive.path(), {.verify = work.call.verify}, locations);
  return layout.directory && layout.directory->index().entries.size() == layout.entries.size() &&
         layout.matches(image, archive.path(), work.call.verify, locations);
}

}  // namespace penstock::data
