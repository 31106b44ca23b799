// Where the tensors of a file lie is decided by a few of its bytes, its frame. So these bytes are compared with those
// of earlier files, and a file that agrees takes its layout from them without being parsed.
//
//   .npy, .safetensors   |#header#|  payload ...                       |   and the size of the file
//   .pt, .npz            |#records#| payload |#record#| payload |#directory#|
//
// A small file is in memory before anyone knows what it is, so that its frame is compared at once. Offsets that differ
// from file to file come from its own directory, and its CRCs too. Of a large file only the size is known. It is taken
// to have the layout of earlier files of that size, as long as these had one layout: its frame is read together with
// its payload, in one call, and compared then (LargeFile::read). Where files of one size have several layouts, the
// frame is read first. Whenever anything does not agree, the file is parsed, so a wrong guess costs time and nothing
// else.

#include "data/files/known_layouts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "archive/archive_state.h"
#include "format/format.h"
#include "io/file/file_version.h"
#include "io/source/own_read.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

// Ragged samples have a layout for each length. When there are more than this, all are forgotten and learnt again.
constexpr std::size_t kMostKnown = 4096;
constexpr std::size_t kMostKnownBytes = std::size_t{8} << 20;
/// Files of one size that are all different (each with an identity of its own) are not worth remembering.
constexpr std::size_t kMostOfOneSize = 256;
/// A frame that is larger takes longer to read and compare than to parse.
constexpr std::uint64_t kMostFrame = std::uint64_t{1} << 20;
/// Headers are mostly shorter.
constexpr std::uint64_t kUsualHead = 4096;

/// The file as a source. Nobody keeps it longer than the Scratch that owns the bytes.
penstock::Source source_of(const WholeFile& file) {
  static const auto kNobody = std::make_shared<const int>(0);
  auto* bytes = const_cast<std::byte*>(file.bytes.data());  // read-only memory is never written to
  return memory_source(Buffer::wrap(bytes, file.bytes.size(), kNobody, true), file.path);
}

std::shared_ptr<FileLayout> layout_of(const Archive& archive, std::span<const std::string> keys, Scratch& scratch) {
  auto out = std::make_shared<FileLayout>(file_sample(archive.structure(), archive.entries(), keys, scratch.structures),
                                          archive.entries(), archive.storages());
  out->file_bytes = archive.sources().front().size();
  return out;
}

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

std::optional<Sample> KnownLayouts::recognise(const WholeFile& file, const Work& work) {
  try {
    const FileLayout* known = directories_ != nullptr ? find_by_directory(file, work) : nullptr;
    if (known == nullptr) {
      locations_.clear();
      known = find_by_start(file);
    }
    if (known == nullptr || !known->is_plain) return std::nullopt;
    if (file.part != nullptr && !known->has_storage(file.split.begin, file.split.bytes, locations_))
      return std::nullopt;
    const Sample sample = WholeFilePayloads(file, *known, locations_, work).sample();
    note_split(*known, file, work.slots);
    return sample;
  } catch (const Error&) {
    return std::nullopt;  // parsing says what is wrong, or reads it as another format
  }
}

const FileLayout* KnownLayouts::find_by_start(const WholeFile& file) const {
  const auto known = by_size_.find(file.bytes.size());
  if (known == by_size_.end()) return nullptr;
  for (const FileLayoutPtr& layout : known->second.layouts) {
    if (layout->begins(file.bytes)) return layout.get();
  }
  return nullptr;
}

const FileLayout* KnownLayouts::find_by_directory(const WholeFile& file, const Work& work) {
  const bool verify = work.call.verify;
  const auto directory = file.part != nullptr
                             ? directories_->find(file.bytes, file.path, verify, locations_)
                             : directories_->locate(file.bytes, file.path, {.verify = verify}, locations_);
  if (directory == nullptr) return nullptr;
  const auto known = by_directory_.find(directory.get());
  if (known != by_directory_.end()) return known->second.get();
  if (file.part != nullptr) return nullptr;
  // Seen for the first time: the table of formats must agree on what it is.
  const penstock::Source source = source_of(file);
  if (format::find_format(*source) != expected_) return nullptr;
  ++work.figures.stats.files_parsed;
  const format::Index& index = directory->index();
  auto layout = std::make_shared<FileLayout>(
      file_sample(index.structure, index.entries, file.keys, work.scratch.structures), index.entries, index.storages);
  layout->directory = directory;
  make_room(*layout, work.scratch);
  return by_directory_.emplace(directory.get(), std::move(layout)).first->second.get();
}

Sample KnownLayouts::parse(const WholeFile& file, const Work& work) {
  // The first file of a format with directories is learnt and recognised at once, so it is not parsed a second time. A
  // file that begins like the last one is taken to be of the same format, because detecting it costs as much as
  // recognising the file.
  std::array<std::byte, 4> magic{};
  std::copy_n(file.bytes.begin(), std::min(magic.size(), file.bytes.size()), magic.begin());
  const bool begins_alike = std::exchange(magic_, magic) == magic && expected_ != nullptr;
  const penstock::Source source = source_of(file);
  if (!begins_alike && expect(format::detect(*source))) {
    if (const auto sample = recognise(file, work)) return *sample;
  }
  const Archive archive = open(source, {.verify = work.call.verify});
  ++work.figures.stats.files_parsed;
  expect(*detail::ArchiveState::of(archive).format);
  locations_.clear();
  const auto layout = layout_of(archive, file.keys, work.scratch);
  work.scratch.objects.push_back(layout);
  if (layout->is_plain && archive.sources().size() == 1) {
    const Sample sample = WholeFilePayloads(file, *layout, {}, work).sample();
    note_split(*layout, file, work.slots);
    if (learn_start(archive, *layout)) keep(layout, true, work.scratch);
    return sample;
  }
  // What has to be decoded, and what lies in another file, is loaded at once: it cannot be read later.
  const std::span<Payload> payloads = work.scratch.arena.array<Payload>(layout->tensors.size());
  std::fill(payloads.begin(), payloads.end(), Payload{});
  WholeFilePayloads own(file, *layout, {}, work);
  for (std::size_t i = 0; i < payloads.size() && !work.call.headers_only; ++i) {
    const TensorEntry& entry = layout->entries[layout->sample.entries[i]];
    if (entry.encoding.is_plain() && layout->storages[entry.storage].source == 0) {
      payloads[i] = own.find(i);
      continue;
    }
    const LazyTensor lazy = archive.entry(layout->sample.entries[i]);
    work.scratch.tensors.push_back(lazy.load({.verify = work.call.verify, .threads = 1}).contiguous());
    payloads[i].place = InMemory{work.scratch.tensors.back().data()};
  }
  return {layout->sample.layout.get(), {payloads.data()}};
}

Sample KnownLayouts::sample(const WholeFile& file, const Work& work) {
  const auto known = recognise(file, work);
  return known ? *known : parse(file, work);
}

/// Takes the files that follow for ones of this format, until one is parsed that is not. Whether it has directories to
/// be looked up and another format was expected before.
bool KnownLayouts::expect(const format::Format& format) {
  if (&format == expected_) return false;
  expected_ = &format;
  directories_ = format.directory_cache == nullptr ? nullptr : &directories_of(format);
  return directories_ != nullptr;
}

/// Finds where the tensor that `expected` awaits lies in files like this one.
void KnownLayouts::note_split(const FileLayout& layout, const WholeFile& file, const ExpectedSlots& expected) {
  if (file.part != nullptr) return;
  split_ = {};
  if (expected.first == nullptr || expected.tensor >= layout.tensors.size()) return;
  const TensorBytes& tensor = layout.tensors[expected.tensor];
  const bool is_whole = tensor.offset == 0 && tensor.nbytes == layout.storages[tensor.storage].nbytes;
  if (is_whole) split_ = {file.bytes.size(), layout.location(tensor.storage, locations_).offset, tensor.nbytes};
}

Sample KnownLayouts::sample(const penstock::Source& file, std::span<const std::string> keys,
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

KnownFile KnownLayouts::find(const penstock::Source& source, std::span<const std::string> keys, const Work& work) {
  const auto at = by_size_.find(source.size());
  if (at != by_size_.end() && !at->second.layouts.empty()) {
    const OfOneSize& known = at->second;
    const FileLayout& first = *known.layouts.front();
    // A sample without tensors would never be read, and so never be found out. One with gaps is read by an archive.
    const bool is_sure_to_be_read = !first.has_gaps && !first.tensors.empty();
    if (work.guesses.allowed() && known.layouts.size() == 1 && !known.has_others && is_sure_to_be_read) {
      work.guesses.assume();
      return {.layout = known.layouts.front(), .is_assumed = true};
    }
    StorageLocations locations;
    if (FileLayoutPtr layout = recognise(known, *source, work, locations)) {
      return {.layout = std::move(layout), .locations = std::move(locations)};
    }
  }
  return parse(source, keys, work);
}

// Files of one size and different layouts have frames of equal places mostly: tensors of another type or order, or
// other labels. Those of other places are parsed.
FileLayoutPtr KnownLayouts::recognise(const OfOneSize& known, const ByteSource& source, const Work& work,
                                      StorageLocations& locations) {
  const FileLayout& expected = *known.layouts.back();
  std::byte* const bytes = SparseImage::of(work.scratch).prepare(expected.image_bytes(), expected.frame);
  if (bytes == nullptr) return nullptr;
  const std::span<const std::byte> image(bytes, static_cast<std::size_t>(expected.image_bytes()));
  try {
    read_frame(source, expected.frame, bytes);
    work.figures.stats.read_bytes += bytes_of(expected.frame);
    format::DirectoryLayoutPtr directory;
    for (const auto& [format, cache] : caches_) {
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

KnownFile KnownLayouts::parse(const penstock::Source& source, std::span<const std::string> keys, const Work& work) {
  const Archive archive = open(source, {.verify = work.call.verify});
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
    keep(layout, is_learnt, work.scratch);
  }
  return {.layout = std::move(layout), .others = {archive.sources().begin() + 1, archive.sources().end()}};
}

bool KnownLayouts::learn_start(const Archive& archive, FileLayout& layout) const {
  const detail::ArchiveState& state = detail::ArchiveState::of(archive);
  if (state.format->fingerprint == nullptr) return false;
  const ByteSource& source = *archive.sources().front();
  std::vector<std::byte> head(static_cast<std::size_t>(std::min(kUsualHead, source.size())));
  io::read_own(source, 0, head);
  const std::uint64_t bytes = state.format->fingerprint(state.index, head);
  if (bytes == 0 || bytes > std::min(kMostFrame, source.size())) return false;
  const bool is_longer = bytes > head.size();
  head.resize(static_cast<std::size_t>(bytes));
  if (is_longer) io::read_own(source, 0, head);
  head.shrink_to_fit();
  layout.head = std::move(head);
  layout.frame = {{0, bytes}};
  return true;
}

bool KnownLayouts::learn_directory(const Archive& archive, FileLayout& layout, const Work& work) {
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
  layout.directory = directories_of(format).locate(image, archive.path(), {.verify = work.call.verify}, locations);
  return layout.directory && layout.directory->index().entries.size() == layout.entries.size() &&
         layout.matches(image, archive.path(), work.call.verify, locations);
}

format::DirectoryCache& KnownLayouts::directories_of(const format::Format& format) {
  std::unique_ptr<format::DirectoryCache>& cache = caches_[&format];
  if (!cache) cache = format.directory_cache();
  return *cache;
}

void KnownLayouts::keep(std::shared_ptr<FileLayout> layout, bool is_learnt, Scratch& scratch) {
  const auto known = by_size_.find(layout->file_bytes);
  const bool is_new_size = known == by_size_.end();
  if (is_learnt && !is_new_size && known->second.layouts.size() >= kMostOfOneSize) is_learnt = false;
  if (!is_learnt && !is_new_size && known->second.has_others) return;
  make_room(*layout, scratch);
  OfOneSize& alike = by_size_[layout->file_bytes];
  if (is_learnt) {
    alike.layouts.push_back(std::move(layout));
  } else {
    alike.has_others = true;
  }
}

void KnownLayouts::make_room(const FileLayout& layout, Scratch& scratch) {
  const std::size_t bytes = sizeof(FileLayout) + layout.head.size() + layout.entries.size() * sizeof(TensorEntry) +
                            layout.storages.size() * sizeof(StorageEntry);
  known_bytes_ += bytes;
  if (++known_ <= kMostKnown && known_bytes_ <= kMostKnownBytes) return;
  // Samples of the batch at hand still point to what is forgotten.
  for (auto& [directory, known] : by_directory_) scratch.objects.push_back(std::move(known));
  for (auto& [size, known] : by_size_) {
    for (FileLayoutPtr& old : known.layouts) scratch.objects.push_back(std::move(old));
  }
  by_directory_.clear();
  by_size_.clear();
  known_ = 1;
  known_bytes_ = bytes;
}

}  // namespace penstock::data
