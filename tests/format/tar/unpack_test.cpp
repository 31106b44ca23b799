// Compressed archives, and what is told of damaged ones.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "format/tar/feed.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::format {
namespace {

using test::bytes_of;

std::string gzipped(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<unsigned>(text.size());
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// A frame of zstd, by the system's library; empty without one.
std::string zstd_of(const std::string& text) {
  void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  using Compress = std::size_t (*)(void*, std::size_t, const void*, std::size_t, int);
  const auto compress = reinterpret_cast<Compress>(dlsym(library, "ZSTD_compress"));
  std::string out(text.size() + 1024, '\0');
  out.resize(compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

/// All bytes, read in steps of `step`, from a reader that gives `piece` at once.
std::string unpack(const std::string& packed, std::size_t piece = 100'000, std::size_t step = 1000) {
  std::size_t at = 0;
  const ReadOn raw = [&](std::span<std::byte> into) {
    const std::size_t count = std::min({into.size(), packed.size() - at, piece});
    if (count > 0) std::memcpy(into.data(), packed.data() + at, count);
    at += count;
    return count;
  };
  const ReadOn read = unpacked(raw, packing_of(bytes_of(std::string_view(packed).substr(0, 8))), "a.tar");
  std::string out;
  std::string part(step, '\0');
  while (const std::size_t got = read(std::as_writable_bytes(std::span(part)))) out.append(part, 0, got);
  EXPECT_EQ(read(std::as_writable_bytes(std::span(part))), 0U);  // the end stays
  return out;
}

std::string content() {
  const auto bytes = test::numbered_bytes(300'000, 4);
  return std::string(100'000, 'z') + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

TEST(Unpacked, GivesPlainBytesAsTheyAre) {
  EXPECT_EQ(unpack("a.npy and more"), "a.npy and more");
  EXPECT_EQ(unpack(""), "");
}

TEST(Unpacked, ReadsGzipInPiecesOfAnySize) {
  const std::string packed = gzipped(content());
  for (const std::size_t piece : {1U, 7U, 4096U, 1'000'000U}) EXPECT_EQ(unpack(packed, piece), content()) << piece;
  EXPECT_EQ(unpack(packed, 4096, 1), content());
  EXPECT_EQ(unpack(gzipped("")), "");
}

TEST(Unpacked, ReadsGzipsBehindOneAnother) {
  EXPECT_EQ(unpack(gzipped("one") + gzipped("") + gzipped("two")), "onetwo");
  EXPECT_EQ(unpack(gzipped("one") + std::string(1000, '\0')), "one");
  EXPECT_EQ(unpack(gzipped("one") + std::string(10, '\0') + gzipped("two"), 1), "onetwo");
}

TEST(Unpacked, NamesDamage) {
  const std::string packed = gzipped(content());
  for (std::size_t length = 8; length < packed.size(); length += packed.size() / 20) {
    EXPECT_EQ(test::code_of([&] { unpack(packed.substr(0, length)); }), ErrorCode::kTruncated) << length;
  }
  EXPECT_EQ(test::code_of([&] { unpack(packed.substr(0, packed.size() - 1)); }), ErrorCode::kTruncated);
  std::string flipped = packed;
  flipped[packed.size() - 6] = static_cast<char>(flipped[packed.size() - 6] ^ 1);  // of the CRC
  const auto error = test::error_of([&] { unpack(flipped); });
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error->path(), "a.tar");
  EXPECT_EQ(test::code_of([&] { unpack(packed + "garbage"); }), ErrorCode::kCorrupt);
}

TEST(Unpacked, ReadsZstdWhereItsLibraryIs) {
  const std::string packed = zstd_of(content());
  if (packed.empty()) GTEST_SKIP() << "no libzstd.so.1";
  for (const std::size_t piece : {1U, 4096U, 1'000'000U}) EXPECT_EQ(unpack(packed, piece), content()) << piece;
  EXPECT_EQ(unpack(zstd_of("one") + zstd_of("two")), "onetwo");
  EXPECT_EQ(test::code_of([&] { unpack(packed.substr(0, packed.size() - 3)); }), ErrorCode::kTruncated);
  EXPECT_EQ(test::code_of([&] { unpack(packed + "garbage"); }), ErrorCode::kCorrupt);
}

TEST(Packing, IsToldByMagic) {
  const auto of = [](std::string_view head) { return packing_of(bytes_of(head)); };
  EXPECT_EQ(of("\x1f\x8b\x08"), Packing::kGzip);
  EXPECT_EQ(of("\x28\xb5\x2f\xfd"), Packing::kZstd);
  EXPECT_EQ(of("BZh91AY&SY"), Packing::kOther);
  EXPECT_EQ(of("BZh_0001.npy"), Packing::kNone);  // a member's name
  EXPECT_EQ(of("BZh"), Packing::kNone);
  EXPECT_EQ(of(std::string_view("\xfd"
                                "7zXZ\0",
                                6)),
            Packing::kOther);
  EXPECT_EQ(of("\x04\x22\x4d\x18"), Packing::kOther);
  EXPECT_EQ(of("a.npy"), Packing::kNone);
  EXPECT_EQ(of(""), Packing::kNone);
  EXPECT_EQ(test::code_of([] { unpack("BZh91AY&SYxxx"); }), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace penstock::format
