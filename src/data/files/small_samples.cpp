// A small file's frame is compared as soon as it is read. Offsets that differ from file to file come from its own
// directory, and its CRCs too.

#include "data/files/small_samples.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "archive/archive_state.h"
#include "format/format.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// The file as a source. Nobody keeps it longer than the Scratch that owns the bytes.
penstock::Source source_of(const WholeFile& file) {
  static const auto kNobody = std::make_shared<const int>(0);
  auto* bytes = const_cast<std::byte*>(file.bytes.data());  // read-only memory is never written to
  return memory_source(Buffer::wrap(bytes, file.bytes.size(), kNobody, true), file.path);
}

}  // namespace

std::optional<Sample> SmallSamples::recognise(const WholeFile& file, const Work& work) {
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

const FileLayout* SmallSamples::find_by_start(const WholeFile& file) const {
  const LayoutStore::OfOneSize* const known = store_.of_size(file.bytes.size());
  if (known == nullptr) return nullptr;
  for (const FileLayoutPtr& layout : known->layouts) {
    if (layout->begins(file.bytes)) return layout.get();
  }
  return nullptr;
}

const FileLayout* SmallSamples::find_by_directory(const WholeFile& file, const Work& work) {
  const bool verify = work.call.verify;
  const auto directory = file.part != nullptr
                             ? directories_->find(file.bytes, file.path, verify, locations_)
                             : directories_->locate(file.bytes, file.path, {.verify = verify}, locations_);
  if (directory == nullptr) return nullptr;
  if (const FileLayout* const known = store_.with_directory(directory.get())) return known;
  if (file.part != nullptr) return nullptr;
  // Seen for the first time: the table of formats must agree on what it is.
  const penstock::Source source = source_of(file);
  if (format::find_format(*source) != expected_) return nullptr;
  ++work.figures.stats.files_parsed;
  const format::Index& index = directory->index();
  auto layout = std::make_shared<FileLayout>(
      file_sample(index.structure, index.entries, file.keys, work.scratch.structures), index.entries, index.storages);
  layout->directory = directory;
  return store_.keep_by_directory(std::move(layout), work.scratch);
}

Sample SmallSamples::parse(const WholeFile& file, const Work& work) {
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
  expect(store_.format_of(archive));
  locations_.clear();
  const auto layout = layout_of(archive, file.keys, work.scratch);
  work.scratch.objects.push_back(layout);
  if (layout->is_plain && archive.sources().size() == 1) {
    const Sample sample = WholeFilePayloads(file, *layout, {}, work).sample();
    note_split(*layout, file, work.slots);
    if (learn_start(archive, *layout)) store_.keep(layout, true, work.scratch);
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

Sample SmallSamples::sample(const WholeFile& file, const Work& work) {
  const auto known = recognise(file, work);
  return known ? *known : parse(file, work);
}

/// Takes the files that follow for ones of this format, until one is parsed that is not. Whether it has directories to
/// be looked up and another format was expected before.
bool SmallSamples::expect(const format::Format& format) {
  if (&format == expected_) return false;
  expected_ = &format;
  directories_ = format.directory_cache == nullptr ? nullptr : &store_.directories_of(format);
  return directories_ != nullptr;
}

/// Finds where the tensor that `expected` awaits lies in files like this one.
void SmallSamples::note_split(const FileLayout& layout, const WholeFile& file, const ExpectedSlots& expected) {
  if (file.part != nullptr) return;
  split_ = {};
  if (expected.first == nullptr || expected.tensor >= layout.tensors.size()) return;
  const TensorBytes& tensor = layout.tensors[expected.tensor];
  const bool is_whole = tensor.offset == 0 && tensor.nbytes == layout.storages[tensor.storage].nbytes;
  if (is_whole) split_ = {file.bytes.size(), layout.location(tensor.storage, locations_).offset, tensor.nbytes};
}

}  // namespace penstock::data
