#include "format/zip/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "format/zip/inflate.h"
#include "format/zip/reader.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/zip_builder.h"

namespace penstock::format {
namespace {

using test::bytes_of;
using test::StringSink;

struct Member {
  std::string name;
  std::string data;

  friend bool operator==(const Member&, const Member&) = default;
};

std::vector<Member> contents_of(const std::string& archive) {
  std::vector<ZipEntry> entries;
  read_zip_directory(bytes_of(archive), "x.zip", entries);
  std::vector<Member> out;
  for (const ZipEntry& entry : entries) {
    std::string data(entry.size, '?');
    const std::string_view stored = std::string_view(archive).substr(entry.data_offset, entry.compressed_size);
    if (entry.method == kZipDeflate) {
      inflate(bytes_of(stored), std::as_writable_bytes(std::span(data)), "x.zip", entry.name);
    } else {
      data = stored;
    }
    EXPECT_EQ(test::crc_of(data), entry.crc32) << entry.name;
    out.push_back({std::string(entry.name), std::move(data)});
  }
  return out;
}

const std::vector<Member> kMembers{
    {"a.npy", "hello"}, {"empty", ""}, {"folder/na\xC3\xAFve", std::string(100'000, 'x')}, {"last", "!"}};

std::string written(ZipStyle style, bool deflated, const std::string& front = {}) {
  StringSink sink;
  sink.text = front;
  ZipWriter zip(sink, style);
  for (const Member& member : kMembers) {
    const std::size_t half = member.data.size() / 2;
    const std::array parts{bytes_of(member.data).first(half), bytes_of(member.data).subspan(half)};
    deflated ? zip.add_deflated(member.name, parts) : zip.add(member.name, parts);
  }
  zip.finish();
  return sink.text.substr(front.size());
}

TEST(ZipWriter, WhatItWritesIsRead) {
  for (const ZipStyle style : {ZipStyle::kNumpy, ZipStyle::kTorch}) {
    EXPECT_EQ(contents_of(written(style, false)), kMembers);
    EXPECT_EQ(contents_of(written(style, true)), kMembers);
  }
  EXPECT_LT(written(ZipStyle::kNumpy, true).size(), 2000u);
}

TEST(ZipWriter, CountsFromWhereTheSinkStands) {
  EXPECT_EQ(written(ZipStyle::kTorch, false, "something in front"), written(ZipStyle::kTorch, false));
}

TEST(ZipWriter, WritesNothingForNothing) {
  for (const ZipStyle style : {ZipStyle::kNumpy, ZipStyle::kTorch}) {
    StringSink sink;
    ZipWriter(sink, style).finish();
    EXPECT_EQ(contents_of(sink.text), std::vector<Member>());
    EXPECT_EQ(sink.text.size(), style == ZipStyle::kNumpy ? 22u : 98u);
  }
}

TEST(ZipWriter, AlignsAsTorchDoes) {
  for (const std::size_t alignment : {std::size_t{1}, std::size_t{64}, std::size_t{4096}}) {
    StringSink sink;
    ZipWriter zip(sink, ZipStyle::kTorch, alignment);
    for (const Member& member : kMembers) zip.add(member.name, bytes_of(member.data));
    zip.finish();
    EXPECT_EQ(contents_of(sink.text), kMembers);
    std::vector<ZipEntry> entries;
    read_zip_directory(bytes_of(sink.text), "x.pt", entries);
    for (const ZipEntry& entry : entries) {
      EXPECT_EQ(entry.data_offset % alignment, 0u);
      EXPECT_EQ(entry.flags, entry.size == 0 ? 0x0800 : 0x0808);
    }
  }
}

/// Archives by torch itself, taken apart and written again, are the same byte for byte.
TEST(ZipWriter, WritesTorchsBytes) {
  const auto folder = test::corpus();
  if (!folder) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS, or put it at ../shared/corpus";
  for (const char* name : {"candle/test.pt", "burn/reader/empty.pt", "burn/reader/state_dict.pt", "burn/mnist.pt",
                           "gopickle/tensor_int8_proto2_zip.pt"}) {
    const std::string original = test::read_file((*folder / name).string());
    StringSink sink;
    ZipWriter zip(sink, ZipStyle::kTorch);
    for (const Member& member : contents_of(original)) zip.add(member.name, bytes_of(member.data));
    zip.finish();
    EXPECT_TRUE(sink.text == original) << name;
  }
}

TEST(ZipWriter, RefusesNamesThatWouldNotBeRead) {
  StringSink sink;
  ZipWriter zip(sink, ZipStyle::kNumpy);
  zip.add_text("a", "1");
  for (const std::string& name :
       {std::string("a"), std::string("b\0c", 3), std::string(), std::string("\xFF"), std::string(65536, 'n')}) {
    const auto error = test::error_of([&] { zip.add_text(name, "2"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error->tensor(), name);
  }
  zip.add_text("b", "3");
  zip.finish();
  EXPECT_EQ(contents_of(sink.text), (std::vector<Member>{{"a", "1"}, {"b", "3"}}));
}

TEST(ZipWriter, CountsMoreMembersThan16Bits) {
  StringSink sink;
  ZipWriter zip(sink, ZipStyle::kNumpy);
  for (int i = 0; i < 70'000; ++i) zip.add_text(std::to_string(i), "");
  zip.finish();
  EXPECT_EQ(contents_of(sink.text).size(), 70'000u);
}

/// A file of which only the small writes are kept; the rest is zeros.
class SparseFile final : public io::ByteSink, public ByteSource {
 public:
  static constexpr std::size_t kSmall = 64 * 1024;

  void write(std::span<const std::byte> bytes) override {
    if (bytes.size() <= kSmall) {
      kept_[end_] = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    end_ += bytes.size();
  }
  std::uint64_t position() const noexcept override { return end_; }
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return end_; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    std::fill(into.begin(), into.end(), std::byte{});
    auto next = kept_.upper_bound(offset);
    if (next != kept_.begin()) --next;
    for (; next != kept_.end() && next->first < offset + into.size(); ++next) {
      for (std::size_t i = 0; i < next->second.size(); ++i) {
        const std::uint64_t at = next->first + i;
        if (at >= offset && at < offset + into.size()) into[at - offset] = static_cast<std::byte>(next->second[i]);
      }
    }
  }

 private:
  std::string name_ = "<sparse>";
  std::map<std::uint64_t, std::string> kept_;
  std::uint64_t end_ = 0;
};

class ZipWriterWide : public ::testing::TestWithParam<ZipStyle> {};

TEST_P(ZipWriterWide, GoesBeyond4GiB) {
  const std::vector<std::byte> block(std::size_t{1} << 26);
  const std::vector<std::span<const std::byte>> huge(65, block);
  SparseFile file;
  ZipWriter zip(file, GetParam());
  zip.add_text("before", "1");
  zip.add("huge", huge);
  zip.add_text("after", "22");
  zip.add_text("empty", "");
  zip.finish();
  const ZipDirectory directory = read_zip_directory(static_cast<const ByteSource&>(file));
  ASSERT_EQ(directory.entries.size(), 4u);
  EXPECT_EQ(directory.entries[1].size, std::uint64_t{65} << 26);
  EXPECT_EQ(directory.entries[1].compressed_size, std::uint64_t{65} << 26);
  EXPECT_GT(directory.entries[2].header_offset, std::uint64_t{1} << 32);
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    const ZipEntry& entry = directory.entries[i];
    std::string data(entry.size, '?');
    file.read(entry.data_offset, std::as_writable_bytes(std::span(data)));
    EXPECT_EQ(data, i == 0 ? "1" : "22");
  }
  if (GetParam() == ZipStyle::kTorch) {
    for (const ZipEntry& entry : directory.entries) EXPECT_EQ(entry.data_offset % 64, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Styles, ZipWriterWide, ::testing::Values(ZipStyle::kNumpy, ZipStyle::kTorch),
                         [](const auto& test) { return test.param == ZipStyle::kNumpy ? "Numpy" : "Torch"; });

}  // namespace
}  // namespace penstock::format
