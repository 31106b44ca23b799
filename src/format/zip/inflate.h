#pragma once

// Raw deflate streams, as zip members hold them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "penstock/source.h"

namespace penstock::format {

/// Inflates the whole stream `stored` into `out`, which it must fill exactly and use up exactly; else kCorrupt. `path`
/// and `record` are for the error. Thread-safe.
void inflate(std::span<const std::byte> stored, std::span<std::byte> out, std::string_view path,
             std::string_view record);

/// A deflate stream that lies at [offset, offset + stored_bytes) of `source`, inflated from front to back in little
/// memory; reads no more of it than what is asked for takes, rounded up to a small piece. `source` must outlive it; one
/// thread at a time.
class InflateStream {
 public:
  /// `first`: how much is read at first, where only the beginning may be wanted; 0: as much as later.
  InflateStream(const ByteSource& source, std::uint64_t offset, std::uint64_t stored_bytes, std::string_view record,
                std::uint64_t first = 0);
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;
  ~InflateStream();

  /// The next bytes; fewer than out.size() only at the end of the stream. kCorrupt, kTruncated.
  std::size_t read(std::span<std::byte> out);
  /// As read, of a stream that is listed with `listed` bytes; kCorrupt when it ends before `out` is full.
  void fill(std::span<std::byte> out, std::uint64_t listed);
  /// kCorrupt, in the words of inflate(), when the stream goes on after `listed` bytes, or ends before its stored
  /// bytes.
  void require_end(std::uint64_t listed);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How much of a stream inflate_prefix reads at first: a header of an array comes out of it nearly always.
inline constexpr std::uint64_t kInflatedFront = 1024;

/// Inflates the first out.size() bytes of the stream that lies at [offset, offset + stored_bytes) of `source`, reading
/// no more of it than that takes (rounded up to a small piece). Returns how many bytes there are, fewer than out.size()
/// only at the end of the stream. kCorrupt, kTruncated.
std::size_t inflate_prefix(const ByteSource& source, std::uint64_t offset, std::uint64_t stored_bytes,
                           std::span<std::byte> out, std::string_view record);

/// A deflate stream (level 6) that is made from front to back in little memory; hands pieces of it to `write`.
class DeflateStream {
 public:
  explicit DeflateStream(std::function<void(std::span<const std::byte>)> write);
  DeflateStream(const DeflateStream&) = delete;
  DeflateStream& operator=(const DeflateStream&) = delete;
  ~DeflateStream();

  void add(std::span<const std::byte> bytes);
  /// Call once, last.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::format
