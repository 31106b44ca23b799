// A large file is read in as few calls as its payload has pieces. Where its layout is only assumed, the bytes that
// decide it are read in the same calls, into an image of the file, and compared before anything else is believed:
//
//   file    |#header#|---------- payload ----------|#directory#|
//   read    |-image--|---- slot of the batch ------|---image---|
//
// So a file costs open, fstat, one preadv, fstat and close. The first fstat gives the size by which its layout is
// assumed. The second is the check that nobody wrote to the file between the two.

#include "data/files/large_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "archive/read_way.h"
#include "archive/unchanged.h"
#include "core/stop_scope.h"
#include "data/files/record_pieces.h"
#include "data/files/sparse_image.h"
#include "data/sample/runs.h"
#include "io/copy/crc32.h"
#include "io/move/plan.h"
#include "io/read/read_for_crc.h"
#include "io/read/reader.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// Payload with a CRC is read in pieces of this size, so that a piece is still in the processor's cache when its CRC is
/// computed. Less than two pieces are read at once, because then the second call would cost more than it gains.
constexpr std::uint64_t kCheckedAtOnce = std::uint64_t{1} << 20;

}  // namespace

/// One read of a file.
class LargeRead {
 public:
  static constexpr std::uint32_t kImage = 0;  ///< the buffer of a plan

  LargeRead(const LargeFile& file, std::span<const WantedTensor> wanted, const Work& work)
      : file_(file),
        layout_(*file.known_.layout),
        wanted_(wanted),
        work_(work),
        locations_(file.known_.locations),
        progress_(wanted.size()),
        opened_(file.sources_.size()) {}

  void run() {
    const core::StopScope scope(work_.call.cancelled);  // in the thread of a worker that helps, too
    try {
      if (!file_.known_.is_assumed) {
        read_each();
      } else if (!read_with_frame()) {
        return work_.guesses.refute();
      }
      if (file_.verify_) check_records();
      work_.figures.clock.lap(Stage::kDecode);
    } catch (const Error& error) {
      std::vector<penstock::Source> read;
      for (const auto& source : opened_) {
        if (source) read.push_back(*source);
      }
      throw archive::error_of_change(error, read);
    }
    require_unchanged();
  }

 private:
  const TensorEntry& entry_of(const WantedTensor& wanted) const { return layout_.entries[wanted.entry]; }
  const StorageEntry& storage_of(const WantedTensor& wanted) const {
    return layout_.storages[entry_of(wanted).storage];
  }
  /// How the bytes of the tensor would get to memory; kParts also where they are to be changed or put in order.
  archive::Way way_of(const WantedTensor& wanted) const {
    const TensorEntry& entry = entry_of(wanted);
    const archive::Way way = archive::way_of(storage_of(wanted), archive::stretch_of(entry), {}).way;
    return way == archive::Way::kRun && !archive::lies_as_values(entry) ? archive::Way::kParts : way;
  }
  std::optional<std::uint32_t> crc_of(std::size_t storage) const { return layout_.location(storage, locations_).crc32; }
  Runs runs_of(const WantedTensor& wanted) const {
    return Runs(wanted.shape, entry_of(wanted).strides, wanted.strides, entry_of(wanted).dtype.itemsize());
  }

  const penstock::Source& source_of(std::uint32_t source) {
    if (opened_[source]) return *opened_[source];
    const HeldFile& file = *file_.sources_[source];
    opened_[source] = file.source();
    if (!file.is_held()) {
      work_.figures.clock.lap(Stage::kOpen);
      ++work_.figures.stats.files_opened;
    }
    return *opened_[source];
  }

  void require_unchanged() const {
    for (const auto& source : opened_) {
      if (source) archive::require_unchanged(**source);
    }
  }

  void add_pieces(const WantedTensor& wanted, std::uint32_t buffer, std::vector<io::Piece>& pieces) const {
    const std::uint64_t first = storage_of(wanted).offset + entry_of(wanted).byte_offset;
    const Runs runs = runs_of(wanted);
    runs.for_each([&](std::uint64_t from, std::uint64_t to) {
      pieces.push_back({.buffer = buffer, .offset = first + from, .length = runs.run_bytes(), .buffer_offset = to});
    });
  }

  /// Whether the CRC is computed while the payload is read: only for a whole tensor, because a slice is seldom
  /// verified.
  bool is_checked(const WantedTensor& wanted) const {
    return file_.verify_ && storage_of(wanted).crc32 && wanted.shape == entry_of(wanted).shape;
  }

  /// Reads pieces into buffers: buffer 0 is the image, buffer n is wanted_[first + n - 1].
  void read(const penstock::Source& source, std::span<const io::Piece> pieces, std::size_t first) {
    std::uint64_t bytes = 0;
    bool checked = false;
    for (const io::Piece& piece : pieces) {
      bytes += piece.length;
      checked = checked || (piece.buffer != kImage && is_checked(wanted_[first + piece.buffer - 1]));
    }
    io::ReadCosts costs = io::costs_of(*source);
    if (costs.waits()) return read_awaited(source, pieces, first);
    if (checked && bytes >= 2 * kCheckedAtOnce) costs.piece = std::min(costs.piece, kCheckedAtOnce);
    const io::Plan plan = io::make_plan(pieces, costs);
    const io::Reader& reader = io::reader_for(*source);
    std::vector<io::Scatter> parts;
    for (const io::ReadRange& range : plan.ranges) {
      work_.call.check_cancelled();
      const auto targets = std::span(plan.targets).subspan(range.first_target, range.target_count);
      parts.clear();
      for (const io::Target& target : targets) parts.push_back({place_of(target, first), target.length});
      reader.read(*source, range.offset, parts);
      work_.figures.clock.lap(Stage::kRead);
      if (!checked) continue;
      for (const io::Target& target : targets) note_arrival(target, first);
      work_.figures.clock.lap(Stage::kDecode);
    }
    work_.figures.stats.read_bytes += plan.read_bytes;
  }

  /// The same of a server, which is asked for all of it at once.
  void read_awaited(const penstock::Source& source, std::span<const io::Piece> pieces, std::size_t first) {
    std::vector<io::SourceRuns> reads = {{source}};
    for (const io::Piece& piece : pieces) {
      std::byte* const to = place_of({piece.buffer, piece.buffer_offset, piece.length}, first);
      reads.front().runs.push_back({piece.offset, {to, static_cast<std::size_t>(piece.length)}});
      work_.figures.stats.read_bytes += piece.length;
    }
    io::read_at_once(reads);
    work_.figures.clock.lap(Stage::kRead);
    for (const io::Piece& piece : pieces) note_arrival({piece.buffer, piece.buffer_offset, piece.length}, first);
    work_.figures.clock.lap(Stage::kDecode);
  }

  std::byte* place_of(const io::Target& target, std::size_t first) const {
    if (target.buffer == io::kDiscard) return nullptr;
    return (target.buffer == kImage ? image_ : wanted_[first + target.buffer - 1].to) + target.buffer_offset;
  }

  void note_arrival(const io::Target& target, std::size_t first) {
    if (target.buffer == io::kDiscard || target.buffer == kImage) return;
    const std::size_t number = first + target.buffer - 1;
    Progress& progress = progress_[number];
    if (!is_checked(wanted_[number]) || progress.bytes != target.buffer_offset) return;
    progress.crc = io::crc32(progress.crc, {place_of(target, first), static_cast<std::size_t>(target.length)});
    progress.bytes += target.length;
  }

  /// Reads the payload together with the bytes that show whether the file has the assumed layout; whether it has.
  bool read_with_frame() {
    image_ = SparseImage::of(work_.scratch).prepare(layout_.image_bytes(), layout_.frame);
    if (image_ == nullptr) return false;
    const penstock::Source source = source_of(0);
    std::vector<io::Piece> pieces;
    for (const FileRange& range : layout_.frame) {
      pieces.push_back(
          {.buffer = kImage, .offset = range.begin, .length = range.bytes(), .buffer_offset = range.begin});
    }
    for (std::size_t i = 0; i < wanted_.size(); ++i) add_pieces(wanted_[i], static_cast<std::uint32_t>(i + 1), pieces);
    read(source, pieces, 0);
    const std::span<const std::byte> image(image_, static_cast<std::size_t>(layout_.image_bytes()));
    if (!layout_.matches(image, source.name(), file_.verify_, locations_)) {
      archive::require_unchanged(*source);
      return false;
    }
    if (!file_.is_confirmed_.exchange(true)) work_.guesses.confirm();
    return true;
  }

  void read_each() {
    std::optional<Archive> archive;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const WantedTensor& wanted = wanted_[i];
      const archive::Way way = way_of(wanted);
      if (way == archive::Way::kNothing) continue;
      if (way != archive::Way::kRun) {
        if (!archive) archive = open(source_of(0), {.verify = file_.verify_});
        read_decoded(*archive, wanted);
        continue;
      }
      std::vector<io::Piece> pieces;
      add_pieces(wanted, 1, pieces);
      read(source_of(storage_of(wanted).source), pieces, i);
    }
  }

  void read_decoded(const Archive& archive, const WantedTensor& wanted) {
    const Tensor tensor = archive.entry(wanted.entry).load({.verify = file_.verify_, .threads = 1});
    work_.figures.clock.lap(Stage::kRead);
    work_.figures.stats.read_bytes += storage_of(wanted).stored_bytes;
    const Runs runs(wanted.shape, tensor.strides(), wanted.strides, tensor.dtype().itemsize());
    runs.for_each([&](std::uint64_t from, std::uint64_t to) {
      std::memcpy(wanted.to + to, tensor.data() + from, runs.run_bytes());
    });
    work_.figures.clock.lap(Stage::kCopy);
  }

  bool is_record(const WantedTensor& wanted) const {
    const TensorEntry& entry = entry_of(wanted);
    return wanted.shape == entry.shape && entry.byte_offset == 0 && entry.nbytes() == storage_of(wanted).nbytes;
  }

  io::RecordCheck check_of(std::size_t number) const {
    const StorageEntry& storage = layout_.storages[number];
    return {{.crc32 = crc_of(number),
             .bytes = storage.nbytes,
             .path = file_.sources_[storage.source]->name(),
             .offset = storage.offset},
            file_.verify_};
  }

  /// The record's name in this file. The names in the layout may be those of an earlier file, because each `.pt` keeps
  /// its records in a folder of its own.
  std::string name_of(std::size_t number) {
    if (locations_.empty()) return layout_.storages[number].name;
    const Archive own = open(source_of(0));
    return own.storages()[number].name;
  }

  /// Checks all records that have a CRC. A tensor may be all of its record or a part of it; the bytes of a record that
  /// no tensor brought are read for its check.
  void check_records() {
    std::map<std::size_t, RecordPieces> records;
    std::vector<std::size_t> checked;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const WantedTensor& wanted = wanted_[i];
      const TensorEntry& entry = entry_of(wanted);
      if (!crc_of(entry.storage) || way_of(wanted) != archive::Way::kRun) continue;
      if (is_record(wanted)) {
        check_record(i);
        checked.push_back(entry.storage);
        continue;
      }
      RecordPieces& pieces = records[entry.storage];
      if (wanted.shape == entry.shape) pieces.require();
      add_to(pieces, i);
    }
    for (const std::size_t number : checked) records.erase(number);
    for (auto& [number, pieces] : records) check_pieces(number, pieces);
  }

  /// Checks a record that is just the tensor wanted_[number].
  void check_record(std::size_t number) {
    const WantedTensor& wanted = wanted_[number];
    const TensorEntry& entry = entry_of(wanted);
    const Progress& progress = progress_[number];
    io::RecordCheck check = check_of(entry.storage);
    if (progress.bytes == entry.nbytes()) {
      check.add_known(progress.crc, progress.bytes);
    } else {
      const Runs runs(wanted.shape, wanted.strides, wanted.strides, entry.dtype.itemsize());
      runs.for_each([&](std::uint64_t from, std::uint64_t) {
        check.add({wanted.to + from, static_cast<std::size_t>(runs.run_bytes())});
      });
    }
    check.finish([&] { return name_of(entry.storage); });
  }

  void add_to(RecordPieces& pieces, std::size_t number) const {
    const WantedTensor& wanted = wanted_[number];
    const TensorEntry& entry = entry_of(wanted);
    const Progress& progress = progress_[number];
    const Runs runs = runs_of(wanted);
    runs.for_each([&](std::uint64_t from, std::uint64_t to) {
      const bool is_known = runs.single() && progress.bytes == runs.run_bytes();
      pieces.add(entry.byte_offset + from, runs.run_bytes(), wanted.to + to,
                 is_known ? std::optional(progress.crc) : std::nullopt);
    });
  }

  void check_pieces(std::size_t number, RecordPieces& pieces) {
    const StorageEntry& storage = layout_.storages[number];
    add_frame(storage, pieces);
    const penstock::Source& source = source_of(storage.source);
    const auto crc_of = [&](std::uint64_t begin, std::uint64_t end) {
      work_.call.check_cancelled();
      const io::CrcRun run{source, storage.offset + begin, end - begin};
      work_.figures.stats.read_bytes += run.bytes;
      return io::read_for_crc({&run, 1}).front();
    };
    io::RecordCheck check = check_of(number);
    if (pieces.feed(check, io::costs_of(*source), crc_of)) check.finish([&] { return name_of(number); });
  }

  /// Adds the bytes of a record that lie in the image, such as the header of an array in an `.npz`.
  void add_frame(const StorageEntry& storage, RecordPieces& pieces) const {
    if (image_ == nullptr) return;
    for (const FileRange& range : layout_.frame) {
      const std::uint64_t begin = std::max(range.begin, storage.offset);
      const std::uint64_t end = std::min(range.end, storage.offset + storage.nbytes);
      if (begin < end) pieces.add(begin - storage.offset, end - begin, image_ + begin);
    }
  }

  const LargeFile& file_;
  const FileLayout& layout_;
  std::span<const WantedTensor> wanted_;
  const Work work_;
  /// How many bytes of a wanted tensor have arrived in order from its start, and their CRC.
  struct Progress {
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
  };

  StorageLocations locations_;
  std::vector<Progress> progress_;
  std::vector<std::optional<penstock::Source>> opened_;  ///< each at most once
  std::byte* image_ = nullptr;                           ///< holds the bytes of the frame at their offsets
};

LargeFile::LargeFile(const penstock::Source& source, KnownFile known, bool verify, const DescriptorLimit& limit)
    : known_(std::move(known)), verify_(verify) {
  sources_.push_back(std::make_unique<HeldFile>(source, limit));
  for (const penstock::Source& other : known_.others) sources_.push_back(std::make_unique<HeldFile>(other, limit));
  known_.others.clear();  // each HeldFile decides whether its descriptor stays open
}

void LargeFile::read(std::span<const WantedTensor> wanted, const Work& work) const {
  LargeRead(*this, wanted, work).run();
}

}  // namespace penstock::data
