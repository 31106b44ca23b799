#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "format/pt/pt.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/pickles.h"

namespace penstock::format {
namespace {

using namespace test::pickled;
using test::build_zip;
using test::bytes_of;
using test::code_of;
using test::pt_members;
using test::ZipMember;

std::string sample(int label) {
  return whole(dict({text("x"), tensor(storage("ByteStorage", "0", 8), 0, {8}, {1}), text("y"), integer(label)}));
}
std::vector<ZipMember> members_of(int label, const std::string& payload, const std::string& prefix = "archive") {
  return pt_members(sample(label), {payload}, prefix);
}

/// Reads `file` both ways and checks that they agree.
std::shared_ptr<const Index> located(PtLayouts& layouts, const std::string& file, const OpenOptions& options = {}) {
  std::vector<StorageLocation> locations;
  const DirectoryLayoutPtr layout = layouts.locate(bytes_of(file), "m.pt", options, locations);
  const std::shared_ptr<const Index> index(layout, &layout->index());
  const Index fresh = read_pt_index(bytes_of(file), "m.pt", options);
  EXPECT_EQ(locations.size(), fresh.storages.size());
  for (std::size_t i = 0; i < locations.size(); ++i) {
    EXPECT_EQ(locations[i].offset, fresh.storages[i].offset);
    EXPECT_EQ(locations[i].crc32, fresh.storages[i].crc32);
    EXPECT_EQ(index->storages[i].nbytes, fresh.storages[i].nbytes);
  }
  EXPECT_EQ(index->structure.to_string(), fresh.structure.to_string());
  EXPECT_EQ(index->entries.size(), fresh.entries.size());
  return index;
}

TEST(PtLayouts, FilesOfOneLayoutShareTheIndex) {
  PtLayouts layouts;
  const auto first = located(layouts, build_zip(members_of(1, "abcdefgh")));
  const auto second = located(layouts, build_zip(members_of(1, "ABCDEFGH", "another_name")));
  EXPECT_EQ(first, second);
}

TEST(PtLayouts, OtherContentIsAnotherIndex) {
  PtLayouts layouts;
  const auto first = located(layouts, build_zip(members_of(1, "abcdefgh")));
  const auto second = located(layouts, build_zip(members_of(2, "abcdefgh")));
  EXPECT_NE(first, second);
  EXPECT_EQ(second->structure["y"].as_int(), 2);
  // Both are kept: files with labels take turns.
  EXPECT_EQ(located(layouts, build_zip(members_of(1, "12345678"))), first);
  EXPECT_EQ(located(layouts, build_zip(members_of(2, "12345678"))), second);
}

TEST(PtLayouts, ForgetsRatherThanGrowWithoutBound) {
  PtLayouts layouts;
  const auto first = located(layouts, build_zip(members_of(0, "abcdefgh")));
  for (int label = 1; label < 100; ++label) located(layouts, build_zip(members_of(label, "abcdefgh")));
  EXPECT_EQ(located(layouts, build_zip(members_of(0, "12345678"))), first) << "a label each";
  std::vector<ZipMember> members = members_of(0, "abcdefgh");
  members.push_back(members.back());
  members.back().name = "archive/extra";
  for (std::size_t size = 0; size < 4100; ++size) {
    members.back().data = std::string(size, 'x');
    located(layouts, build_zip(members));
  }
  EXPECT_NE(located(layouts, build_zip(members_of(0, "12345678"))), first);
}

TEST(PtLayouts, EverythingThatMeansSomethingIsCompared) {
  PtLayouts layouts;
  const std::vector<ZipMember> good = members_of(1, "abcdefgh");
  const auto first = located(layouts, build_zip(good));
  std::vector<ZipMember> other = good;
  other[1].data = "big";
  other[1].data.resize(6, ' ');
  EXPECT_EQ(code_of([&] { located(layouts, build_zip(other)); }), ErrorCode::kCorrupt);
  other = good;
  std::swap(other[1], other[2]);
  EXPECT_NE(located(layouts, build_zip(other)), first);
  other = good;
  other.push_back({.name = "archive/extra", .data = "x"});
  EXPECT_NE(located(layouts, build_zip(other)), first);
  other = good;
  other[3].data = "4\n";
  EXPECT_EQ(located(layouts, build_zip(other))->metadata.at("version"), "4");
}

TEST(PtLayouts, AMatchIsAsStrictAsReadingAnew) {
  PtLayouts layouts;
  const std::vector<ZipMember> good = members_of(1, "abcdefgh");
  located(layouts, build_zip(good));
  const auto refused = [&](auto change) {
    std::vector<ZipMember> other = good;
    change(other);
    const std::string file = build_zip(other);
    std::vector<StorageLocation> locations;
    const auto fast = code_of([&] { layouts.locate(bytes_of(file), "m.pt", {}, locations); });
    EXPECT_EQ(fast, code_of([&] { read_pt_index(bytes_of(file), "m.pt"); }));
    return fast;
  };
  EXPECT_EQ(refused([](auto& m) { m[2].data = "abcdefg"; }), ErrorCode::kCorrupt);
  EXPECT_EQ(refused([](auto& m) { m[2].name = "archive/data/1"; }), ErrorCode::kCorrupt);
  EXPECT_EQ(refused([](auto& m) { m[2].name = "brchive/data/0"; }), ErrorCode::kCorrupt);
  EXPECT_EQ(refused([](auto& m) { m[0].crc = m[0].local_crc = 7; }), ErrorCode::kChecksum);
  EXPECT_EQ(refused([](auto& m) { m[3].crc = m[3].local_crc = 7; }), ErrorCode::kChecksum);
  EXPECT_EQ(refused([](auto& m) { m[0].data.back() = '\xff'; }), ErrorCode::kCorrupt);
  EXPECT_EQ(refused([](auto& m) { m[2].local_name = "archive/data/2"; }), ErrorCode::kCorrupt);
  const std::string file = build_zip(good);
  std::vector<StorageLocation> locations;
  for (std::size_t length = 0; length < 4; ++length) {
    EXPECT_EQ(layouts.locate(bytes_of(file).first(length), "m.pt", {}, locations), nullptr) << "no zip archive";
  }
  for (std::size_t length = 4; length < file.size(); ++length) {
    EXPECT_TRUE(code_of([&] { layouts.locate(bytes_of(file).first(length), "m.pt", {}, locations); })) << length;
  }
}

TEST(PtLayouts, ChecksumsThatWereNotVerifiedAreNotTrustedLater) {
  PtLayouts layouts;
  std::vector<ZipMember> members = members_of(1, "abcdefgh");
  for (ZipMember& member : members) member.crc = member.local_crc = 7;
  const std::string file = build_zip(members);
  located(layouts, file, {.verify = false});
  EXPECT_EQ(code_of([&] { located(layouts, file); }), ErrorCode::kChecksum);
}

TEST(PtLayouts, SeveralStoragesAndInlineOnes) {
  PtLayouts layouts;
  const std::string object =
      list({tensor(storage("ByteStorage", "1", 4), 0, {4}, {1}), tensor(storage("ByteStorage", "0", 2), 0, {2}, {1}),
            storage("ByteStorage", "1", 4)});
  const auto first = located(layouts, build_zip(pt_members(whole(object), {"ab", "cdef"})));
  EXPECT_EQ(located(layouts, build_zip(pt_members(whole(object), {"AB", "CDEF"}, "longer_prefix"))), first);
}

}  // namespace
}  // namespace penstock::format
