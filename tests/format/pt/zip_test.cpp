#include "format/pt/zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "format/pt/pt.h"
#include "format/rows.h"
#include "penstock/load.h"
#include "support/bytes.h"
#include "support/deflated.h"
#include "support/errors.h"
#include "support/pickles.h"

namespace penstock::format {
namespace {

using namespace test::pickled;
using test::build_zip;
using test::bytes_of;
using test::code_of;
using test::error_of;
using test::pt_file;
using test::pt_members;
using test::source_of;
using test::ZipMember;
using testing::HasSubstr;

const std::string kFloats(reinterpret_cast<const char*>(std::vector<float>{1, 2, 3, 4}.data()), 16);

std::string four_floats(std::string_view key = "0") { return tensor(storage("FloatStorage", key, 4), 0, {4}, {1}); }
std::vector<ZipMember> good_members() { return pt_members(whole(dict({text("w"), four_floats()})), {kFloats}); }
Archive opened(const std::vector<ZipMember>& members) { return open(source_of(build_zip(members), "m.pt")); }

void expect_floats(const Tensor& tensor, const std::vector<float>& expected) {
  const auto values = tensor.values<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), expected);
}

TEST(PtZip, ReadsATensor) {
  const Archive archive = opened(good_members());
  EXPECT_EQ(archive.format(), "pt");
  EXPECT_EQ(archive.metadata().at("version"), "3");
  EXPECT_EQ(archive.metadata().at("byteorder"), "little");
  EXPECT_EQ(archive.storages()[0].name, "archive/data/0");
  expect_floats(archive["w"].load(), {1, 2, 3, 4});
}

TEST(PtZip, SourceAndMemoryGiveTheSameIndex) {
  const std::string file = build_zip(good_members());
  const Index index = read_pt_index(bytes_of(file), "m.pt");
  const auto source = std::make_shared<test::CountingSource>(file);
  const Index other = kPtFormat.read_index(source, {});
  ASSERT_EQ(index.storages.size(), 1U);
  EXPECT_EQ(index.storages[0].offset, other.storages[0].offset);
  EXPECT_EQ(index.storages[0].crc32, other.storages[0].crc32);
  EXPECT_EQ(index.entries[0].name, other.entries[0].name);
  EXPECT_TRUE(index.sources.empty());
}

TEST(PtZip, RecordsMayComeInAnyOrder) {
  std::vector<ZipMember> members = good_members();
  std::reverse(members.begin(), members.end());
  expect_floats(opened(members)["w"].load(), {1, 2, 3, 4});
}

TEST(PtZip, OldArchivesLackRecords) {
  std::vector<ZipMember> members = good_members();
  std::erase_if(members, [](const ZipMember& member) { return member.name.ends_with("byteorder"); });
  expect_floats(opened(members)["w"].load(), {1, 2, 3, 4});
  members.back().name = "archive/.data/version";
  const Archive archive = opened(members);
  EXPECT_EQ(archive.metadata().at("version"), "3");
  members.pop_back();
  EXPECT_EQ(code_of([&] { opened(members); }), ErrorCode::kCorrupt);
}

TEST(PtZip, OptionsSayTheByteOrderThatIsNotRecorded) {
  std::vector<ZipMember> members = good_members();
  for (std::size_t i = 0; i < 16; i += 4) std::reverse(members[2].data.begin() + i, members[2].data.begin() + i + 4);
  members.erase(members.begin() + 1);
  const Archive archive = open(source_of(build_zip(members), "m.pt"), {.big_endian = true});
  EXPECT_EQ(archive.metadata().at("byteorder"), "big");
  expect_floats(archive["w"].load(), {1, 2, 3, 4});
  expect_floats(open(source_of(build_zip(good_members())), {.big_endian = true})["w"].load(), {1, 2, 3, 4});
}

TEST(PtZip, OtherByteOrderIsSwapped) {
  std::vector<ZipMember> members = good_members();
  members[1].data = "big";
  for (std::size_t i = 0; i < 16; i += 4) std::reverse(members[2].data.begin() + i, members[2].data.begin() + i + 4);
  expect_floats(opened(members)["w"].load(), {1, 2, 3, 4});
  members[1].data = "middle";
  EXPECT_THAT(error_of([&] { opened(members); })->message(), HasSubstr("'middle'"));
}

TEST(PtZip, DeflatedRecords) {
  std::vector<ZipMember> members = good_members();
  for (ZipMember& member : members) {
    member.method = 8;
    member.stored = test::deflated(member.data);
  }
  const Archive archive = opened(members);
  EXPECT_EQ(archive.storages()[0].compression, Compression::kDeflate);
  expect_floats(archive["w"].load(), {1, 2, 3, 4});
}

TEST(PtZip, DeflatedPicklesBecomeNoMoreThanTheyCouldHold) {
  for (const char opcode : {'N', '(', ']'}) {
    const std::string pickle(opcode == ']' ? 1'000'000 : 2'000'000, opcode);  // of lists fewer are too many
    std::vector<ZipMember> members = good_members();
    members[0] = {.name = members[0].name, .data = pickle, .method = 8, .stored = test::deflated(pickle)};
    EXPECT_EQ(code_of([&] { opened(members); }), ErrorCode::kLimit) << opcode;
  }
}

TEST(PtZip, RecordsOfAWordAreShort) {
  for (const char* name : {"archive/version", "archive/byteorder", "archive/.format_version"}) {
    std::vector<ZipMember> members = good_members();
    std::erase_if(members, [&](const ZipMember& member) { return member.name == name; });
    members.push_back({.name = name, .data = "3" + std::string(5000, '\n')});
    EXPECT_EQ(code_of([&] { opened(members); }), ErrorCode::kLimit) << name;
  }
}

TEST(PtZip, ArchivesWithoutTheirPickleAreNotTakenForNpz) {
  std::vector<ZipMember> members = good_members();
  members.erase(members.begin());
  const auto error = error_of([&] { opened(members); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error->message(), HasSubstr("data.pkl"));
}

TEST(PtZip, SharedStoragesAreOne) {
  const Archive archive = opened(pt_members(
      whole(list({four_floats("0"), tensor(storage("FloatStorage", "0", 4), 1, {2}, {2}), four_floats("1")})),
      {kFloats, kFloats}));
  EXPECT_EQ(archive.storages().size(), 2U);
  const Value value = archive.load();
  const Tensor whole_one = value[0].as_tensor();
  const Tensor view = value[1].as_tensor();
  EXPECT_EQ(whole_one.data() + 4, view.data());
  EXPECT_EQ(view.strides(), Strides{2});
}

TEST(PtZip, StoragesOfNoBytesHaveAnEmptyRecord) {
  const Archive archive = opened(pt_members(whole(tensor(storage("FloatStorage", "0", 0), 0, {0}, {1})), {""}));
  EXPECT_EQ(archive["tensor"].load().numel(), 0);
}

TEST(PtZip, KeysAreAnyText) {
  std::vector<ZipMember> members = pt_members(whole(four_floats("weights/fc 1")), {kFloats});
  members[2].name = "archive/data/weights/fc 1";
  expect_floats(opened(members)["tensor"].load(), {1, 2, 3, 4});
}

TEST(PtZip, UnknownObjectsDoNotHideTensors) {
  const Archive archive = opened(pt_members(
      whole(dict({text("config"), call(global("mypkg", "Config"), {four_floats()}), text("w"), four_floats()})),
      {kFloats}));
  EXPECT_EQ(archive.unknown_globals()[0], "mypkg.Config");
  expect_floats(archive["w"].load(), {1, 2, 3, 4});
  expect_floats(archive["config.0"].load(), {1, 2, 3, 4});
  EXPECT_EQ(archive.load()["config"].type_name(), "mypkg.Config");
}

TEST(PtZip, TorchScriptWeightsAreFound) {
  const std::string module = global("__torch__", "Net") + ")\x81" + dict({text("weight"), four_floats()}) + "b";
  std::vector<ZipMember> members = pt_members(whole(module), {kFloats});
  std::swap(members[0], members[2]);  // storages come first there
  members.push_back({.name = "archive/constants.pkl", .data = "\x80\x02)."});
  members.push_back({.name = "archive/code/__torch__.py", .data = "import os"});
  const Archive archive = opened(members);
  EXPECT_EQ(archive.metadata().at("kind"), "torchscript");
  expect_floats(archive["weight"].load(), {1, 2, 3, 4});
}

TEST(PtZip, ExportedProgramsAreNamedAndRefused) {
  const std::string file = build_zip({{.name = "m/data/weights/weight_0", .data = kFloats},
                                      {.name = "m/models/model.json", .data = "{}"},
                                      {.name = "m/archive_format", .data = "pt2"}});
  const auto error = error_of([&] { open(source_of(file, "m.pt2")); });
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), HasSubstr(".pt2"));
}

TEST(PtZip, NamesAreUtf8WhateverTheyAreSaidToBe) {
  std::vector<ZipMember> members = good_members();
  for (ZipMember& member : members) member.name.replace(0, 7, "caf\u00e9");
  expect_floats(opened(members)["w"].load(), {1, 2, 3, 4});
  for (ZipMember& member : members) member.name.replace(3, 2, "\x82");
  EXPECT_EQ(code_of([&] { opened(members); }), ErrorCode::kUnsupported);
}

TEST(PtZip, PackagesAreNamedAndRefused) {
  const std::string file = build_zip({{.name = "m/x/y.txt", .data = "hi"},
                                      {.name = "m/.data/extern_modules", .data = "torch"},
                                      {.name = "m/.data/version", .data = "6\n"}});
  const auto error = error_of([&] { open(source_of(file, "m.pt")); });
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), HasSubstr("torch.package"));
}

TEST(PtZip, ContainersBeforeZipAreNamedAndRefused) {
  const auto error = error_of([&] { open(source_of("PYTORCH1" + std::string(100, 'x'))); });
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), HasSubstr("PYTORCH1"));
}

struct ZipFlaw {
  std::string name;
  void (*make)(std::vector<ZipMember>& members);
  ErrorCode code = ErrorCode::kCorrupt;
  std::string says;
};
class EveryFlaw : public testing::TestWithParam<ZipFlaw> {};

TEST_P(EveryFlaw, IsRefused) {
  std::vector<ZipMember> members = good_members();
  GetParam().make(members);
  const auto error = error_of([&] { opened(members); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), GetParam().code) << error->what();
  EXPECT_EQ(error->path(), "m.pt");
  EXPECT_THAT(std::string(error->what()), HasSubstr(GetParam().says));
}

using Members = std::vector<ZipMember>;
INSTANTIATE_TEST_SUITE_P(
    PtZip, EveryFlaw,
    testing::Values(
        ZipFlaw{"version_0", [](Members& m) { m[3].data = "0\n"; }, ErrorCode::kUnsupported, "version 0"},
        ZipFlaw{"version_11", [](Members& m) { m[3].data = "11\n"; }, ErrorCode::kUnsupported, "version 11"},
        ZipFlaw{"version_text", [](Members& m) { m[3].data = "three"; }, ErrorCode::kCorrupt, "is not a number"},
        ZipFlaw{"another_folder", [](Members& m) { m[2].name = "other/data/0"; }, ErrorCode::kCorrupt,
                "not in the folder"},
        ZipFlaw{"prefix_of_folder", [](Members& m) { m[2].name = "archive2/data/0"; }, ErrorCode::kCorrupt,
                "not in the folder"},
        ZipFlaw{"second_pickle_elsewhere", [](Members& m) { m.push_back({.name = "x/data.pkl"}); }, ErrorCode::kCorrupt,
                "folder"},
        ZipFlaw{"storage_missing", [](Members& m) { m[2].name = "archive/data/1"; }, ErrorCode::kCorrupt,
                "archive/data/0"},
        ZipFlaw{"storage_short", [](Members& m) { m[2].data.pop_back(); }, ErrorCode::kCorrupt,
                "16 bytes, but its record has 15"},
        ZipFlaw{"storage_long", [](Members& m) { m[2].data += 'x'; }, ErrorCode::kCorrupt, "has 17"},
        ZipFlaw{"pickle_damaged",
                [](Members& m) {
                  m[0].crc = 1;
                  m[0].local_crc = 1;
                },
                ErrorCode::kChecksum, "data.pkl"},
        ZipFlaw{"version_damaged",
                [](Members& m) {
                  m[3].crc = 1;
                  m[3].local_crc = 1;
                },
                ErrorCode::kChecksum, "version"},
        ZipFlaw{"pickle_empty", [](Members& m) { m[0].data = ""; }, ErrorCode::kTruncated, "data.pkl"},
        ZipFlaw{"pickle_then_more", [](Members& m) { m[0].data += "N."; }, ErrorCode::kCorrupt, "follow the end"},
        // A scanner that stops at the first error, and a loader that acts before it, would disagree.
        ZipFlaw{"payload_then_broken", [](Members& m) { m[0].data = "cos\nsystem\nX\x01\x00\x00\x00x\x85R\xff."; },
                ErrorCode::kTruncated, ""}),
    [](const auto& one) { return one.param.name; });

TEST(PtZip, AFolderIsNeeded) {
  EXPECT_EQ(code_of([&] { read_pt_index(bytes_of(build_zip({{.name = "data.pkl", .data = whole("N")}})), "m.pt"); }),
            ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] { read_pt_index(bytes_of(build_zip({})), "m.pt"); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] { read_pt_index(bytes_of(build_zip({{.name = "a/b", .data = "x"}})), "m.pt"); }),
            ErrorCode::kCorrupt);
}

TEST(PtZip, LookUpsAreExact) {
  // Searching for "data.pkl" as a part of names finds the wrong one.
  std::vector<ZipMember> members = good_members();
  members.insert(members.begin(), {.name = "archive/notdata.pkl", .data = whole("N")});
  members.push_back({.name = "archive/x/data.pkl", .data = whole("K\x07")});
  expect_floats(opened(members)["w"].load(), {1, 2, 3, 4});
}

TEST(PtZip, ChecksumsCanBeLeftOut) {
  std::vector<ZipMember> members = good_members();
  for (ZipMember& member : members)
    member.crc = member.local_crc = 0;  // as torch writes after set_crc32_options(False)
  expect_floats(opened(members)["w"].load(), {1, 2, 3, 4});
  for (ZipMember& member : members) member.crc = member.local_crc = 12345;
  EXPECT_EQ(code_of([&] { opened(members); }), ErrorCode::kChecksum);
  const Archive archive = open(source_of(build_zip(members)), {.verify = false});
  expect_floats(archive["w"].load(), {1, 2, 3, 4});
  EXPECT_EQ(archive.storages()[0].crc32, 12345U) << "the index says what the file records";
}

TEST(PtZip, WrongPayloadIsFoundWhenItIsRead) {
  std::vector<ZipMember> members = good_members();
  members[2].crc = members[2].local_crc = 12345;
  const Archive archive = opened(members);
  EXPECT_EQ(code_of([&] { archive["w"].load(); }), ErrorCode::kChecksum);
}

TEST(PtZip, EveryTruncationIsAnError) {
  const std::string file = build_zip(good_members());
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_TRUE(error_of([&] { read_pt_index(bytes_of(file).first(length), "m.pt"); })) << length;
    EXPECT_TRUE(error_of([&] { open(source_of(file.substr(0, length))); })) << length;
  }
}

TEST(PtZip, EveryFlippedBitIsAnErrorOrHarmless) {
  const std::string file = build_zip(good_members());
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      open(source_of(damaged)).load();
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, file.size() * 5);  // dates, attributes and the like do not matter
}

}  // namespace
}  // namespace penstock::format
