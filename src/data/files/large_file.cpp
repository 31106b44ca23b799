#include "data/files/large_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "core/system_error.h"
#include "data/files/file_sample.h"
#include "data/runs.h"
#include "io/crc32.h"
#include "io/plan.h"
#include "io/reader.h"
#include "penstock/error.h"

namespace penstock::data {

LargeFile::LargeFile(std::string path, bool verify_checksums)
    : path_(std::move(path)), verify_checksums_(verify_checksums) {
  const Archive archive = open(path_, {.verify_checksums = verify_checksums});
  for (const SourcePtr& source : archive.sources()) {
    source_names_.push_back(source->name());
    identities_.push_back(identify(*source));
  }
  structure_ = archive.structure();
  entries_.assign(archive.entries().begin(), archive.entries().end());
  storages_.assign(archive.storages().begin(), archive.storages().end());
}

std::uint64_t LargeFile::size() const noexcept {
  std::uint64_t bytes = 0;
  for (const Identity& identity : identities_) bytes += static_cast<std::uint64_t>(identity.size);
  return bytes;
}

LargeFile::Identity LargeFile::identify(const ByteSource& source) {
  if (source.descriptor() < 0) return {.size = static_cast<off_t>(source.size())};
  struct stat status {};
  if (::fstat(source.descriptor(), &status) != 0) {
    core::throw_errno(errno, "cannot look at the file", {.path = source.name()});
  }
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .seconds = status.st_mtim.tv_sec,
          .nanoseconds = status.st_mtim.tv_nsec};
}

SourcePtr LargeFile::reopen_source(std::uint32_t source, Scratch& scratch) const {
  SourcePtr opened = open_source(source_names_[source]);
  scratch.clock.lap(Stage::kOpen);
  ++scratch.stats.files_opened;
  if (identify(*opened) != identities_[source]) {
    throw Error(ErrorCode::kChanged,
                "the file was replaced or written to while it was being read; read it again when it is "
                "complete",
                {.path = source_names_[source]});
  }
  return opened;
}

Archive LargeFile::reopen(Scratch& scratch) const {
  return open(reopen_source(0, scratch), {.verify_checksums = verify_checksums_});
}

void LargeFile::read(std::span<const Wanted> wanted, Scratch& scratch) const {
  SourcePtr source;
  std::uint32_t source_number = 0;
  std::optional<Archive> archive;
  for (const Wanted& one : wanted) {
    const TensorEntry& entry = entries_[one.entry];
    const StorageEntry& storage = storages_[entry.storage];
    const TensorLayout layout(entry.dtype, entry.shape, entry.strides);
    if (layout.nbytes == 0) continue;
    if (lies_plain(entry, storage) && layout.contiguous) {
      if (!source || source_number != storage.source) source = reopen_source(storage.source, scratch);
      source_number = storage.source;
      read_plain(one, *source, scratch);
      continue;
    }
    if (!archive) archive = reopen(scratch);
    const Tensor tensor = archive->entry(one.entry).load({.verify_checksums = verify_checksums_, .threads = 1});
    scratch.clock.lap(Stage::kRead);
    scratch.stats.read_bytes += storage.stored_bytes;
    const Runs runs(one.shape, tensor.strides(), one.strides, entry.dtype.itemsize());
    runs.for_each([&](std::uint64_t from, std::uint64_t to) {
      std::memcpy(one.to + to, tensor.data() + from, runs.run_bytes());
    });
    scratch.clock.lap(Stage::kCopy);
  }
}

void LargeFile::read_plain(const Wanted& wanted, const ByteSource& source, Scratch& scratch) const {
  const TensorEntry& entry = entries_[wanted.entry];
  const std::uint64_t first = storages_[entry.storage].offset + entry.byte_offset;
  const Runs runs(wanted.shape, entry.strides, wanted.strides, entry.dtype.itemsize());
  std::vector<io::Piece> pieces;
  runs.for_each([&](std::uint64_t from, std::uint64_t to) {
    pieces.push_back({.offset = first + from, .length = runs.run_bytes(), .buffer_offset = to});
  });
  const io::Plan plan = io::make_plan(pieces);
  const io::Reader& reader = io::reader_for(source);
  std::vector<io::Scatter> parts;
  for (const io::Range& range : plan.ranges) {
    scratch.check_cancelled();
    parts.clear();
    for (const io::Target& target : std::span(plan.targets).subspan(range.first_target, range.target_count)) {
      parts.push_back({target.buffer == io::kDiscard ? nullptr : wanted.to + target.buffer_offset, target.length});
    }
    reader.read(source, range.offset, parts);
  }
  scratch.clock.lap(Stage::kRead);
  scratch.stats.read_bytes += plan.read_bytes;
  check_crc(wanted);
  scratch.clock.lap(Stage::kDecode);
}

void LargeFile::check_crc(const Wanted& wanted) const {
  const TensorEntry& entry = entries_[wanted.entry];
  const StorageEntry& storage = storages_[entry.storage];
  const bool all = wanted.shape == entry.shape && entry.byte_offset == 0 && entry.nbytes() == storage.nbytes;
  if (!verify_checksums_ || !storage.crc32 || !all) return;
  const Runs runs(wanted.shape, wanted.strides, wanted.strides, entry.dtype.itemsize());
  std::uint32_t crc = 0;
  runs.for_each([&](std::uint64_t from, std::uint64_t) {
    crc = io::crc32(crc, {wanted.to + from, static_cast<std::size_t>(runs.run_bytes())});
  });
  io::require_crc(crc, *storage.crc32, storage.nbytes,
                  {.path = source_names_[storage.source], .offset = storage.offset, .tensor = storage.name});
}

}  // namespace penstock::data
