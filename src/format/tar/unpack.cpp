// Compressed archives, from front to back. zlib is always there; zstd's library is looked for when the first archive of
// its kind is read, so that Penstock does not depend on it.
#include <dlfcn.h>
#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>

#include "core/format.h"
#include "core/symbols.h"
#include "core/text.h"
#include "format/tar/feed.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::size_t kInput = std::size_t{256} << 10;

[[noreturn]] void throw_damaged(const std::string& path, std::string_view reason) {
  throw Error(ErrorCode::kCorrupt,
              core::format("the compressed bytes are damaged ({}); copy the archive again", core::escaped(reason)),
              {.path = path});
}
[[noreturn]] void throw_cut(const std::string& path) {
  throw Error(ErrorCode::kTruncated, "the compressed bytes end too soon; copy the archive again", {.path = path});
}

/// Compressed bytes on their way in.
class Input {
 public:
  explicit Input(ReadOn read) : read_(std::move(read)), bytes_(kInput) {}
  /// What is left to unpack; read anew when nothing is. Empty at the end.
  std::span<std::byte> rest() {
    if (begin_ == end_ && !at_end_) {
      begin_ = 0;
      end_ = read_(bytes_);
      at_end_ = end_ == 0;
    }
    return std::span(bytes_).subspan(begin_, end_ - begin_);
  }
  void take(std::size_t count) { begin_ += count; }

 private:
  ReadOn read_;
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool at_end_ = false;
};

class Gunzip {
 public:
  Gunzip(ReadOn read, std::string path) : input_(std::move(read)), path_(std::move(path)) {
    constexpr int kGzipOnly = 15 + 16;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;
  ~Gunzip() { inflateEnd(&stream_); }

  std::size_t read(std::span<std::byte> out) {
    while (!out.empty()) {
      const std::span<std::byte> in = input_.rest();
      if (in.empty() && is_whole_) return 0;
      if (in.empty()) throw_cut(path_);
      if (is_whole_ && in[0] == std::byte{0}) {  // padding, as tapes have it
        input_.take(1);
        continue;
      }
      if (is_whole_) inflateReset(&stream_);
      is_whole_ = false;
      const std::size_t most = std::min<std::size_t>(out.size(), std::numeric_limits<unsigned>::max());
      stream_.next_in = reinterpret_cast<unsigned char*>(in.data());
      stream_.avail_in = static_cast<unsigned>(in.size());
      stream_.next_out = reinterpret_cast<unsigned char*>(out.data());
      stream_.avail_out = static_cast<unsigned>(most);
      const int state = inflate(&stream_, Z_NO_FLUSH);
      if (state == Z_MEM_ERROR) throw std::bad_alloc();
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) {
        throw_damaged(path_, stream_.msg == nullptr ? "zlib" : stream_.msg);
      }
      input_.take(in.size() - stream_.avail_in);
      is_whole_ = state == Z_STREAM_END;
      if (const std::size_t got = most - stream_.avail_out; got != 0) return got;
    }
    return 0;
  }

 private:
  Input input_;
  std::string path_;
  z_stream stream_{};
  bool is_whole_ = false;  ///< a stream has ended, and another may follow
};

/// The part of zstd's library that reads, by its documented interface.
struct ZstdBuffer {
  void* data;
  std::size_t size;
  std::size_t position;
};
struct Zstd {
  void* (*create)();
  std::size_t (*destroy)(void*);
  std::size_t (*decompress)(void*, ZstdBuffer* out, ZstdBuffer* in);
  unsigned (*is_error)(std::size_t);
  const char* (*error_name)(std::size_t);
};

std::optional<Zstd> load_zstd() {
  void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  Zstd out{};
  core::Symbols symbols(library);
  symbols.required("ZSTD_createDStream", out.create);
  symbols.required("ZSTD_freeDStream", out.destroy);
  symbols.required("ZSTD_decompressStream", out.decompress);
  symbols.required("ZSTD_isError", out.is_error);
  symbols.required("ZSTD_getErrorName", out.error_name);
  return symbols.missing() == nullptr ? std::optional(out) : std::nullopt;
}

class Unzstd {
 public:
  Unzstd(const Zstd& library, ReadOn read, std::string path)
      : library_(library), input_(std::move(read)), path_(std::move(path)), stream_(library_.create()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  Unzstd(const Unzstd&) = delete;
  Unzstd& operator=(const Unzstd&) = delete;
  ~Unzstd() { library_.destroy(stream_); }

  std::size_t read(std::span<std::byte> out) {
    ZstdBuffer to{out.data(), out.size(), 0};
    while (to.position == 0) {
      const std::span<std::byte> in = input_.rest();
      if (in.empty() && is_whole_) return 0;
      if (in.empty()) throw_cut(path_);
      ZstdBuffer from{in.data(), in.size(), 0};
      const std::size_t state = library_.decompress(stream_, &to, &from);
      if (library_.is_error(state) != 0) throw_damaged(path_, library_.error_name(state));
      input_.take(from.position);
      is_whole_ = state == 0;  // a frame has ended, and another may follow
    }
    return to.position;
  }

 private:
  Zstd library_;
  Input input_;
  std::string path_;
  void* stream_;
  bool is_whole_ = false;
};

bool begins(std::span<const std::byte> head, std::string_view magic) noexcept {
  return core::text_of(head).starts_with(magic);
}

}  // namespace

Packing packing_of(std::span<const std::byte> head) noexcept {
  if (begins(head, "\x1F\x8B")) return Packing::kGzip;
  if (begins(head, "\x28\xB5\x2F\xFD")) return Packing::kZstd;
  // The name of a member may begin like bzip2's magic.
  const bool is_bzip2 = begins(head, "BZh") && head.size() >= 8 && core::text_of(head).substr(4, 4) == "1AY&";
  if (is_bzip2 ||
      begins(head,
             "\xFD"
             "7zXZ") ||
      begins(head, "\x04\x22\x4D\x18"))
    return Packing::kOther;
  return Packing::kNone;
}

ReadOn unpacked(ReadOn read, Packing packing, const std::string& path) {
  if (packing == Packing::kNone) return read;
  if (packing == Packing::kGzip) {
    return
        [gzip = std::make_shared<Gunzip>(std::move(read), path)](std::span<std::byte> out) { return gzip->read(out); };
  }
  if (packing == Packing::kZstd) {
    static const std::optional<Zstd> library = load_zstd();
    if (!library) {
      throw Error(ErrorCode::kUnsupported,
                  "the archive is compressed by zstd, and this system has no libzstd.so.1; install zstd's library, or "
                  "unpack the archive",
                  {.path = path});
    }
    return [zstd = std::make_shared<Unzstd>(*library, std::move(read), path)](std::span<std::byte> out) {
      return zstd->read(out);
    };
  }
  throw Error(ErrorCode::kUnsupported, "the archive is compressed by neither gzip nor zstd; unpack it", {.path = path});
}

std::vector<std::byte> unpack_member(std::span<const std::byte> content, std::size_t most, const std::string& path) {
  if (packing_of(content) != Packing::kGzip) {
    throw Error(ErrorCode::kCorrupt, "the content is not gzip, which its name says; take the bytes with raw",
                {.path = path});
  }
  Gunzip gunzip(
      [rest = content](std::span<std::byte> into) mutable {
        const std::size_t count = std::min(into.size(), rest.size());
        std::memcpy(into.data(), rest.data(), count);
        rest = rest.subspan(count);
        return count;
      },
      path);
  std::vector<std::byte> out;
  for (std::size_t got = 0;; got = 0) {
    const std::size_t before = out.size();
    // One byte more than there may be tells that there are more.
    out.resize(std::min(std::max(before * 2, kInput), most + 1));
    got = out.size() == before ? 0 : gunzip.read(std::span(out).subspan(before));
    out.resize(before + got);
    if (out.size() > most) {
      throw Error(
          ErrorCode::kLimit,
          core::format("the content unpacks to more than {}; take the bytes with raw", core::format_bytes(most)),
          {.path = path});
    }
    if (got == 0) return out;
  }
}

std::string pack_member(std::string_view content) {
  constexpr int kUsualLevel = 6;
  const auto free = [](libdeflate_compressor* compressor) { libdeflate_free_compressor(compressor); };
  const std::unique_ptr<libdeflate_compressor, decltype(free)> packer(libdeflate_alloc_compressor(kUsualLevel), free);
  if (!packer) throw std::bad_alloc();
  std::string out(libdeflate_gzip_compress_bound(packer.get(), content.size()), '\0');
  out.resize(libdeflate_gzip_compress(packer.get(), content.data(), content.size(), out.data(), out.size()));
  return out;
}

}  // namespace penstock::format
