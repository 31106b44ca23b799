#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/zip/kind.h"
#include "format/zip/reader.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/zip_builder.h"

namespace penstock::format {
namespace {

using test::build_zip;
using test::bytes_of;
using test::CountingSource;
using test::ZipMember;

std::string first_name_of(const std::string& archive) {
  std::vector<ZipEntry> entries;
  read_zip_directory(bytes_of(archive), "x.zip", entries);
  return member_name(entries[0]);
}

ZipKind kind_of(const std::vector<ZipMember>& members, const std::string& path = "test.bin") {
  const Source source = test::source_of(build_zip(members), path);
  std::array<std::byte, 8> head{};
  source.read(0, head);
  return sniff_zip(head, *source);
}

TEST(ZipSniff, TellsTorchArchivesByTheirRecords) {
  for (const char* name : {"model/data.pkl", "data.pkl", "a/b/data.pkl", "MODEL/DATA.PKL", "/data.pkl",
                           "m/.data/extern_modules", "m/byteorder", "m/archive_format"}) {
    EXPECT_EQ(kind_of({{.name = name}}), ZipKind::kTorch) << name;
    EXPECT_EQ(kind_of({{.name = "README"}, {.name = "a.npy"}, {.name = name}}), ZipKind::kTorch) << name;
  }
  for (const char* name : {"m/x/.data/extern_modules", "mydata.pkl", "m/mydata.pkl", "data.pkl/x", "byteorder"}) {
    EXPECT_EQ(kind_of({{.name = name}}), ZipKind::kForeign) << name;
  }
}

TEST(ZipSniff, TellsNpzByTheNamesOfArrays) {
  EXPECT_EQ(kind_of({{.name = "data.pkl.npy"}}), ZipKind::kPlain);
  EXPECT_EQ(kind_of({{.name = "a.npy", .data = "model/data.pkl"}}), ZipKind::kPlain);
  EXPECT_EQ(kind_of({{.name = "readme.txt"}, {.name = "d/A.NPY"}}), ZipKind::kPlain);
  EXPECT_EQ(kind_of({{.name = "a"}, {.name = "npy"}}), ZipKind::kForeign);
}

TEST(ZipSniff, AnArchiveWithoutMembersIsNpzUnlessCalledOtherwise) {
  for (const char* path : {"x.npz", "x", "<memory>", "run.1/x", ".hidden"}) {
    EXPECT_EQ(kind_of({}, path), ZipKind::kPlain) << path;
  }
  for (const char* path : {"x.pt", "a/x.zip", "x.docx"}) EXPECT_EQ(kind_of({}, path), ZipKind::kForeign) << path;
}

TEST(ZipSniff, LeavesBrokenArchivesToTheirReader) {
  const CountingSource broken(build_zip({{}}).substr(0, 40));
  EXPECT_EQ(sniff_zip(bytes_of("PK\3\4...."), broken), ZipKind::kPlain);
  EXPECT_EQ(sniff_zip(bytes_of("\x93NUMPY"), broken), ZipKind::kNone);
  EXPECT_EQ(sniff_zip(bytes_of("PK"), broken), ZipKind::kNone);
}

TEST(ZipNames, AreOfCodePage437WhereNotSaidToBeUtf8) {
  const std::string all = "caf\x82.npy";
  EXPECT_EQ(first_name_of(build_zip({{.name = all}})), "caf\u00e9.npy");
  EXPECT_EQ(first_name_of(build_zip({{.name = "caf\u00e9", .flags = 1 << 11}})), "caf\u00e9");
  EXPECT_EQ(first_name_of(build_zip({{.name = "caf\u00e9"}})), "caf\u251c\u2310");
  EXPECT_EQ(first_name_of(build_zip({{.name = "\x80\xff"}})), "\u00c7\u00a0");
  EXPECT_NO_THROW(check_zip_name("caf\x82", false));
  EXPECT_EQ(test::code_of([] { check_zip_name(std::string_view("caf\x82\0", 5), false); }), ErrorCode::kUnsafe);
}

TEST(ZipNames, AreLabels) {
  for (const char* name : {"a/b.npy", "..", "/etc/passwd", "../a", "a\\b", "a/../../b", "C:\\x", "//", "a\nb"}) {
    EXPECT_NO_THROW(check_zip_name(name)) << name;
  }
}

TEST(ZipNames, AreCheckedWhereverTheFaultLies) {
  using namespace std::string_view_literals;
  const std::pair<std::string_view, ErrorCode> faults[] = {{"\0"sv, ErrorCode::kUnsafe},
                                                           {"\xFF"sv, ErrorCode::kUnsupported}};
  for (std::size_t length = 0; length <= 30; ++length) {
    const std::string name = std::string("abc.d/ef-g.hi/./jkl...mn.op.qrs").substr(0, length);
    if (length > 0) {
      EXPECT_NO_THROW(check_zip_name(name)) << name;
    }
    for (std::size_t at = 0; at <= length; ++at) {
      for (const auto& [fault, code] : faults) {
        const std::string faulty = std::string(name).insert(at, fault);
        EXPECT_EQ(test::code_of([&] { check_zip_name(faulty); }), code) << faulty;
      }
      const std::string accent = std::string(name).insert(at, "\xC3\xA9");
      EXPECT_NO_THROW(check_zip_name(accent)) << accent;
    }
  }
}

}  // namespace
}  // namespace penstock::format
