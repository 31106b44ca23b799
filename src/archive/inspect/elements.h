#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <vector>

#include "archive/archive_state.h"
#include "archive/read_way.h"
#include "io/copy/record_check.h"
#include "io/read/direct_file.h"
#include "penstock/load.h"

namespace penstock::format {
class InflateStream;
}

namespace penstock::archive {

/// In which order the elements of a tensor are read.
enum class ElementOrder : std::uint8_t {
  kC,       ///< C order
  kStored,  ///< the order of the file where its elements lie without holes (Fortran order stays), else C order
};

/// The files of an archive, opened for reading past the page cache where they are not in it. Thread-safe.
class ElementFiles {
 public:
  explicit ElementFiles(const Archive& archive);

  const Archive& archive() const noexcept { return archive_; }
  const detail::ArchiveState& state() const noexcept { return detail::ArchiveState::of(archive_); }
  /// Null where the file is read through the page cache.
  io::DirectFile* direct(std::uint32_t source) const noexcept { return direct_[source].get(); }
  /// Call when all was read: kChanged, kTruncated.
  void require_unchanged() const;

 private:
  Archive archive_;
  std::vector<std::unique_ptr<io::DirectFile>> direct_;
};

/// One tensor of an archive, to be read piece by piece in little memory: whichever layout, byte order and compression
/// it has, a piece holds values. Recorded checksums are verified as a load verifies them. An array of Python objects is
/// the bytes of its pickle. Made by one thread, then read by any.
class Elements {
 public:
  /// `files` must outlive it. kLimit where a few bytes stand for more than 2^30 elements.
  Elements(const ElementFiles& files, std::size_t entry, ElementOrder order);
  /// Of an entry that was made for this archive, such as one over a whole storage.
  Elements(const ElementFiles& files, TensorEntry entry, ElementOrder order);

  const DType& dtype() const noexcept { return view_.dtype; }
  /// None where elements take no bytes: there is nothing to go through, and may be 2^62 of them.
  std::int64_t count() const noexcept { return count_; }
  /// Whether pieces come only from front to back, to one thread: a deflated tensor.
  bool is_stream() const noexcept { return !is_scattered_ && way_ == Way::kInflate; }
  /// Whether a piece costs much besides its bytes, so that pieces should be large.
  bool is_scattered() const noexcept { return is_scattered_; }
  bool is_direct() const noexcept { return !is_scattered_ && way_ == Way::kRun && direct_ != nullptr; }
  /// What reads of its source cost.
  const io::ReadCosts& costs() const noexcept { return costs_; }

  /// Call before the first piece; verifies what pieces cannot. kChecksum, kIo, kTruncated.
  void prepare() const;
  /// Call after the last piece. kChecksum; kCancelled by `stop`. Of a tensor in chunks, those that pieces did not bring
  /// whole are read once more.
  void finish(std::stop_token stop = {}) const;

  /// What a thread reads into, used again and again: new memory costs as much as a read.
  struct Scratch {
    Buffer memory;
    io::DirectScratch direct;
  };

  /// Reads pieces. For one thread; both arguments must outlive it.
  class Cursor {
   public:
    Cursor(const Elements& elements, Scratch& scratch);
    ~Cursor();
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    /// Elements [first, first + count), valid until the next call. `first` is where the last piece ended if the
    /// elements are a stream. Errors name path and tensor.
    std::span<const std::byte> read(std::int64_t first, std::int64_t count);

   private:
    std::span<std::byte> room(std::size_t bytes);
    void read_run(std::int64_t first, std::span<std::byte> into);
    void read_stream(std::int64_t first, std::span<std::byte> into);
    std::span<const std::byte> read_view(std::int64_t first, std::int64_t count);
    void gather(const TensorEntry& view, std::int64_t first, std::int64_t count, std::byte*& to) const;

    const Elements& elements_;
    Scratch& scratch_;
    std::unique_ptr<format::InflateStream> stream_;
    io::RecordCheck stream_check_;
    std::int64_t next_ = 0;
    Tensor whole_;  ///< of a deflated tensor whose elements lie in another order
  };

 private:
  void check_part(std::int64_t first, std::span<const std::byte> bytes) const;

  const ElementFiles& files_;
  TensorEntry view_;
  std::int64_t count_ = 0;
  Way way_ = Way::kNothing;
  io::ReadCosts costs_;
  bool is_scattered_ = false;  ///< elements are changed or lie in another order: pieces are loaded as slices are
  io::DirectFile* direct_ = nullptr;
  mutable std::mutex mutex_;
  mutable io::RecordCheck check_;
};

}  // namespace penstock::archive
