#include "data/files/large_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "archive/unchanged.h"
#include "data/files/file_sample.h"
#include "data/sample/runs.h"
#include "io/copy/crc32.h"
#include "io/move/plan.h"
#include "io/read/reader.h"
#include "penstock/error.h"

namespace penstock::data {

LargeFile::LargeFile(SourcePtr source, bool verify) : verify_(verify) {
  const Archive archive = open(std::move(source), {.verify = verify});
  for (const SourcePtr& one : archive.sources()) {
    sources_.emplace_back(one);
    size_ += one->size();
  }
  structure_ = archive.structure();
  entries_.assign(archive.entries().begin(), archive.entries().end());
  storages_.assign(archive.storages().begin(), archive.storages().end());
}

const SourcePtr& LargeFile::source_of(std::uint32_t source, Opened& opened, Scratch& scratch) const {
  opened.resize(sources_.size());
  if (opened[source]) return opened[source];
  const SampleFile& file = sources_[source];
  opened[source] = file.source();
  if (!file.is_held()) {
    scratch.clock.lap(Stage::kOpen);
    ++scratch.stats.files_opened;
  }
  return opened[source];
}

void LargeFile::read(std::span<const Wanted> wanted, Scratch& scratch) const {
  Opened opened;
  try {
    read_all(wanted, opened, scratch);
    if (verify_) check_shared(wanted, opened, scratch);
  } catch (const Error& error) {
    throw archive::error_of_change(error, opened);
  }
  for (const SourcePtr& source : opened) {
    if (source) archive::require_unchanged(*source);
  }
}

void LargeFile::read_all(std::span<const Wanted> wanted, Opened& opened, Scratch& scratch) const {
  std::optional<Archive> archive;
  for (const Wanted& one : wanted) {
    const TensorEntry& entry = entries_[one.entry];
    const StorageEntry& storage = storages_[entry.storage];
    const TensorLayout layout(entry.dtype, entry.shape, entry.strides);
    if (layout.nbytes == 0) continue;
    if (entry.encoding.is_plain() && layout.contiguous) {
      read_plain(one, *source_of(storage.source, opened, scratch), scratch);
      continue;
    }
    if (!archive) archive = open(source_of(0, opened, scratch), {.verify = verify_});
    const Tensor tensor = archive->entry(one.entry).load({.verify = verify_, .threads = 1});
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

bool LargeFile::is_record(const Wanted& wanted) const {
  const TensorEntry& entry = entries_[wanted.entry];
  return wanted.shape == entry.shape && entry.byte_offset == 0 && entry.nbytes() == storages_[entry.storage].nbytes;
}

void LargeFile::check_crc(const Wanted& wanted) const {
  const TensorEntry& entry = entries_[wanted.entry];
  const StorageEntry& storage = storages_[entry.storage];
  if (!verify_ || !storage.crc32 || !is_record(wanted)) return;
  const Runs runs(wanted.shape, wanted.strides, wanted.strides, entry.dtype.itemsize());
  std::uint32_t crc = 0;
  runs.for_each([&](std::uint64_t from, std::uint64_t) {
    crc = io::crc32(crc, {wanted.to + from, static_cast<std::size_t>(runs.run_bytes())});
  });
  io::require_crc(crc, *storage.crc32, storage.nbytes,
                  {.path = sources_[storage.source].name(), .offset = storage.offset, .tensor = storage.name});
}

namespace {

// A part of a tensor is not worth reading more than this for its checksum.
constexpr std::uint64_t kMostUnwanted = 16 * 1024;
// What nobody wants is read in pieces of this.
constexpr std::uint64_t kUnwantedAtOnce = 256 * 1024;

/// The bytes of a record that were wanted, wherever they are now.
class RecordPieces {
 public:
  struct Piece {
    std::uint64_t begin;
    std::uint64_t end;
    const std::byte* at;
  };

  void add(std::uint64_t begin, std::uint64_t bytes, const std::byte* at) {
    pieces_.push_back({begin, begin + bytes, at});
  }
  /// A whole tensor of it was wanted, so that it is verified whatever there is to read for that.
  void require() { required_ = true; }
  /// Another check has seen all of it.
  void set_seen() { seen_ = true; }

  /// The CRC-32 of a record of `bytes` bytes, for which `read(begin, end)` gives what nobody wanted; nothing where it
  /// was seen, and where that is much to read for parts of tensors.
  template <class Read>
  std::optional<std::uint32_t> crc(std::uint64_t bytes, const Read& read) {
    if (seen_) return std::nullopt;
    pieces_.push_back({bytes, bytes, nullptr});
    std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    if (!required_ && unwanted() > kMostUnwanted) return std::nullopt;
    std::uint32_t crc = 0;
    std::uint64_t at = 0;
    for (const Piece& piece : pieces_) {
      while (piece.begin > at) {
        const std::uint64_t end = std::min(piece.begin, at + kUnwantedAtOnce);
        crc = io::crc32(crc, read(at, end));
        at = end;
      }
      if (piece.end <= at) continue;
      crc = io::crc32(crc, {piece.at + (at - piece.begin), static_cast<std::size_t>(piece.end - at)});
      at = piece.end;
    }
    return crc;
  }

 private:
  std::uint64_t unwanted() const {
    std::uint64_t at = 0;
    std::uint64_t out = 0;
    for (const Piece& piece : pieces_) {
      out += piece.begin - std::min(piece.begin, at);
      at = std::max(at, piece.end);
    }
    return out;
  }

  std::vector<Piece> pieces_;
  bool required_ = false;
  bool seen_ = false;
};

}  // namespace

void LargeFile::check_shared(std::span<const Wanted> wanted, Opened& opened, Scratch& scratch) const {
  std::map<std::size_t, RecordPieces> records;
  for (const Wanted& one : wanted) {
    const TensorEntry& entry = entries_[one.entry];
    const StorageEntry& storage = storages_[entry.storage];
    const TensorLayout layout(entry.dtype, entry.shape, entry.strides);
    if (!storage.crc32 || !entry.encoding.is_plain() || !layout.contiguous || layout.nbytes == 0) continue;
    RecordPieces& pieces = records[entry.storage];
    if (is_record(one)) {
      pieces.set_seen();
      continue;
    }
    if (one.shape == entry.shape) pieces.require();
    const Runs runs(one.shape, entry.strides, one.strides, entry.dtype.itemsize());
    runs.for_each([&](std::uint64_t from, std::uint64_t to) {
      pieces.add(entry.byte_offset + from, runs.run_bytes(), one.to + to);
    });
  }
  for (auto& [number, pieces] : records) {
    const StorageEntry& storage = storages_[number];
    std::vector<std::byte> unwanted;
    const auto read = [&, &file = storage](std::uint64_t begin, std::uint64_t end) {
      scratch.check_cancelled();
      unwanted.resize(static_cast<std::size_t>(end - begin));
      source_of(file.source, opened, scratch)->read(file.offset + begin, unwanted);
      scratch.stats.read_bytes += unwanted.size();
      return std::span<const std::byte>(unwanted);
    };
    if (const auto crc = pieces.crc(storage.nbytes, read)) {
      io::require_crc(*crc, *storage.crc32, storage.nbytes,
                      {sources_[storage.source].name(), storage.offset, storage.name});
    }
  }
  scratch.clock.lap(Stage::kDecode);
}

}  // namespace penstock::data
