#include "format/zip/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/zip_builder.h"

namespace penstock::format {
namespace {

using test::build_zip;
using test::bytes_of;
using test::CountingSource;
using test::descriptor_of;
using test::zip64_field;
using test::ZipEnd;
using test::ZipMember;

constexpr std::uint32_t kWide = 0xFFFFFFFF;

/// The members of an archive in memory, which must also be what a source that is read gives.
std::vector<ZipEntry> members_of(const std::string& archive) {
  std::vector<ZipEntry> entries;
  read_zip_directory(bytes_of(archive), "x.zip", entries);
  const CountingSource source(archive);
  const ZipDirectory directory = read_zip_directory(source);
  EXPECT_EQ(directory.entries.size(), entries.size());
  for (std::size_t i = 0; i < std::min(entries.size(), directory.entries.size()); ++i) {
    EXPECT_EQ(directory.entries[i].name, entries[i].name);
    EXPECT_EQ(directory.entries[i].data_offset, entries[i].data_offset);
    EXPECT_EQ(directory.entries[i].compressed_size, entries[i].compressed_size);
    EXPECT_EQ(directory.entries[i].size, entries[i].size);
    EXPECT_EQ(directory.entries[i].crc32, entries[i].crc32);
  }
  return entries;
}

std::string_view data_of(const std::string& archive, const ZipEntry& entry) {
  return std::string_view(archive).substr(entry.data_offset, entry.compressed_size);
}

std::string with_descriptor64() { return descriptor_of<std::uint64_t>("hello"); }
std::string with_descriptor32() { return descriptor_of<std::uint32_t>("hello"); }

TEST(ZipReader, ListsMembersInDirectoryOrder) {
  const std::string archive = build_zip({{.name = "data.pkl", .data = "first"}, {.name = "x/\xC3\xA9", .data = ""}});
  const auto entries = members_of(archive);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "data.pkl");
  EXPECT_EQ(data_of(archive, entries[0]), "first");
  EXPECT_EQ(entries[0].crc32, test::crc_of("first"));
  EXPECT_EQ(entries[0].method, kZipStored);
  EXPECT_EQ(entries[1].name, "x/\xC3\xA9");
  EXPECT_EQ(entries[1].size, 0u);
  EXPECT_EQ(entries[1].header_offset, 30 + 8 + 5u);
}

template <class Case>
std::string case_name(const ::testing::TestParamInfo<Case>& test) {
  std::string name = test.param.what;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

struct Accepted {
  const char* what;
  std::vector<ZipMember> members;
  ZipEnd end = {};
};

class ZipAccepts : public ::testing::TestWithParam<Accepted> {};

TEST_P(ZipAccepts, Archive) {
  const std::string archive = build_zip(GetParam().members, GetParam().end);
  const auto entries = members_of(archive);
  ASSERT_EQ(entries.size(), GetParam().members.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ZipMember& member = GetParam().members[i];
    EXPECT_EQ(data_of(archive, entries[i]), member.stored.value_or(member.data));
    EXPECT_EQ(entries[i].size, member.data.size());
  }
}

std::vector<Accepted> accepted() {
  ZipMember torch{.flags = 0x0808,
                  .descriptor = with_descriptor32(),
                  .local_crc = 0,
                  .local_compressed = 0,
                  .local_size = 0,
                  .local_extra = std::string("FB\x03\0ZZZ", 7)};
  ZipMember unseekable{.flags = 8,
                       .descriptor = with_descriptor64(),
                       .local_crc = 0,
                       .local_compressed = kWide,
                       .local_size = kWide,
                       .local_extra = zip64_field({0, 0})};
  return {
      {"empty", {}},
      {"empty with zip64 records", {}, {.zip64 = true}},
      {"one", {{}}},
      {"torch", {torch}, {.zip64 = true}},
      {"numpy to a pipe", {unseekable}},
      {"numpy", {{.local_compressed = kWide, .local_size = kWide, .local_extra = zip64_field({5, 5})}}},
      {"old numpy, redundant zip64", {{.local_extra = zip64_field({5, 5})}}},
      {"descriptor besides real local values", {{.flags = 8, .descriptor = with_descriptor32()}}},
      {"zip64 in the directory",
       {{.compressed = kWide, .size = kWide, .offset = kWide, .extra = zip64_field({5, 5, 0})}}},
      {"zip64 size alone", {{.size = kWide, .extra = zip64_field({5})}}},
      {"zip64 offset behind another field",
       {{.offset = kWide, .extra = std::string("UT\x01\0\x07", 5) + zip64_field({0})}}},
      {"zip64 end with sentinels",
       {{}},
       {.count = 0xFFFF, .directory_bytes = kWide, .directory_offset = kWide, .zip64 = true}},
      {"zip64 end by a writer that counts no disks", {{}}, {.zip64 = true, .disks = 0}},
      {"archive comment", {{}}, {.comment = "made by hand"}},
      {"member comment", {{.comment = "first"}, {.name = "b"}}},
      {"comment of the greatest length", {{}}, {.comment = std::string(0xFFFF, 'c')}},
      {"padding of extra fields", {{.local_extra = std::string(3, '\0'), .extra = std::string(2, '\0')}}},
      {"deflated", {{.data = std::string(1000, 'x'), .method = 8, .stored = "tiny"}}},
      {"folder", {{.name = "a/", .data = ""}, {.name = "a/b"}}},
      {"dots in names", {{.name = "..a/b../...c"}, {.name = "./d"}}},
      {"names that would leave a folder",
       {{.name = "/etc/passwd"}, {.name = "../a"}, {.name = "a/../../b"}, {.name = "a/.."}, {.name = "a\\b"}}},
      {"descriptor without signature",
       {{.flags = 8, .descriptor = with_descriptor32().substr(4)},
        {.name = "b", .flags = 8, .descriptor = with_descriptor64().substr(4)},
        {.name = "c", .data = "", .flags = 8, .descriptor = descriptor_of<std::uint32_t>("").substr(4)}}},
      {"a line's end behind", {{}}, {.after = "\r\n"}},
      {"padding behind", {{}}, {.after = std::string(60000, '\0')}},
      {"padding behind a comment and zip64 records", {{}}, {.comment = "made", .after = "\n", .zip64 = true}},
      {"the same second name", {{.extra = std::string("up\x06\0\x01", 5) + "abcd" + "a"}}},
  };
}

INSTANTIATE_TEST_SUITE_P(All, ZipAccepts, ::testing::ValuesIn(accepted()), case_name<Accepted>);

struct Refused {
  const char* what;
  ErrorCode code;
  const char* message;
  std::vector<ZipMember> members = {{}};
  ZipEnd end = {};
};

class ZipRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(ZipRefuses, Archive) {
  const Refused& refused = GetParam();
  const std::string archive = build_zip(refused.members, refused.end);
  std::vector<ZipEntry> entries;
  const auto error = test::error_of([&] { read_zip_directory(bytes_of(archive), "x.zip", entries); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), refused.code) << error->what();
  EXPECT_THAT(error->message(), ::testing::HasSubstr(refused.message));
  EXPECT_EQ(error->path(), "x.zip");
  EXPECT_TRUE(error->offset());
  const CountingSource source(archive);
  const auto again = test::error_of([&] { read_zip_directory(source); });
  ASSERT_TRUE(again);
  EXPECT_EQ(again->message(), error->message());
}

std::vector<Refused> refused() {
  using enum ErrorCode;
  const ZipMember b{.name = "b", .data = "world"};
  const std::string inner = build_zip({{}});
  return {
      {"end record missing", kTruncated, "no end-of-directory record", {}, {.after = std::string(70000, 'x')}},
      {"comment cut short", kTruncated, "cut short", {{}}, {.comment_bytes = 9, .comment = "too few"}},
      {"second archive behind", kCorrupt, "bytes were added to or lost", {{}}, {.after = inner}},
      {"second end record in the comment", kCorrupt, "bytes were added to or lost", {{}}, {.comment = inner}},
      {"end record in the comment that claims nothing",
       kCorrupt,
       "bytes were added to or lost",
       {{}},
       {.comment = std::string("PK\5\6", 4) + std::string(18, '\0') + "rest"}},
      {"bytes in front", kCorrupt, "belong to nothing", {{.before = "#!/bin/sh\n"}}},
      {"bytes between members", kCorrupt, "belong to nothing", {{}, {.name = "b", .before = "hidden"}}},
      {"bytes before the directory", kCorrupt, "belong to nothing", {{}}, {.before_directory = "hidden"}},
      {"bytes after the directory", kCorrupt, "must end at byte", {{}}, {.after_directory = "hidden"}},
      {"several disks", kUnsupported, "several disks", {{}}, {.disk = 1}},
      {"members on other disks", kUnsupported, "several disks", {{}}, {.disk_count = 0}},
      {"several disks by the locator", kUnsupported, "several disks", {{}}, {.zip64 = true, .disks = 2}},
      {"several disks by the zip64 record", kUnsupported, "several disks", {{}}, {.zip64 = true, .disk64 = 1}},
      {"member on another disk", kUnsupported, "another disk", {{.disk = 1}}},
      {"too many members", kCorrupt, "2 members", {{}}, {.count = 2}},
      {"too few members", kCorrupt, "bytes follow the members", {{}, b}, {.count = 1}},
      {"2^32 members",
       kCorrupt,
       "4294967296 members",
       {{}},
       {.count = 0xFFFF, .zip64 = true, .count64 = std::uint64_t{1} << 32}},
      {"directory beyond the file", kCorrupt, "must end at byte", {{}}, {.directory_offset = 0x7FFFFFFF}},
      {"directory of another size", kCorrupt, "must end at byte", {{}}, {.directory_bytes = 40}},
      {"sentinels without zip64 records",
       kCorrupt,
       "must end at byte",
       {{}},
       {.count = 0xFFFF, .directory_bytes = kWide, .directory_offset = kWide}},
      {"end records that disagree on the count", kCorrupt, "disagree", {{}}, {.zip64 = true, .count64 = 2}},
      {"end records that disagree on the size", kCorrupt, "disagree", {{}}, {.zip64 = true, .directory_bytes64 = 1}},
      {"end records that disagree on the offset", kCorrupt, "disagree", {{}}, {.zip64 = true, .directory_offset64 = 1}},
      {"zip64 sum that wraps",
       kCorrupt,
       "must end at byte",
       {{}},
       {.directory_bytes = kWide,
        .directory_offset = kWide,
        .zip64 = true,
        .directory_bytes64 = ~std::uint64_t{0},
        .directory_offset64 = 83}},
      {"zip64 record elsewhere", kCorrupt, "no zip64 end record", {{}}, {.zip64 = true, .record_offset = 1}},
      {"zip64 record beyond the file",
       kCorrupt,
       "where no end record fits",
       {{}},
       {.zip64 = true, .record_offset = ~std::uint64_t{0} - 20}},
      {"zip64 record of another length", kCorrupt, "right length", {{}}, {.zip64 = true, .record_bytes = 45}},
      {"no entry where the directory begins", kCorrupt, "0 of 1", {{.signature = 0x02014b51}}},
      {"no header where the member begins", kCorrupt, "does not have the name", {{.local_signature = 0x04034b51}}},
      {"other local name", kCorrupt, "does not have the name", {{.local_name = "b"}}},
      {"longer local name", kCorrupt, "does not have the name", {{.local_name = "ab"}}},
      {"other local flags", kCorrupt, "flags or method", {{.local_flags = 0x800}}},
      {"other local method", kCorrupt, "flags or method", {{.local_method = 8}}},
      {"other local CRC", kCorrupt, "sizes or CRC", {{.local_crc = 7}}},
      {"other local size", kCorrupt, "sizes or CRC", {{.local_size = 4}}},
      {"other local stored size", kCorrupt, "sizes or CRC", {{.local_compressed = 6}}},
      {"other local zip64 size",
       kCorrupt,
       "sizes or CRC",
       {{.local_compressed = kWide, .local_size = kWide, .local_extra = zip64_field({5, 6})}}},
      {"no local zip64 size", kCorrupt, "sizes or CRC", {{.local_compressed = kWide, .local_size = kWide}}},
      {"local extra field too short",
       kCorrupt,
       "sizes or CRC",
       {{.local_size = kWide, .local_extra = std::string("\1\0\x20\0", 4)}}},
      {"no zip64 size in the directory", kCorrupt, "zip64 sizes are missing", {{.size = kWide}}},
      {"zip64 size in the directory too short",
       kCorrupt,
       "zip64 sizes are missing",
       {{.compressed = kWide, .size = kWide, .extra = zip64_field({5})}}},
      {"zip64 size that lies",
       kCorrupt,
       "do not fit",
       {{.compressed = kWide, .size = kWide, .extra = zip64_field({~std::uint64_t{0}, ~std::uint64_t{0}})}}},
      {"two zip64 fields", kCorrupt, "two zip64", {{.extra = zip64_field({5}) + zip64_field({5})}}},
      {"extra field beyond its end", kCorrupt, "extra field", {{.extra = std::string("UT\x09\0", 4)}}},
      {"another second name", kUnsupported, "second name", {{.extra = std::string("up\x06\0\x01", 5) + "abcd" + "b"}}},
      {"stored member of two sizes", kCorrupt, "stored member", {{.local_size = 0, .size = 4}}},
      {"member longer than the file",
       kCorrupt,
       "do not fit",
       {{.local_compressed = 0, .local_size = 0, .compressed = 500, .size = 500}}},
      {"member that ends early",
       kCorrupt,
       "belongs to nothing",
       {{.local_compressed = 0, .local_size = 0, .compressed = 4, .size = 4}, b}},
      {"member that reaches into the next",
       kCorrupt,
       "overlaps",
       {{.local_compressed = 0, .local_size = 0, .compressed = 9, .size = 9}, b}},
      {"member that is the one before it", kCorrupt, "overlaps", {{}, {.name = "b", .offset = 0}}},
      {"header in the directory", kCorrupt, "belong to nothing", {{.offset = 36}}},
      {"header beyond the file", kCorrupt, "belong to nothing", {{.offset = 0x7FFFFFFF}}},
      {"inflation beyond what deflate can do",
       kCorrupt,
       "cannot inflate",
       {{.method = 8, .local_size = 0, .size = 6 * 1032}}},
      {"descriptor missing", kCorrupt, "data descriptor", {{.flags = 8}}},
      {"descriptor of another length",
       kCorrupt,
       "12, 16, 20 or 24 bytes",
       {{.flags = 8, .descriptor = with_descriptor32() + "ab"}}},
      {"descriptor without signature of another CRC",
       kCorrupt,
       "descriptor differs",
       {{.flags = 8, .descriptor = descriptor_of<std::uint32_t>("hellO").substr(4)}}},
      {"descriptor without signature of another size",
       kCorrupt,
       "descriptor differs",
       {{.flags = 8, .descriptor = descriptor_of<std::uint64_t>("hello", 5, 6).substr(4)}}},
      {"descriptor with another signature",
       kCorrupt,
       "descriptor differs",
       {{.flags = 8, .descriptor = "PK\7\7" + with_descriptor32().substr(4)}}},
      {"descriptor of another size",
       kCorrupt,
       "descriptor differs",
       {{.flags = 8, .descriptor = descriptor_of<std::uint32_t>("hello", 5, 6)}}},
      {"descriptor of another stored size",
       kCorrupt,
       "descriptor differs",
       {{.flags = 8, .descriptor = descriptor_of<std::uint64_t>("hello", 6, 5)}}},
      {"descriptor of another CRC",
       kCorrupt,
       "descriptor differs",
       {{.flags = 8, .descriptor = descriptor_of<std::uint32_t>("hellO")}}},
      {"descriptor without its flag", kCorrupt, "belong to nothing", {{.descriptor = with_descriptor32()}}},
      {"encrypted", kUnsupported, "encrypted", {{.flags = 1}}},
      {"strongly encrypted", kUnsupported, "encrypted", {{.flags = 0x40}}},
      {"masked headers", kUnsupported, "encrypted", {{.flags = 0x2000}}},
      {"patch", kUnsupported, "patch", {{.flags = 0x20}}},
      {"bzip2", kUnsupported, "by bzip2", {{.method = 12}}},
      {"no known method", kUnsupported, "by method 77", {{.method = 77}}},
      {"no name", kCorrupt, "no name", {{.name = ""}}},
      {"name with NUL", kUnsafe, "zero byte", {{.name = std::string("a\0b", 3)}}},
      {"name that is not the UTF-8 it is said to be",
       kUnsupported,
       "not UTF-8",
       {{.name = "caf\x82", .flags = 1 << 11}}},
      {"overlong name", kUnsupported, "not UTF-8", {{.name = "\xC0\xAE\xC0\xAE", .flags = 1 << 11}}},
      {"two of one name", kCorrupt, "two members", {{}, {.data = "other"}}},
  };
}

INSTANTIATE_TEST_SUITE_P(All, ZipRefuses, ::testing::ValuesIn(refused()), case_name<Refused>);

TEST(ZipReader, CountsWhatIsBehindTheEnd) {
  EXPECT_EQ(read_zip_directory(CountingSource(build_zip({{}}))).trailing_bytes, 0u);
  EXPECT_EQ(read_zip_directory(CountingSource(build_zip({{}}, {.comment = "made", .after = "\r\n"}))).trailing_bytes,
            2u);
  const Source large = test::source_of(build_zip({{}}, {.after = "x", .zip64 = true}));
  EXPECT_EQ(read_zip_directory(*large).trailing_bytes, 1u);
}

TEST(ZipReader, FindsTwinsAmongManyNames) {
  std::vector<ZipMember> members;
  for (int i = 0; i < 100; ++i) members.push_back({.name = std::to_string(i)});
  EXPECT_EQ(members_of(build_zip(members)).size(), 100u);
  members[97].name = "3";
  EXPECT_EQ(test::code_of([&] { members_of(build_zip(members)); }), ErrorCode::kCorrupt);
}

/// CVE-2024-0450: many entries that share one member's bytes.
TEST(ZipReader, RefusesOverlapBombs) {
  std::vector<ZipMember> members(1, {.name = "0"});
  for (int i = 1; i < 40; ++i) members.push_back({.name = std::to_string(i), .local_name = "0", .offset = 0});
  const auto error = test::error_of([&] { members_of(build_zip(members)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
}

TEST(ZipReader, TakesMembersInAnyOrderOfTheDirectory) {
  const std::string archive = build_zip({{.name = "a", .data = "one"}, {.name = "b", .data = "two"}});
  const std::size_t directory = archive.find("PK\1\2");
  const std::size_t second = archive.find("PK\1\2", directory + 1);
  const std::size_t end = archive.find("PK\5\6");
  const std::string swapped = archive.substr(0, directory) + archive.substr(second, end - second) +
                              archive.substr(directory, second - directory) + archive.substr(end);
  const auto entries = members_of(swapped);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "b");
  EXPECT_EQ(data_of(swapped, entries[0]), "two");
  EXPECT_EQ(data_of(swapped, entries[1]), "one");
}

TEST(ZipReader, HasBudgets) {
  const std::string archive = build_zip({{.name = "a"}, {.name = "b"}});
  const std::string deflated = build_zip({{.data = std::string(1000, 'x'), .method = 8, .stored = "tiny"}});
  std::vector<ZipEntry> entries;
  const auto code = [&](const std::string& bytes, const ZipLimits& limits) {
    return test::code_of([&] { read_zip_directory(bytes_of(bytes), "x", entries, limits); });
  };
  EXPECT_EQ(code(archive, {.max_entries = 1}), ErrorCode::kLimit);
  EXPECT_EQ(code(archive, {.max_directory_bytes = 93}), ErrorCode::kLimit);
  EXPECT_EQ(code(deflated, {.max_inflated_bytes = 999}), ErrorCode::kLimit);
  EXPECT_NO_THROW(read_zip_directory(bytes_of(deflated), "x", entries, {.max_inflated_bytes = 1000}));
  EXPECT_NO_THROW(read_zip_directory(bytes_of(archive), "x", entries, {.max_inflated_bytes = 1}));
}

std::string fixture() {
  return build_zip({{.name = "t/data.pkl",
                     .flags = 0x0808,
                     .descriptor = with_descriptor32(),
                     .local_crc = 0,
                     .local_compressed = 0,
                     .local_size = 0,
                     .local_extra = std::string("FB\x03\0ZZZ", 7)},
                    {.name = "b", .data = std::string(300, 'x'), .method = 8, .stored = "tiny", .comment = "c"},
                    {.name = "c", .size = kWide, .extra = zip64_field({5})}},
                   {.comment = "comment", .zip64 = true});
}

TEST(ZipReader, RefusesEveryTruncation) {
  const std::string archive = fixture();
  ASSERT_EQ(members_of(archive).size(), 3u);
  for (std::size_t length = 0; length < archive.size(); ++length) {
    const auto code = test::code_of([&] { members_of(archive.substr(0, length)); });
    EXPECT_EQ(code, ErrorCode::kTruncated) << "of " << length << " bytes";
  }
}

TEST(ZipReader, SurvivesEveryChangedByte) {
  const std::string archive = fixture();
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < archive.size(); ++at) {
    for (const char change : {'\x01', '\x80', '\xFF'}) {
      std::string changed = archive;
      changed[at] = static_cast<char>(changed[at] ^ change);
      try {
        for (const ZipEntry& entry : members_of(changed)) {
          EXPECT_LE(entry.data_offset + entry.compressed_size, changed.size());
        }
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.path().empty(), false);
      }
    }
  }
  // Payload, dates, comments and attributes may differ; names, sizes, offsets and methods may not.
  EXPECT_LT(accepted, 3 * archive.size() / 2);
}

TEST(ZipReader, ReusesTheCallersEntries) {
  const std::string archive = build_zip({{.name = "a"}, {.name = "b"}});
  std::vector<ZipEntry> entries;
  entries.reserve(10);
  const ZipEntry* const memory = entries.data();
  read_zip_directory(bytes_of(archive), "x", entries);
  read_zip_directory(bytes_of(archive), "x", entries);
  EXPECT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries.data(), memory);
}

TEST(ZipReader, ReadsNoPayload) {
  std::vector<ZipMember> members;
  for (int i = 0; i < 200; ++i) members.push_back({.name = std::to_string(i), .data = std::string(40'000, 'x')});
  const CountingSource source(build_zip(members));
  EXPECT_EQ(read_zip_directory(source).entries.size(), 200u);
  EXPECT_LE(source.reads, 202u);
  EXPECT_LT(source.bytes_read, 200'000u);
}

TEST(ZipReader, ReadsNeighbouringHeadersTogether) {
  std::vector<ZipMember> members;
  const std::string data(100, 'x');
  const std::string descriptor = descriptor_of<std::uint32_t>(data);
  for (int i = 0; i < 20'000; ++i) {
    members.push_back({.name = std::to_string(i), .data = data, .flags = 8, .descriptor = descriptor});
  }
  const CountingSource source(build_zip(members));
  EXPECT_EQ(read_zip_directory(source).entries.size(), 20'000u);
  EXPECT_LE(source.reads, 2 + source.size() / (200 * 1024));
}

TEST(ZipReader, NamesStayValidWhenTheDirectoryMoves) {
  const CountingSource source(build_zip({{.name = "a/rather/long/name/that/no/string/keeps/inline"}}));
  ZipDirectory first = read_zip_directory(source);
  const ZipDirectory second = std::move(first);
  EXPECT_EQ(second.entries[0].name, "a/rather/long/name/that/no/string/keeps/inline");
}

TEST(ZipReader, ListsMemorySourcesInPlace) {
  const Source source = test::source_of(build_zip({{.name = "a"}}));
  const ZipDirectory directory = read_zip_directory(*source);
  ASSERT_EQ(directory.entries.size(), 1u);
  EXPECT_EQ(directory.entries[0].name, "a");
  EXPECT_TRUE(directory.bytes.empty());
}

TEST(ZipCorpus, EveryArchiveIsRead) {
  const auto folder = test::corpus();
  if (!folder) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS, or put it at ../shared/corpus";
  std::size_t archives = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(*folder)) {
    if (!file.is_regular_file()) continue;
    const std::string bytes = test::read_file(file.path().string());
    if (!bytes.starts_with("PK\3\4")) continue;
    EXPECT_NO_THROW(EXPECT_FALSE(members_of(bytes).empty())) << file.path();
    ++archives;
  }
  EXPECT_GT(archives, 90u);
}

}  // namespace
}  // namespace penstock::format
