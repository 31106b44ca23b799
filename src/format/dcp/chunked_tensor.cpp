// Reads a tensor that is cut into chunks as if it lay in one piece. A range of the tensor takes one contiguous range of
// each chunk (chunk_runs.h). Long runs are read straight to their places, hundreds by one call; short ones are read
// together into a scratch and copied from there, because a vector for each would cost more than the copy.
//
// A chunk has the CRC-32 of its record, and a range is mostly not all of it. So the CRCs of the ranges that are read
// are put together (parts_check.h), and a chunk of which all has been read that way is known to be right.

#include "format/dcp/chunked_tensor.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "core/format.h"
#include "core/stop_scope.h"
#include "core/view.h"
#include "format/dcp/chunk_runs.h"
#include "format/dcp/parts_check.h"
#include "io/copy/crc32.h"
#include "io/copy/record_check.h"
#include "io/copy/scatter.h"
#include "io/read/read_for_crc.h"
#include "io/read/reader.h"
#include "io/source/composed_source.h"
#include "io/source/source.h"
#include "penstock/error.h"
#include "penstock/tensor.h"

namespace penstock::format::dcp {
namespace {

/// Runs shorter than this go through the scratch.
constexpr std::uint64_t kShortRun = 2048;
/// The size of the scratch, and of one read where a checksum is computed: both must still be in the cache afterwards.
constexpr std::uint64_t kAtOnce = std::uint64_t{256} << 10;
constexpr std::size_t kMaxParts = 256;
/// Smaller parts of a record are not remembered for its checksum, because the list of them would cost more than it
/// saves.
constexpr std::uint64_t kSmallPart = std::uint64_t{16} << 10;

/// A chunk, and which parts of it have a checksum so far.
class ChunkReader {
 public:
  ChunkReader(FoundChunk chunk, const Shape& shape, const DType& dtype)
      : chunk_(std::move(chunk)), dtype_(dtype), runs_(chunk_.box, shape, dtype.itemsize()) {
    in_order_ = core::is_c_order(chunk_.box.shape, chunk_.strides);
    waits_ = io::costs_of(*chunk_.file).waits();
    if (chunk_.crc32) check_ = std::make_unique<PartsCheck>(chunk_.record_bytes, *chunk_.crc32);
    whole_record_ = in_order_ && chunk_.offset == chunk_.record_offset && runs_.bytes() == chunk_.record_bytes;
  }

  const Source& file() const noexcept { return chunk_.file; }
  bool waits() const noexcept { return waits_; }
  /// Whether bytes go through a scratch.
  bool has_short_runs() const noexcept { return runs_.run_bytes() < kShortRun; }

  /// Fills those bytes of [offset, offset + into.size()) of the tensor that lie in this chunk.
  void read(std::uint64_t offset, std::span<std::byte> into) const {
    Filling filling(*this);
    for_each_run(offset, into, [&](std::uint64_t begin, std::span<std::byte> to) { filling.add(begin, to); });
    filling.finish();
  }

  /// The same bytes, for whoever asks for those of many chunks at once: adds what is to be read to `reads`. Call
  /// `arrived` when it has been.
  struct Awaited {
    const ChunkReader* chunk = nullptr;
    std::uint64_t begin = 0;  ///< in the chunk
    std::uint64_t bytes = 0;
    std::vector<io::Scatter> parts = {};        ///< where they belong
    std::unique_ptr<std::byte[]> scratch = {};  ///< where they come, if the parts are short
  };
  void ask(std::uint64_t offset, std::span<std::byte> into, std::vector<Awaited>& out,
           std::vector<io::SourceRuns>& reads) const {
    Awaited asked{.chunk = this};
    for_each_run(offset, into, [&](std::uint64_t begin, std::span<std::byte> to) {
      if (asked.parts.empty()) asked.begin = begin;
      asked.parts.push_back({to.data(), to.size()});
      asked.bytes += to.size();
    });
    if (asked.bytes == 0) return;
    if (!in_order_) return io::fill_parts(asked.parts, ordered().data() + asked.begin);
    if (has_short_runs()) asked.scratch = std::make_unique_for_overwrite<std::byte[]>(asked.bytes);
    if (reads.empty() || reads.back().source != chunk_.file) reads.push_back({chunk_.file});
    std::uint64_t at = chunk_.offset + asked.begin;
    if (asked.scratch) {
      reads.back().runs.push_back({at, {asked.scratch.get(), static_cast<std::size_t>(asked.bytes)}});
    } else {
      for (const io::Scatter& part : asked.parts) {
        reads.back().runs.push_back({at, {part.to, part.bytes}});
        at += part.bytes;
      }
    }
    out.push_back(std::move(asked));
  }
  static void arrived(const Awaited& asked) {
    if (asked.scratch) io::fill_parts(asked.parts, asked.scratch.get());
    asked.chunk->note(asked.begin, asked.bytes, asked.parts, asked.scratch.get());
  }

  /// Whether it has a checksum which is not known to be right.
  bool is_unverified() const noexcept { return check_ && !check_->passed(); }
  io::CrcRun record() const { return {chunk_.file, chunk_.record_offset, chunk_.record_bytes}; }
  void compare(std::uint32_t crc, const std::string& tensor) const {
    io::RecordCheck check({.crc32 = chunk_.crc32,
                           .bytes = chunk_.record_bytes,
                           .path = chunk_.file.name(),
                           .offset = chunk_.record_offset,
                           .name = tensor},
                          true);
    check.add_known(crc, chunk_.record_bytes);
    check.finish();
    check_->pass();
  }

 private:
  /// Collects parts that follow each other in the chunk, and reads them together.
  class Filling {
   public:
    explicit Filling(const ChunkReader& reader) : reader_(reader) {}

    void add(std::uint64_t begin, std::span<std::byte> to) {
      if (parts_.empty()) begin_ = begin;
      if (!scratch_ && reader_.has_short_runs()) scratch_ = std::make_unique_for_overwrite<std::byte[]>(kAtOnce);
      while (!to.empty()) {
        const std::size_t room = static_cast<std::size_t>(kAtOnce - bytes_);
        const std::span<std::byte> part = to.first(std::min(to.size(), room));
        parts_.push_back({part.data(), part.size()});
        bytes_ += part.size();
        to = to.subspan(part.size());
        const bool full = bytes_ == kAtOnce || (!scratch_ && parts_.size() == kMaxParts);
        if (full) flush();
      }
    }

    void finish() {
      if (!parts_.empty()) flush();
    }

   private:
    void flush() {
      reader_.fetch(begin_, bytes_, parts_, scratch_.get());
      begin_ += bytes_;
      bytes_ = 0;
      parts_.clear();
    }

    const ChunkReader& reader_;
    std::unique_ptr<std::byte[]> scratch_;
    std::vector<io::Scatter> parts_;
    std::uint64_t begin_ = 0;
    std::uint64_t bytes_ = 0;
  };

  /// Calls `take(begin, to)` for each run of [offset, offset + into.size()) of the tensor in this chunk: where it
  /// begins in the chunk, and where it goes.
  template <class Take>
  void for_each_run(std::uint64_t offset, std::span<std::byte> into, const Take& take) const {
    const std::uint64_t end = offset + into.size();
    if (runs_.begin() >= end) return;
    for (std::uint64_t run = runs_.first_behind(offset); run < runs_.count(); ++run) {
      const std::uint64_t place = runs_.place(run);
      if (place >= end) break;
      const std::uint64_t from = std::max(place, offset);
      const std::uint64_t to = std::min(place + runs_.run_bytes(), end);
      take(run * runs_.run_bytes() + (from - place), into.subspan(from - offset, to - from));
    }
  }

  /// Reads bytes [begin, begin + bytes) of the chunk to `parts`, through `scratch` where there is one.
  void fetch(std::uint64_t begin, std::uint64_t bytes, std::span<const io::Scatter> parts, std::byte* scratch) const {
    if (!in_order_) return io::fill_parts(parts, ordered().data() + begin);
    if (scratch != nullptr) {
      const io::Scatter all{scratch, static_cast<std::size_t>(bytes)};
      read_file(begin, std::span(&all, 1));
      io::fill_parts(parts, scratch);
    } else {
      read_file(begin, parts);
    }
    note(begin, bytes, parts, scratch);
  }

  /// Bytes [begin, begin + bytes) of the chunk are in `scratch`, or else in `parts`.
  void note(std::uint64_t begin, std::uint64_t bytes, std::span<const io::Scatter> parts,
            const std::byte* scratch) const {
    const bool is_small = bytes < kSmallPart && !waits_;  // a server is not asked twice
    if (!check_ || !whole_record_ || check_->passed() || (is_small && bytes != chunk_.record_bytes)) return;
    std::uint32_t crc = 0;
    if (scratch != nullptr) {
      crc = io::crc32(0, {scratch, static_cast<std::size_t>(bytes)});
    } else {
      for (const io::Scatter& part : parts) crc = io::crc32(crc, {part.to, part.bytes});
    }
    check_->add(begin, begin + bytes, crc);
  }

  void read_file(std::uint64_t begin, std::span<const io::Scatter> parts) const {
    io::reader_for(*chunk_.file).read(*chunk_.file, chunk_.offset + begin, parts);
  }

  /// The elements in C order, of a chunk that has them in another one.
  const Buffer& ordered() const {
    std::call_once(ordered_once_, [this] {
      const std::uint64_t span = *core::view_span(chunk_.box.shape, chunk_.strides, dtype_.itemsize());
      const Buffer stored = Buffer::allocate(static_cast<std::size_t>(span));
      chunk_.file.read(chunk_.offset, {stored.data(), stored.size()});
      ordered_ = Tensor(stored, dtype_, chunk_.box.shape, chunk_.strides).contiguous().buffer();
    });
    return ordered_;
  }

  FoundChunk chunk_;
  DType dtype_;
  ChunkRuns runs_;
  bool in_order_ = true;
  bool waits_ = false;         ///< for a server
  bool whole_record_ = false;  ///< the chunk's bytes are those of its record
  std::unique_ptr<PartsCheck> check_;
  mutable std::once_flag ordered_once_;
  mutable Buffer ordered_;
};

class ChunkedTensor final : public io::ComposedSource {
 public:
  ChunkedTensor(std::string name, std::string tensor, const Shape& shape, const DType& dtype,
                std::vector<FoundChunk> chunks)
      : name_(std::move(name)),
        tensor_(std::move(tensor)),
        size_(static_cast<std::uint64_t>(shape.numel()) * dtype.itemsize()) {
    for (FoundChunk& chunk : chunks) {
      const ChunkReader& reader = chunks_.emplace_back(std::move(chunk), shape, dtype);
      if (std::find(files_.begin(), files_.end(), reader.file()) == files_.end()) files_.push_back(reader.file());
      waits_ = waits_ || reader.waits();
      if (reader.has_short_runs()) window_ = kShortWindow;
    }
  }

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    io::require_inside(*this, offset, into.size());
    if (!waits_) {
      for (const ChunkReader& chunk : chunks_) chunk.read(offset, into);
      return;
    }
    for (std::size_t at = 0; at < into.size(); at += window_) {
      read_awaited(offset + at, into.subspan(at, std::min(window_, into.size() - at)));
    }
  }
  std::span<const Source> parts() const noexcept override { return files_; }
  void verify(std::stop_token stop) const override {
    const core::StopScope scope(stop);
    std::vector<const ChunkReader*> unverified;
    std::vector<io::CrcRun> records;
    for (const ChunkReader& chunk : chunks_) {
      if (!chunk.is_unverified()) continue;
      unverified.push_back(&chunk);
      records.push_back(chunk.record());
    }
    if (records.empty()) return;
    try {
      const std::vector<std::uint32_t> crcs = io::read_for_crc(records);
      for (std::size_t i = 0; i < crcs.size(); ++i) unverified[i]->compare(crcs[i], tensor_);
    } catch (const Error& error) {
      throw error.within({.tensor = tensor_});
    }
  }

 private:
  /// Bytes that are read at once where they go through a scratch, and where they go straight to their places.
  static constexpr std::size_t kShortWindow = std::size_t{8} << 20;
  static constexpr std::size_t kLongWindow = std::size_t{32} << 20;

  /// All chunks' parts of a range at once.
  void read_awaited(std::uint64_t offset, std::span<std::byte> into) const {
    std::vector<ChunkReader::Awaited> asked;
    std::vector<io::SourceRuns> reads;
    for (const ChunkReader& chunk : chunks_) chunk.ask(offset, into, asked, reads);
    io::read_at_once(reads);
    for (const ChunkReader::Awaited& one : asked) ChunkReader::arrived(one);
  }

  std::string name_;
  std::string tensor_;
  std::uint64_t size_;
  std::size_t window_ = kLongWindow;
  bool waits_ = false;  ///< for servers
  std::deque<ChunkReader> chunks_;
  std::vector<Source> files_;
};

}  // namespace

Source chunked_tensor(std::string name, std::string tensor, const Shape& shape, const DType& dtype,
                      std::vector<FoundChunk> chunks) {
  return std::make_shared<ChunkedTensor>(std::move(name), std::move(tensor), shape, dtype, std::move(chunks));
}

}  // namespace penstock::format::dcp
