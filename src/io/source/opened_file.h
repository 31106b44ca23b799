#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::io {

/// A source whose first and last bytes are each read once. Recognising the format and reading an index ask for many
/// small pieces there, each of which would otherwise be a system call. A file of up to kWhole bytes is read whole, with
/// its payload. Keeps up to 128 KiB, and what `keep` gets; let it go when the index has been read. Thread-safe.
class OpenedFile final : public ByteSource {
 public:
  /// A file of up to this size is read whole: each further call costs as much as reading some kilobytes more.
  static constexpr std::uint64_t kWhole = std::uint64_t{64} << 10;
  /// The front of a larger one that is read when it is opened: most headers fit.
  static constexpr std::uint64_t kHead = std::uint64_t{16} << 10;
  /// The end of a larger one, read when something in it is asked for: where a zip archive's end record may lie, which
  /// is followed by a comment of up to 64 KiB.
  static constexpr std::uint64_t kTail = (std::uint64_t{64} << 10) + 22;

  /// Bytes without an owner's count: opening a small file is to take few instructions.
  struct Bytes {
    std::unique_ptr<std::byte[]> data = {};
    std::size_t size = 0;

    static Bytes uninitialised(std::size_t size) { return {std::make_unique_for_overwrite<std::byte[]>(size), size}; }
    std::span<std::byte> span() const noexcept { return {data.get(), size}; }
  };
  /// All of a source, or its first and its last bytes, of any length.
  struct Ends {
    Buffer whole = {};
    Bytes head = {};
    Bytes tail = {};
  };

  /// Reads the head. A source that is in memory already is not copied.
  explicit OpenedFile(Source source);
  /// What was read already is not read again. Neither may be longer than the source.
  OpenedFile(Source source, Ends ends);

  const Source& source() const noexcept { return source_; }
  /// The content of a file that was read whole; else an empty buffer.
  const Buffer& whole() const noexcept { return whole_; }

  const std::string& name() const noexcept override { return source_.name(); }
  std::uint64_t size() const noexcept override { return source_.size(); }
  int descriptor() const noexcept override { return source_.descriptor(); }
  std::optional<FileVersion> version() const noexcept override { return source_.version(); }
  /// Also the content of a file that was read whole.
  Buffer memory() const override { return whole_ ? whole_ : source_.memory(); }
  void read(std::uint64_t offset, std::span<std::byte> into) const override;

  /// Whether these bytes, which lie inside the source, are kept.
  bool keeps(std::uint64_t offset, std::uint64_t bytes) const;
  /// Keeps these bytes from now on: runs of the source by their offsets, none of which touch.
  void keep(std::map<std::uint64_t, Bytes> runs) const;

 private:
  bool copy_kept(std::uint64_t offset, std::span<std::byte> into) const;

  Source source_;
  Buffer whole_;
  Bytes head_;
  mutable std::mutex tail_mutex_;  // std::call_once would make a system call
  mutable Bytes tail_;
  mutable std::map<std::uint64_t, Bytes> kept_;
};

}  // namespace penstock::io
