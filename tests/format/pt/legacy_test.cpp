#include "format/pt/legacy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "format/pt/pt.h"
#include "format/rows.h"
#include "penstock/load.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/pickles.h"
#include "support/tensors.h"

namespace penstock::format {
namespace {

using namespace std::string_literals;
using namespace test::pickled;
using test::bytes_of;
using test::code_of;
using test::error_of;
using test::source_of;
using test::values_of;
using testing::HasSubstr;

const std::string kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"s;

/// One storage behind the pickles.
struct Stored {
  std::string key;
  std::int64_t numel = 0;
  std::string data;
};

struct Legacy {
  std::string magic = whole(kMagic);
  std::string version = whole("M\xe9\x03");
  std::string system = whole(dict({text("protocol_version"), "M\xe9\x03", text("little_endian"), "\x88"}));
  std::string object;
  std::string keys = {};  ///< a list of text; made of `storages` when empty
  std::vector<Stored> storages;
  std::string behind = {};

  std::string file() const {
    std::string listed = "](";
    for (const Stored& stored : storages) listed += text(stored.key);
    std::string out = magic + version + system + whole(object) + (keys.empty() ? whole(listed + "e") : keys);
    for (const Stored& stored : storages) {
      test::put(out, stored.numel);
      out += stored.data;
    }
    return out + behind;
  }
};

std::string id(std::string_view type, std::string_view key, std::int64_t numel, const std::string& view = "N") {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), integer(numel), view}) + "Q";
}

std::string shorts(int count) {
  std::vector<std::int16_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), std::int16_t{0});
  return {reinterpret_cast<const char*>(values.data()), values.size() * 2};
}

Legacy good_legacy() {
  return {.object = dict({text("a"), tensor(id("ShortStorage", "11", 6), 1, {2, 2}, {2, 1}), text("b"),
                          tensor(id("ByteStorage", "7", 3), 0, {3}, {1})}),
          .storages = {{"11", 6, shorts(6)}, {"7", 3, "xyz"}}};
}

Archive opened(const Legacy& legacy) { return open(source_of(legacy.file(), "m.pt")); }

TEST(PtLegacy, TheEndOfTheFirstOfSeveral) {
  const std::string one = good_legacy().file();
  for (const std::string& behind : {std::string(), one, "other bytes"s}) {
    const std::string all = one + behind;
    EXPECT_EQ(pt_legacy_end(FileBytes(bytes_of(all), "m.pt")), one.size());
  }
  const std::string cut = one.substr(0, one.size() - 1);
  const auto error = error_of([&] { pt_legacy_end(FileBytes(bytes_of(cut), "m.pt")); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kTruncated);
  EXPECT_EQ(error->path(), "m.pt");
}

TEST(PtLegacy, ReadsTensors) {
  const Archive archive = opened(good_legacy());
  EXPECT_EQ(archive.format(), "pt");
  EXPECT_EQ(archive.metadata().at("version"), "legacy");
  EXPECT_EQ(values_of<std::int16_t>(archive["a"].load()), (std::vector<std::int16_t>{1, 2, 3, 4}));
  EXPECT_EQ(archive["b"].load().nbytes(), 3U);
}

TEST(PtLegacy, EveryProtocolsMagicIsKnown) {
  const auto with = [](const std::string& magic) {
    Legacy legacy = good_legacy();
    legacy.magic = magic;
    return legacy;
  };
  for (const std::string& magic :
       {kMagic + ".", "\x80\x01" + kMagic + ".", "L119547037146038801333356L\n."s, "\x80\x03" + kMagic + ".",
        "\x80\x04\x95\x0d\0\0\0\0\0\0\0"s + kMagic + ".", "\x80\x05\x95\x0d\0\0\0\0\0\0\0"s + kMagic + "."}) {
    EXPECT_TRUE(is_pt_legacy(bytes_of(magic)));
    const Archive archive = opened(with(magic));
    EXPECT_EQ(archive.entries().size(), 2U);
  }
  EXPECT_FALSE(is_pt_legacy(bytes_of("")));
  EXPECT_FALSE(is_pt_legacy(bytes_of("\x80")));
  EXPECT_FALSE(is_pt_legacy(bytes_of("\x80\x02\x8a\x0a")));
}

TEST(PtLegacy, ViewsOfStorages) {
  Legacy legacy = good_legacy();
  legacy.object = list({tensor(id("ShortStorage", "11", 6), 0, {6}, {1}),
                        tensor(id("ShortStorage", "11", 6, tuple({text("v"), integer(2), integer(3)})), 1, {2}, {1})});
  legacy.storages.pop_back();
  const Archive archive = opened(legacy);
  EXPECT_EQ(archive.storages().size(), 1U);
  EXPECT_EQ(values_of<std::int16_t>(archive["1"].load()), (std::vector<std::int16_t>{3, 4}));
  legacy.object = tensor(id("ShortStorage", "11", 6, tuple({text("v"), integer(2), integer(3)})), 0, {4}, {1});
  EXPECT_EQ(code_of([&] { opened(legacy); }), ErrorCode::kCorrupt);
}

TEST(PtLegacy, KeysOfStoragesMayBeNumbers) {
  Legacy legacy = good_legacy();
  const std::string id =
      tuple({text("storage"), global("torch", "ShortStorage"), integer(11), text("cpu"), integer(6), "N"}) + "Q";
  legacy.object = tensor(id, 0, {6}, {1});
  legacy.storages.pop_back();
  legacy.keys = whole(list({integer(11)}));
  EXPECT_EQ(values_of<std::int16_t>(opened(legacy)["tensor"].load()), (std::vector<std::int16_t>{0, 1, 2, 3, 4, 5}));
  legacy.keys = whole(list({integer(12)}));
  EXPECT_EQ(code_of([&] { opened(legacy); }), ErrorCode::kCorrupt);
  legacy.keys = whole(list({"N"}));
  EXPECT_EQ(code_of([&] { opened(legacy); }), ErrorCode::kCorrupt);
}

TEST(PtLegacy, ClassesWithTheirSource) {
  Legacy legacy = good_legacy();
  const std::string module = tuple({text("module"), global("my", "Net"), text("net.py"), text("import os")}) + "Q";
  legacy.object = module + ")\x81" + dict({text("w"), tensor(id("ShortStorage", "11", 6), 0, {6}, {1})}) + "b";
  legacy.storages.pop_back();
  const Archive archive = opened(legacy);
  EXPECT_EQ(archive.structure().type_name(), "my.Net");
  EXPECT_EQ(archive["w"].shape(), Shape{6});
}

TEST(PtLegacy, NothingButPlainValues) {
  Legacy legacy = good_legacy();
  legacy.object = dict({text("epoch"), "K\x07"});
  legacy.storages.clear();
  EXPECT_EQ(opened(legacy).load()["epoch"].as_int(), 7);
}

TEST(PtLegacy, LargePicklesAreReadInSteps) {
  Legacy legacy = good_legacy();
  legacy.object = list({bytes(std::string(3'000'000, 'x')), tensor(id("ShortStorage", "11", 6), 0, {6}, {1})});
  legacy.storages = {{"11", 6, shorts(6)}};
  const auto source = std::make_shared<test::CountingSource>(legacy.file());
  const Index index = kPtLegacyFormat.read_index(source, {});
  EXPECT_EQ(index.structure[0].size(), 0U);
  EXPECT_EQ(index.structure[0].as_string().size(), 3'000'000U);
  EXPECT_EQ(index.entries.size(), 1U);
}

TEST(PtLegacy, PayloadIsNotRead) {
  Legacy legacy = good_legacy();
  legacy.object = tensor(id("ByteStorage", "7", 10'000'000), 0, {10'000'000}, {1});
  legacy.storages = {{"7", 10'000'000, std::string(10'000'000, 'x')}};
  const auto source = std::make_shared<test::CountingSource>(legacy.file());
  kPtLegacyFormat.read_index(source, {});
  EXPECT_LT(source->bytes_read, 1'000'000U);
}

struct LegacyFlaw {
  std::string name;
  void (*make)(Legacy& legacy);
  ErrorCode code = ErrorCode::kCorrupt;
  std::string says;
};
class EveryFlawOfLegacy : public testing::TestWithParam<LegacyFlaw> {};

TEST_P(EveryFlawOfLegacy, IsRefused) {
  Legacy legacy = good_legacy();
  GetParam().make(legacy);
  const auto error = error_of([&] { opened(legacy); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), GetParam().code) << error->what();
  EXPECT_EQ(error->path(), "m.pt");
  EXPECT_TRUE(error->offset());
  EXPECT_THAT(std::string(error->what()), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    PtLegacy, EveryFlawOfLegacy,
    testing::Values(
        LegacyFlaw{"version", [](Legacy& l) { l.version = whole("M\xe8\x03"); }, ErrorCode::kUnsupported, "1000"},
        LegacyFlaw{"system_no_dict", [](Legacy& l) { l.system = whole("N"); }, ErrorCode::kCorrupt, "dict"},
        LegacyFlaw{"keys_no_list", [](Legacy& l) { l.keys = whole("N"); }, ErrorCode::kCorrupt, "list"},
        LegacyFlaw{"key_no_text", [](Legacy& l) { l.keys = whole("](NNe"); }, ErrorCode::kCorrupt, "no tensor uses"},
        LegacyFlaw{"key_unknown", [](Legacy& l) { l.storages[0].key = "12"; }, ErrorCode::kCorrupt, "no tensor uses"},
        LegacyFlaw{"key_twice", [](Legacy& l) { l.storages[1].key = "11"; }, ErrorCode::kCorrupt, "already"},
        LegacyFlaw{"key_missing", [](Legacy& l) { l.storages.pop_back(); }, ErrorCode::kCorrupt, "2 storages, but 1"},
        LegacyFlaw{"count_differs", [](Legacy& l) { l.storages[0].numel = 5; }, ErrorCode::kCorrupt, "5 elements"},
        LegacyFlaw{"count_negative", [](Legacy& l) { l.storages[0].numel = -1; }, ErrorCode::kCorrupt, "-1 elements"},
        LegacyFlaw{"bytes_behind", [](Legacy& l) { l.behind = "x"; }, ErrorCode::kCorrupt, "1 byte follows"},
        LegacyFlaw{"data_short", [](Legacy& l) { l.storages[1].data = "xy"; }, ErrorCode::kTruncated, "file ends"},
        LegacyFlaw{"storage_in_system",
                   [](Legacy& l) {
                     l.system = whole(dict({text("x"), id("ByteStorage", "7", 3)}));
                   },
                   ErrorCode::kCorrupt, "plain value"},
        LegacyFlaw{"sizes_disagree",
                   [](Legacy& l) {
                     l.object = list({id("ByteStorage", "7", 3), id("ByteStorage", "7", 4)});
                   },
                   ErrorCode::kCorrupt, "declared twice"},
        LegacyFlaw{"types_disagree",
                   [](Legacy& l) {
                     l.object = list({id("ByteStorage", "7", 4), id("ShortStorage", "7", 2)});
                   },
                   ErrorCode::kCorrupt, "declared twice"}),
    [](const auto& one) { return one.param.name; });

TEST(PtLegacy, EveryTruncationIsAnError) {
  const std::string file = good_legacy().file();
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_TRUE(error_of([&] { read_pt_index(bytes_of(file).first(length), "m.pt"); })) << length;
    EXPECT_TRUE(error_of([&] { open(source_of(file.substr(0, length))); })) << length;
  }
}

}  // namespace
}  // namespace penstock::format
