#pragma once

// Where the blocks of an archive come from: memory, or a source that is read a window at a time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "io/move/background_read.h"
#include "penstock/source.h"

namespace penstock::format {

/// The bytes of an archive, asked for more or less from front to back.
class TarBytes {
 public:
  virtual ~TarBytes() = default;
  /// `count` bytes at `offset`, fewer where the archive ends before; valid until the next call. `offset` is not before
  /// what was forgotten.
  virtual std::span<const std::byte> view(std::uint64_t offset, std::size_t count) = 0;
  /// Nobody asks for bytes before this place any more.
  virtual void forget(std::uint64_t) {}
  /// Where the archive ends; the largest number while nobody knows.
  virtual std::uint64_t size() const noexcept = 0;
};

/// Bytes in memory, of which the first lies at `begin` of the archive.
class TarMemory final : public TarBytes {
 public:
  explicit TarMemory(std::span<const std::byte> bytes, std::uint64_t begin = 0) noexcept
      : bytes_(bytes), begin_(begin) {}
  std::span<const std::byte> view(std::uint64_t offset, std::size_t count) override;
  std::uint64_t size() const noexcept override { return begin_ + bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t begin_;
};

/// A source. Reads a window at a time, so that small members cost no read of their own. Where a read may take a round
/// trip, as it may of all but files, the window grows while members follow one another within it, and is small behind a
/// large one. When it has grown to its end, all bytes are read, and `ahead` further windows are asked for meanwhile.
class TarWindow final : public TarBytes {
 public:
  explicit TarWindow(Source source, std::size_t ahead = 0);
  std::span<const std::byte> view(std::uint64_t offset, std::size_t count) override;
  std::uint64_t size() const noexcept override { return source_.size(); }
  /// Bytes read so far.
  std::uint64_t read() const noexcept { return read_; }

 private:
  std::size_t window_at(std::uint64_t offset) noexcept;
  bool take_ahead(std::uint64_t offset, std::size_t count);
  void ask_ahead();

  Source source_;
  bool grows_;
  std::vector<std::byte> held_;
  std::uint64_t begin_ = 0;  ///< of what is held
  std::size_t window_ = 0;
  std::uint64_t read_ = 0;
  std::size_t most_ahead_;
  std::deque<std::unique_ptr<io::BackgroundRead>> ahead_;
};

}  // namespace penstock::format
