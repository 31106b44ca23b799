// Two libraries inflate. libdeflate is faster but needs all input and output in memory. zlib goes on from where it
// stopped, so it serves large members, and reads of only a member's first bytes. Either way a stream must give exactly
// as many bytes as the directory lists.

#include "format/zip/inflate.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "io/read/read_costs.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

constexpr int kRawDeflate = -MAX_WBITS;
constexpr int kLevel = 6;
constexpr std::uint64_t kPieceBytes = 16 * 1024;
/// Of a server, whose answers take long.
constexpr std::uint64_t kAwaitedPieceBytes = std::uint64_t{1} << 20;
constexpr std::size_t kDeflatePieceBytes = 256 * 1024;

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const noexcept { libdeflate_free_decompressor(decompressor); }
};

unsigned char* bytes_of(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }
/// zlib's interface is not const-correct: it does not write through next_in.
unsigned char* bytes_of(const std::byte* bytes) noexcept { return bytes_of(const_cast<std::byte*>(bytes)); }
uInt limited(std::size_t bytes) noexcept {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

}  // namespace

void inflate(std::span<const std::byte> stored, std::span<std::byte> out, std::string_view path,
             std::string_view record) {
  const std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor(libdeflate_alloc_decompressor());
  if (!decompressor) throw std::bad_alloc();
  // One byte of room even for an empty result: libdeflate is not asked to write to a null pointer.
  std::byte nothing{};
  std::byte* const to = out.empty() ? &nothing : out.data();
  std::size_t used = 0;
  std::size_t made = 0;
  const libdeflate_result result =
      libdeflate_deflate_decompress_ex(decompressor.get(), stored.data(), stored.size(), to, out.size(), &used, &made);
  if (result == LIBDEFLATE_SUCCESS && used == stored.size() && made == out.size()) return;
  std::string message;
  if (result == LIBDEFLATE_BAD_DATA) {
    message = "the member's compressed bytes are damaged";
  } else if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
    message = core::format("the member inflates to more than the {} bytes it is listed with", out.size());
  } else if (made != out.size()) {
    message = core::format("the member inflates to {} but is listed with {}", core::counted(made, "byte"), out.size());
  } else {
    message = core::format("{} the member's compressed stream",
                           core::counted(stored.size() - used, "byte follows", "bytes follow"));
  }
  throw Error(ErrorCode::kCorrupt, std::move(message), {std::string(path), std::nullopt, std::string(record)});
}

struct InflateStream::State {
  State(const ByteSource& from, std::uint64_t at, std::uint64_t bytes, std::string_view name, std::uint64_t first)
      : source(from), offset(at), stored_bytes(bytes), record(name), next(first == 0 ? most : first) {
    if (inflateInit2(&stream, kRawDeflate) != Z_OK) throw std::bad_alloc();
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Error error(std::string message, std::optional<std::uint64_t> at = {}) const {
    return {ErrorCode::kCorrupt, std::move(message), {source.name(), at, record}};
  }
  Error damaged() const { return error("the member's compressed bytes are damaged", offset + used()); }
  /// Of the stored bytes.
  std::uint64_t used() const { return fetched - stream.avail_in; }

  void fetch() {
    const auto count = static_cast<std::size_t>(std::min(next, stored_bytes - fetched));
    if (count == 0) return;  // zlib may have some more to give; else it finds that it lacks input
    if (piece_bytes < count) {
      piece = std::make_unique_for_overwrite<std::byte[]>(count);
      piece_bytes = count;
    }
    source.read(offset + fetched, {piece.get(), count});
    next = most;
    stream.next_in = bytes_of(piece.get());
    stream.avail_in = limited(count);
    fetched += count;
  }

  const ByteSource& source;
  std::uint64_t offset;
  std::uint64_t stored_bytes;
  std::string record;
  z_stream stream{};
  const std::uint64_t most = io::costs_of(source).waits() ? kAwaitedPieceBytes : kPieceBytes;
  std::uint64_t next;  ///< how much is read next
  std::unique_ptr<std::byte[]> piece;
  std::size_t piece_bytes = 0;
  std::uint64_t fetched = 0;
  std::uint64_t made = 0;
  bool ended = false;
};

InflateStream::InflateStream(const ByteSource& source, std::uint64_t offset, std::uint64_t stored_bytes,
                             std::string_view record, std::uint64_t first)
    : state_(std::make_unique<State>(source, offset, stored_bytes, record, first)) {}

InflateStream::~InflateStream() = default;

std::size_t InflateStream::read(std::span<std::byte> out) {
  State& s = *state_;
  std::size_t filled = 0;
  while (filled < out.size() && !s.ended) {
    if (s.stream.avail_in == 0) s.fetch();
    s.stream.next_out = bytes_of(out.data() + filled);
    s.stream.avail_out = limited(out.size() - filled);
    const uInt room = s.stream.avail_out;
    const int status = ::inflate(&s.stream, Z_NO_FLUSH);
    filled += room - s.stream.avail_out;
    s.ended = status == Z_STREAM_END;
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && !s.ended) throw s.damaged();
  }
  s.made += filled;
  return filled;
}

void InflateStream::fill(std::span<std::byte> out, std::uint64_t listed) {
  if (read(out) == out.size()) return;
  throw state_->error(
      core::format("the member inflates to {} but is listed with {}", core::counted(state_->made, "byte"), listed));
}

void InflateStream::require_end(std::uint64_t listed) {
  std::byte more{};
  if (read({&more, 1}) != 0) {
    throw state_->error(core::format("the member inflates to more than the {} bytes it is listed with", listed));
  }
  if (const std::uint64_t left = state_->stored_bytes - state_->used(); left != 0) {
    throw state_->error(
        core::format("{} the member's compressed stream", core::counted(left, "byte follows", "bytes follow")));
  }
}

std::size_t inflate_prefix(const ByteSource& source, std::uint64_t offset, std::uint64_t stored_bytes,
                           std::span<std::byte> out, std::string_view record) {
  return InflateStream(source, offset, stored_bytes, record, kInflatedFront).read(out);
}

struct DeflateStream::State {
  explicit State(std::function<void(std::span<const std::byte>)> to) : write(std::move(to)) {
    constexpr int kMemoryLevel = 8;
    if (deflateInit2(&stream, kLevel, Z_DEFLATED, kRawDeflate, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~State() { deflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Runs deflate until the input that `stream` holds is used up or, with Z_FINISH, the stream is complete.
  void pump(int flush) {
    int status = Z_OK;
    do {
      stream.next_out = bytes_of(piece.get());
      stream.avail_out = limited(kDeflatePieceBytes);
      status = ::deflate(&stream, flush);
      write(std::span<const std::byte>(piece.get(), kDeflatePieceBytes - stream.avail_out));
    } while (stream.avail_out == 0 || (flush == Z_FINISH && status != Z_STREAM_END));
  }

  std::function<void(std::span<const std::byte>)> write;
  std::unique_ptr<std::byte[]> piece = std::make_unique<std::byte[]>(kDeflatePieceBytes);
  z_stream stream{};
};

DeflateStream::DeflateStream(std::function<void(std::span<const std::byte>)> write)
    : state_(std::make_unique<State>(std::move(write))) {}

DeflateStream::~DeflateStream() = default;

void DeflateStream::add(std::span<const std::byte> bytes) {
  z_stream& stream = state_->stream;
  while (!bytes.empty()) {
    const uInt count = limited(bytes.size());
    stream.next_in = bytes_of(bytes.data());
    stream.avail_in = count;
    state_->pump(Z_NO_FLUSH);
    bytes = bytes.subspan(count);
  }
}

void DeflateStream::finish() { state_->pump(Z_FINISH); }

}  // namespace penstock::format
