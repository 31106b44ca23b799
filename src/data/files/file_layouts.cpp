// Where the tensors of a small file lie is decided by a few of its bytes: its first bytes and its size, or its
// directory. So these bytes are compared with those of earlier files, and a file that agrees takes its layout from them
// without being parsed. Offsets that differ from file to file come from its own directory, and its CRCs too. Whenever
// anything does not agree, the file is parsed, so a wrong guess costs time and nothing else.

#include "data/files/file_layouts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "archive/archive_state.h"
#include "core/checked.h"
#include "core/view.h"
#include "format/format.h"
#include "io/copy/record_check.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

// Ragged samples have a layout for each length. When there are more than this, all are forgotten and learnt again.
constexpr std::size_t kMaxKnown = 4096;
constexpr std::size_t kMaxKnownBytes = std::size_t{8} << 20;

/// The file as a source. Nobody keeps it longer than the Scratch that owns the bytes.
penstock::Source source_of(const FileLayouts::File& file) {
  static const auto kNobody = std::make_shared<const int>(0);
  auto* bytes = const_cast<std::byte*>(file.bytes.data());  // read-only memory is never written to
  return memory_source(Buffer::wrap(bytes, file.bytes.size(), kNobody, true), file.path);
}

/// How many bytes at the start of a file decide its layout, together with its size; 0 if they do not decide it.
std::size_t prefix_length(const detail::ArchiveState& archive, std::span<const std::byte> file) {
  const auto fingerprint = archive.format->fingerprint;
  const std::uint64_t length = fingerprint == nullptr ? 0 : fingerprint(archive.index, file);
  return length <= file.size() ? static_cast<std::size_t>(length) : 0;
}

/// `data`: null for a tensor without elements.
Payload in_memory(const std::byte* data) noexcept {
  return data == nullptr ? Payload{} : Payload{.place = InMemory{data}};
}

/// Not inlined, because files without CRCs should not pay for it.
[[gnu::noinline]] void require_recorded(const io::Record& record, std::span<const std::byte> bytes) {
  io::RecordCheck(record, true).check(bytes);
}

/// The bytes of a storage. The part that was read elsewhere is zeros in `file.bytes`; it is one whole storage, and no
/// other storage overlaps it.
std::span<const std::byte> stored_bytes(const FileLayouts::File& file, std::uint64_t offset, std::uint64_t bytes,
                                        Arena& arena) {
  if (file.part == nullptr) return file.bytes.subspan(offset, bytes);
  if (offset == file.split.begin && bytes == file.split.bytes) return {file.part, bytes};
  const std::span<std::byte> copy(arena.allocate(bytes), bytes);
  std::copy_n(file.bytes.data() + offset, bytes, copy.data());
  return copy;
}

}  // namespace

std::optional<Sample> FileLayouts::recognise(const File& file, const Work& work) {
  try {
    const Known* known = directories_ != nullptr ? find_directory(file, work) : nullptr;
    if (known == nullptr) known = find_prefix(file);
    if (known == nullptr || !known->layout) return std::nullopt;
    const bool has_part = file.part == nullptr || has_storage(*known, file.split.begin, file.split.bytes);
    if (has_part) return place(*known, file, work);
  } catch (const Error&) {
    // Parsing says what is wrong, or reads it as another format.
  }
  return std::nullopt;
}

const FileLayouts::Known* FileLayouts::find_prefix(const File& file) const {
  const auto [first, last] = by_size_.equal_range(file.bytes.size());
  for (auto it = first; it != last; ++it) {
    const std::vector<std::byte>& prefix = it->second->prefix;
    if (std::memcmp(file.bytes.data(), prefix.data(), prefix.size()) == 0) return it->second.get();
  }
  return nullptr;
}

const FileLayouts::Known* FileLayouts::find_directory(const File& file, const Work& work) {
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
  const bool agreed = format::find_format(*source) == expected_;
  if (!agreed) return nullptr;
  ++work.figures.stats.files_parsed;
  return learn_directory(directory, file, work.scratch);
}

FileLayouts::Place FileLayouts::place_of(const TensorEntry& entry) {
  // The index was checked: all of it lies in the storage.
  return {.storage = entry.storage,
          .offset = entry.byte_offset,
          .nbytes = entry.nbytes(),
          .extent = core::view_span(entry.shape, entry.strides, entry.dtype.itemsize()).value()};
}

const FileLayouts::Known* FileLayouts::learn_directory(const format::DirectoryLayoutPtr& directory, const File& file,
                                                       Scratch& scratch) {
  const format::Index& index = directory->index();
  FileSample sample = file_sample(index.structure, index.entries, file.keys, scratch.structures);
  auto known = std::make_shared<Known>();
  known->directory = directory;
  known->layout = std::move(sample.layout);
  known->storages = index.storages;
  for (const std::uint32_t e : sample.entries) {
    const TensorEntry& entry = index.entries[e];
    if (!entry.encoding.is_plain()) known->layout = nullptr;
    known->places.push_back(place_of(entry));
  }
  make_room(sizeof(Known) + known->storages.size() * sizeof(StorageEntry), scratch);
  return by_directory_.emplace(directory.get(), std::move(known)).first->second.get();
}

Sample FileLayouts::parse(const File& file, const Work& work) {
  // The first file of a format with directories is learnt and recognised at once, so it is not parsed a second time. A
  // file that begins like the last one is taken to be of the same format, because detecting it costs as much as
  // recognising the file.
  std::array<std::byte, 4> magic{};
  std::copy_n(file.bytes.begin(), std::min(magic.size(), file.bytes.size()), magic.begin());
  const bool begins_alike = std::exchange(magic_, magic) == magic && expected_ != nullptr;
  const auto detected = [&]() -> const format::Format& {
    const penstock::Source source = source_of(file);
    return format::detect(*source);
  };
  if (!begins_alike && expect(detected())) {
    if (const auto sample = recognise(file, work)) return *sample;
  }
  return parse_any(file, work);
}

bool FileLayouts::expect(const format::Format& format) {
  if (&format == expected_) return false;
  expected_ = &format;
  directories_ = nullptr;
  if (format.directory_cache == nullptr) return false;
  std::unique_ptr<format::DirectoryCache>& cache = caches_[expected_];
  if (!cache) cache = format.directory_cache();
  directories_ = cache.get();
  return true;
}

Sample FileLayouts::parse_any(const File& file, const Work& work) {
  const Archive archive = open(source_of(file), {.verify = work.call.verify});
  ++work.figures.stats.files_parsed;
  const detail::ArchiveState& state = detail::ArchiveState::of(archive);
  expect(*state.format);
  const FileSample sample = file_sample(archive.structure(), archive.entries(), file.keys, work.scratch.structures);
  work.scratch.objects.push_back(sample.layout);

  auto known = std::make_shared<Known>();
  known->layout = sample.layout;
  known->storages.assign(archive.storages().begin(), archive.storages().end());
  verified_.assign(known->storages.size(), false);
  const std::span<Payload> payloads = work.scratch.arena.array<Payload>(sample.entries.size());
  bool plain = true;
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    const TensorEntry& entry = archive.entries()[sample.entries[i]];
    const StorageEntry& storage = known->storages[entry.storage];
    known->places.push_back(place_of(entry));
    payloads[i] = {};
    if (entry.encoding.is_plain() && storage.source == 0) {
      payloads[i] = in_memory(find(*known, known->places.back(), file, work.call.verify, work.scratch.arena));
      continue;
    }
    plain = false;
    const LazyTensor lazy = archive.entry(sample.entries[i]);
    work.scratch.tensors.push_back(lazy.load({.verify = work.call.verify, .threads = 1}).contiguous());
    payloads[i].place = InMemory{work.scratch.tensors.back().data()};
  }
  if (plain) note_split(*known, file, work.guesses.expected);
  if (plain) learn_prefix(prefix_length(state, file.bytes), std::move(known), file, work.scratch);
  return {sample.layout.get(), {payloads.data()}};
}

void FileLayouts::learn_prefix(std::size_t bytes, KnownPtr known, const File& file, Scratch& scratch) {
  if (bytes == 0) return;
  known->prefix.assign(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
  make_room(sizeof(Known) + bytes + known->storages.size() * sizeof(StorageEntry), scratch);
  by_size_.emplace(file.bytes.size(), std::move(known));
}

Sample FileLayouts::place(const Known& known, const File& file, const Work& work) {
  const std::span<Payload> payloads = work.scratch.arena.array<Payload>(known.places.size());
  verified_.assign(known.storages.size(), false);
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    payloads[i] = in_memory(find(known, known.places[i], file, work.call.verify, work.scratch.arena));
  }
  note_split(known, file, work.guesses.expected);
  return {known.layout.get(), {payloads.data()}};
}

void FileLayouts::note_split(const Known& known, const File& file, const ExpectedSlots& expected) {
  if (file.part != nullptr) return;
  split_ = {};
  if (expected.first == nullptr || expected.tensor >= known.places.size()) return;
  const Place& place = known.places[expected.tensor];
  const bool whole = place.offset == 0 && place.nbytes == known.storages[place.storage].nbytes;
  if (whole) split_ = {file.bytes.size(), offset_of(known, place.storage), place.nbytes};
}

bool FileLayouts::has_storage(const Known& known, std::size_t begin, std::size_t bytes) const {
  for (std::size_t s = 0; s < known.storages.size(); ++s) {
    if (offset_of(known, s) == begin && known.storages[s].nbytes == bytes) return true;
  }
  return false;
}

std::uint64_t FileLayouts::offset_of(const Known& known, std::size_t storage) const {
  return known.directory ? locations_[storage].offset : known.storages[storage].offset;
}

const std::byte* FileLayouts::find(const Known& known, const Place& at, const File& file, bool verify, Arena& arena) {
  const StorageEntry& storage = known.storages[at.storage];
  const std::uint64_t offset = offset_of(known, at.storage);
  const std::optional<std::uint32_t> recorded = known.directory ? locations_[at.storage].crc32 : storage.crc32;
  if (!core::range_fits(offset, storage.nbytes, file.bytes.size()) ||
      !core::range_fits(at.offset, at.extent, storage.nbytes)) {
    throw Error(ErrorCode::kTruncated, "the file ends before the bytes it declares; fetch or write it again",
                {.path = file.path, .offset = offset, .tensor = storage.name});
  }
  const std::span<const std::byte> bytes = stored_bytes(file, offset, storage.nbytes, arena);
  if (recorded && verify && !verified_[at.storage]) {
    require_recorded(
        {.crc32 = recorded, .bytes = storage.nbytes, .path = file.path, .offset = offset, .name = storage.name}, bytes);
    verified_[at.storage] = true;
  }
  return at.nbytes == 0 ? nullptr : bytes.data() + at.offset;
}

void FileLayouts::make_room(std::size_t bytes, Scratch& scratch) {
  known_bytes_ += bytes;
  if (by_directory_.size() + by_size_.size() < kMaxKnown && known_bytes_ <= kMaxKnownBytes) return;
  // Samples of the batch at hand still point to what is forgotten.
  for (auto& [directory, known] : by_directory_) scratch.objects.push_back(std::move(known));
  for (auto& [size, known] : by_size_) scratch.objects.push_back(std::move(known));
  by_directory_.clear();
  by_size_.clear();
  known_bytes_ = bytes;
}

}  // namespace penstock::data
