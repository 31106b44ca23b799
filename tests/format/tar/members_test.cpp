#include "format/tar/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "format/tar/feed.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tar_builder.h"

namespace penstock::format {
namespace {

using test::bytes_of;
using test::gnu_long_name;
using test::pax_header;
using test::pax_record;
using test::put;
using test::tar_end;
using test::tar_header;
using test::tar_member;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = TarMember::Kind;

struct Walked {
  std::vector<TarMember> members;
  std::optional<Error> error;

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const TarMember& member : members) out.push_back(member.name);
    return out;
  }
};

Walked walked_by(TarBytes& bytes) {
  Walked out;
  TarWalk walk(bytes, "a.tar");
  try {
    while (auto member = walk.next()) out.members.push_back(*std::move(member));
  } catch (const Error& error) {
    out.error = error;
  }
  return out;
}

std::string text_of(const Walked& walked) {
  std::string out = walked.error ? walked.error->what() : "";
  for (const TarMember& m : walked.members) {
    out += "\n" + m.name + " " + std::to_string(static_cast<int>(m.kind));
    for (const std::uint64_t number : {m.begin, m.data, m.size, m.end}) out += " " + std::to_string(number);
  }
  return out;
}

Source file_of(const std::string& archive, const test::TemporaryFolder& folder) {
  test::write_file(folder / "a.tar", archive);
  return open_source(folder / "a.tar");
}

/// By memory, by sources that are read in windows of both kinds, and as a feed of pieces of 700 bytes: all give the
/// same.
Walked walk(const std::string& archive) {
  TarMemory memory(bytes_of(archive));
  const Walked out = walked_by(memory);
  const test::TemporaryFolder folder(test::quick_folder());
  for (const Source& source : {file_of(archive, folder), test::source_of(archive, folder / "a.tar")}) {
    TarWindow window(source);
    EXPECT_EQ(text_of(walked_by(window)), text_of(out));
  }
  std::size_t at = 0;
  const auto read = [&](std::span<std::byte> into) {
    const std::size_t count = std::min({into.size(), archive.size() - at, std::size_t{700}});
    if (count > 0) std::memcpy(into.data(), archive.data() + at, count);
    at += count;
    return count;
  };
  TarFeed feed(read, "a.tar", 1024);
  EXPECT_EQ(text_of(walked_by(feed)), text_of(out));
  return out;
}

std::string two() { return tar_member("a.npy", std::string(700, 'x')) + tar_member("b.npy", "y"); }

TEST(TarWalk, TellsWhereMembersLie) {
  const Walked walked = walk(two() + tar_end());
  ASSERT_EQ(walked.members.size(), 2U);
  EXPECT_FALSE(walked.error);
  const TarMember& a = walked.members[0];
  EXPECT_EQ(a.name, "a.npy");
  EXPECT_EQ(a.kind, Kind::kFile);
  EXPECT_EQ(a.begin, 0U);
  EXPECT_EQ(a.data, 512U);
  EXPECT_EQ(a.size, 700U);
  EXPECT_EQ(a.end, 1536U);
  EXPECT_EQ(walked.members[1].begin, 1536U);
  EXPECT_EQ(walked.members[1].file_name(), "b.npy");
}

TEST(TarWalk, NeedsNoEndAndGoesOnBehindOne) {
  EXPECT_THAT(walk(two()).names(), ElementsAre("a.npy", "b.npy"));
  EXPECT_THAT(walk(two() + std::string(512, '\0')).names(), ElementsAre("a.npy", "b.npy"));
  EXPECT_THAT(walk(two() + std::string(5, '\0')).names(), ElementsAre("a.npy", "b.npy"));
  EXPECT_THAT(walk(two() + std::string(10240, '\0')).names(), ElementsAre("a.npy", "b.npy"));
  const Walked appended = walk(two() + tar_end() + std::string(7 * 512, '\0') + tar_member("c.npy", "z") + tar_end());
  EXPECT_THAT(appended.names(), ElementsAre("a.npy", "b.npy", "c.npy"));
  EXPECT_EQ(appended.members[2].begin, two().size() + 9 * 512);
  EXPECT_THAT(walk(tar_member("a.npy", "") + std::string(512, '\0') + tar_member("b.npy", "")).names(),
              ElementsAre("a.npy", "b.npy"));
  for (const std::string& nothing : {std::string(), tar_end(), std::string(10240, '\0')}) {
    EXPECT_THAT(walk(nothing).names(), IsEmpty());
    EXPECT_FALSE(walk(nothing).error);
  }
}

TEST(TarWalk, TakesLongNamesOfGnu) {
  const std::string name = "folder/" + std::string(300, 'n') + ".npy";
  const std::string archive = tar_member("a.npy", "x") + gnu_long_name(name) + tar_member("folder/nnn", "content");
  const Walked walked = walk(archive + gnu_long_name("to", 'K') + tar_member("b.npy", ""));
  EXPECT_THAT(walked.names(), ElementsAre("a.npy", name, "b.npy"));
  EXPECT_EQ(walked.members[1].begin, 1024U);
  EXPECT_EQ(walked.members[1].data, 1024U + 512 + 512 + 512);
  EXPECT_EQ(walked.members[1].size, 7U);
}

TEST(TarWalk, TakesPathAndSizeOfPax) {
  const std::string records = pax_record("mtime", "1.5") + pax_record("path", "\xc3\xa4/b=c d.npy") +
                              pax_record("size", "600") + pax_record("comment", "two\nlines 12 size=1\n");
  for (const char type : {'x', 'X'}) {
    const Walked walked =
        walk(pax_header(records, type) + tar_header("short", 0) + test::padded(std::string(600, 'x')) + two());
    EXPECT_THAT(walked.names(), ElementsAre("\xc3\xa4/b=c d.npy", "a.npy", "b.npy"));
    EXPECT_EQ(walked.members[0].size, 600U);
  }
  const std::string zeros = pax_record("path", "p.npy") + std::string(20, '\0');
  EXPECT_THAT(walk(pax_header(zeros) + tar_member("a", "x")).names(), ElementsAre("p.npy"));
}

TEST(TarWalk, OneHeaderIsForOneMember) {
  const Walked walked = walk(pax_header(pax_record("path", "p.npy") + pax_record("size", "1")) + tar_header("a", 0) +
                             test::padded("x") + two());
  EXPECT_THAT(walked.names(), ElementsAre("p.npy", "a.npy", "b.npy"));
  EXPECT_EQ(walked.members[1].size, 700U);
}

TEST(TarWalk, TakesGlobalPaxThatSaysNothingOfContents) {
  const std::string comment = pax_header(pax_record("comment", "a commit"), 'g');
  EXPECT_THAT(walk(comment + two()).names(), ElementsAre("a.npy", "b.npy"));
  for (const char* key : {"path", "size", "GNU.sparse.major"}) {
    const auto error = walk(pax_header(pax_record(key, "1"), 'g') + two()).error;
    ASSERT_TRUE(error) << key;
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error->message(), HasSubstr(key));
  }
}

TEST(TarWalk, RefusesPaxRecordsThatLie) {
  for (const std::string& records :
       {std::string("9 path=a.npy\n"), std::string("99 path=a.npy\n"), std::string("14 path=a.npy"),
        std::string("-1 path=a.npy\n"), std::string("0 path=a.npy\n"), std::string("2 \n"), std::string("3 \n\n"),
        std::string("18446744073709551615 path=a\n"), std::string("18446744073709551630 path=a\n"),
        std::string("path=a.npy\n"), std::string(" 14 path=a.npy\n"), std::string("11 patha.np\n"),
        std::string("12 path=a.npy\n"), pax_record("path", "a") + "x", pax_record("path", "a") + "5 x"}) {
    const auto error = walk(pax_header(records) + tar_member("a.npy", "x")).error;
    ASSERT_TRUE(error) << records;
    EXPECT_EQ(error->code(), ErrorCode::kCorrupt) << records;
    EXPECT_GE(error->offset(), 512U);
  }
}

TEST(TarWalk, RefusesSizesThatLie) {
  for (const char* size : {"-1", "1e3", "", "0x10", " 1", "18446744073709551616"}) {
    const auto error = walk(pax_header(pax_record("size", size)) + tar_member("a.npy", "x")).error;
    ASSERT_TRUE(error) << size;
    EXPECT_EQ(error->code(), ErrorCode::kCorrupt) << size;
  }
  for (const char* size : {"18446744073709551615", "9223372036854775807", "4611686018427387905"}) {
    const auto error = walk(pax_header(pax_record("size", size)) + tar_member("a.npy", "x")).error;
    ASSERT_TRUE(error) << size;
    EXPECT_EQ(error->code(), ErrorCode::kCorrupt) << size;
    EXPECT_EQ(error->tensor(), "a.npy");
  }
}

TEST(TarWalk, AMemberBeyondTheEndIsCut) {
  const Walked walked = walk(two() + pax_header(pax_record("size", "4611686018427387904")) + tar_member("c.npy", "x"));
  ASSERT_THAT(walked.names(), ElementsAre("a.npy", "b.npy", "c.npy"));
  EXPECT_FALSE(walked.error);
  EXPECT_EQ(walked.members[2].size, std::uint64_t{1} << 62);
  TarMemory memory(bytes_of(std::string_view()));
  const std::string cut = two().substr(0, 600);
  TarMemory short_memory(bytes_of(cut));
  EXPECT_TRUE(walked_by(short_memory).members.front().is_cut);
}

TEST(TarWalk, IsRightForEachPlaceOfACut) {
  const std::string whole = two() + tar_end();
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const Walked walked = walk(whole.substr(0, length));
    const std::size_t headers = length > 1536 ? 2 : (length > 0 ? 1 : 0);
    const bool in_header = (length > 0 && length < 512) || (length > 1536 && length < 2048);
    ASSERT_EQ(walked.members.size(), in_header ? headers - 1 : headers) << length;
    ASSERT_EQ(walked.error.has_value(), in_header) << length;
    if (in_header) {
      EXPECT_EQ(walked.error->code(), ErrorCode::kTruncated);
      EXPECT_EQ(walked.error->offset(), length < 512 ? 0U : 1536U);
    }
    TarMemory memory(bytes_of(std::string_view(whole).substr(0, length)));
    for (const TarMember& member : walked_by(memory).members) EXPECT_EQ(member.is_cut, member.end > length) << length;
  }
}

TEST(TarWalk, ACutExtensionIsACutHeader) {
  const std::string whole = two() + pax_header(pax_record("path", std::string(600, 'p'))) + tar_member("c", "z");
  for (std::size_t length = two().size() + 1; length < two().size() + 4 * 512; length += 37) {
    const Walked walked = walk(whole.substr(0, length));
    EXPECT_THAT(walked.names(), ElementsAre("a.npy", "b.npy")) << length;
    ASSERT_TRUE(walked.error) << length;
    EXPECT_EQ(walked.error->code(), ErrorCode::kTruncated) << length;
  }
}

TEST(TarWalk, TellsWhatIsNoFile) {
  const auto linked = [](std::string& block) { put(block, 157, "/etc/passwd"); };
  // Links and folders may tell a size of what they lead to, which is not there.
  const std::string archive = tar_header("hard.npy", 700, '1', linked) + tar_header("soft.npy", 700, '2', linked) +
                              tar_header("char.npy", 0, '3') + tar_header("block.npy", 0, '4') +
                              tar_header("folder.npy/", 700, '5') + tar_header("pipe.npy", 0, '6') +
                              tar_member("contiguous.npy", "x", '7') + tar_member("odd.npy", "x", 'Q') +
                              tar_member("dump.npy", "x", 'D') + two();
  const Walked walked = walk(archive);
  ASSERT_EQ(walked.members.size(), 11U);
  const Kind kinds[] = {Kind::kLink, Kind::kLink,  Kind::kDevice, Kind::kDevice, Kind::kFolder, Kind::kDevice,
                        Kind::kFile, Kind::kOther, Kind::kOther,  Kind::kFile,   Kind::kFile};
  for (std::size_t i = 0; i < walked.members.size(); ++i) EXPECT_EQ(walked.members[i].kind, kinds[i]) << i;
  EXPECT_EQ(walked.members[0].size, 0U);
  EXPECT_EQ(walked.members[7].size, 1U);
}

TEST(TarWalk, PassesOldSparseMaps) {
  const auto extended = [](std::string& block) { block[482] = 1; };
  std::string more(512, '\0');
  more[504] = 1;
  const std::string archive =
      tar_header("holes.npy", 5, 'S', extended) + more + std::string(512, '\0') + test::padded("bytes") + two();
  const Walked walked = walk(archive);
  EXPECT_THAT(walked.names(), ElementsAre("holes.npy", "a.npy", "b.npy"));
  EXPECT_EQ(walked.members[0].kind, Kind::kSparse);
  EXPECT_EQ(walked.members[0].data, 1536U);
  EXPECT_EQ(walk(archive.substr(0, 1024)).error->code(), ErrorCode::kTruncated);
}

TEST(TarWalk, TellsSparseFilesOfPaxByTheirOwnNames) {
  const std::string records = pax_record("GNU.sparse.major", "1") + pax_record("GNU.sparse.name", "holes.npy") +
                              pax_record("GNU.sparse.realsize", "9999") + pax_record("path", "made/up.npy");
  const Walked walked = walk(pax_header(records) + tar_member("GNUSparseFile.7/holes.npy", "x") + two());
  EXPECT_THAT(walked.names(), ElementsAre("holes.npy", "a.npy", "b.npy"));
  EXPECT_EQ(walked.members[0].kind, Kind::kSparse);
  EXPECT_EQ(walked.members[1].kind, Kind::kFile);
}

TEST(TarWalk, LimitsHeadersWithoutAMember) {
  std::string most;
  for (int i = 0; i < 64; ++i) most += gnu_long_name("name.npy");
  EXPECT_THAT(walk(most + tar_member("a", "x")).names(), ElementsAre("name.npy"));
  EXPECT_EQ(walk(most + gnu_long_name("n") + tar_member("a", "x")).error->code(), ErrorCode::kLimit);
  const std::string name(std::size_t{1} << 20, 'n');
  EXPECT_EQ(walk(gnu_long_name(name) + tar_member("a", "x")).error->code(), ErrorCode::kLimit);
  EXPECT_THAT(walk(gnu_long_name(name.substr(1)) + tar_member("a", "x")).names(), ElementsAre(name.substr(1)));
  EXPECT_EQ(walk(tar_header("x", (std::uint64_t{1} << 33) - 1, 'x')).error->code(), ErrorCode::kLimit);
}

TEST(TarWalk, RefusesOtherBytesBetweenMembers) {
  for (const std::string& other :
       {std::string(512, 'j'), std::string(511, '\0') + "j", std::string(512, '\0').replace(0, 5, "a.npy")}) {
    const Walked walked = walk(tar_member("a.npy", "x") + other + tar_member("b.npy", "y"));
    EXPECT_THAT(walked.names(), ElementsAre("a.npy"));
    ASSERT_TRUE(walked.error);
    EXPECT_EQ(walked.error->code(), ErrorCode::kCorrupt);
    EXPECT_EQ(walked.error->offset(), 1024U);
  }
  const Walked behind_extension = walk(gnu_long_name("n.npy") + std::string(512, '\0') + tar_member("a", "x"));
  EXPECT_EQ(behind_extension.error->code(), ErrorCode::kCorrupt);
}

TEST(TarWalk, NamesAreLabels) {
  EXPECT_THAT(walk(tar_member("../../etc/a.npy", "") + tar_member("/abs/b.npy", "") + tar_member("./c.npy", "") +
                   tar_member("\xff\xfe.npy", ""))
                  .names(),
              ElementsAre("../../etc/a.npy", "/abs/b.npy", "./c.npy", "\xff\xfe.npy"));
}

TEST(TarWindow, ReadsHeadersAlone) {
  std::string archive;
  for (int i = 0; i < 50; ++i) archive += tar_member(std::to_string(i) + ".bin", std::string(100'000, 'x'));
  const test::TemporaryFolder folder;
  TarWindow window(file_of(archive, folder));
  EXPECT_EQ(walked_by(window).members.size(), 50U);
  EXPECT_LE(window.read(), 50U * 2048);
  TarWindow remote(test::source_of(archive));
  EXPECT_EQ(walked_by(remote).members.size(), 50U);
}

TEST(TarFeed, KeepsNothingOfWhatIsPassedBy) {
  const std::string big(std::size_t{3} << 20, 'x');
  const std::string archive = tar_member("a.npy", "1") + tar_member("no_field", big) + tar_member("b.npy", "2");
  std::size_t at = 0;
  TarFeed feed(
      [&](std::span<std::byte> into) {
        const std::size_t count = std::min(into.size(), archive.size() - at);
        if (count > 0) std::memcpy(into.data(), archive.data() + at, count);
        at += count;
        return count;
      },
      "a.tar", 4096);
  feed.forget(archive.size() - 1024);
  const auto last = feed.view(archive.size() - 1024, 1024);
  ASSERT_EQ(last.size(), 1024U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(last.data()), 5), "b.npy");
  EXPECT_TRUE(feed.view(0, 512).empty());
  EXPECT_EQ(feed.view(archive.size() - 10, 512).size(), 10U);
  EXPECT_EQ(feed.size(), archive.size());
}

}  // namespace
}  // namespace penstock::format
