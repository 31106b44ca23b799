#include "format/pt/pickle/structure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "format/pt/pickle/pickled.h"
#include "support/errors.h"

namespace penstock::format::pickle {
namespace {

using namespace std::string_literals;
using namespace test::pickled;
using test::code_of;
using test::error_of;
using test::index_of;
using test::read_object;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Value::Kind;

/// A tensor of one float.
std::string leaf() { return tensor(storage("FloatStorage", "0", 16), 0, {1}, {1}); }

std::vector<std::string> names_of(const std::string& object) {
  std::vector<std::string> out;
  for (const TensorEntry& entry : index_of(object).entries) out.push_back(entry.name);
  return out;
}

std::string repeated(const std::string& part, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += part;
  return out;
}

TEST(Structure, EntriesAreNamedByTheKeysThatLeadToThem) {
  EXPECT_THAT(names_of(leaf()), ElementsAre("tensor"));
  EXPECT_THAT(names_of(list({leaf(), "N", leaf()})), ElementsAre("0", "2"));
  EXPECT_THAT(names_of(dict({text("model"), dict({text("w"), leaf(), "K\x03", tuple({leaf()})}), "\x88", leaf(), "N",
                             leaf(), tuple({"K\x01", text("x")}), leaf()})),
              ElementsAre("model.w", "model.3.0", "True", "None", "(1, x)"));
}

TEST(Structure, StateAndItemsOfObjectsAreNamedLikeAttributes) {
  const std::string module = global("m", "Net") + ")\x81" + dict({text("weight"), leaf()}) + "b";
  EXPECT_THAT(names_of(dict({text("net"), module})), ElementsAre("net.weight"));
  const std::string with_items =
      global("m", "Box") + tuple({leaf()}) + "\x81(" + text("k") + leaf() + "u(" + leaf() + "e";
  EXPECT_THAT(names_of(with_items), ElementsAre("0", "k", "0#2"));
  const std::string slots = global("m", "S") + ")\x81" + tuple({"N", dict({text("a"), leaf()})}) + "b";
  EXPECT_THAT(names_of(slots), ElementsAre("state.1.a"));
}

TEST(Structure, OneTensorUnderTwoNamesIsFoundUnderBoth) {
  const Index index = index_of(dict({text("a"), leaf() + "q\x01", text("b"), "h\x01"}));
  ASSERT_EQ(index.entries.size(), 2U);
  EXPECT_EQ(index.entries[0].name, "a");
  EXPECT_EQ(index.entries[1].name, "b");
  EXPECT_EQ(index.entries[0].storage, index.entries[1].storage);
  EXPECT_TRUE(index.structure["a"].same_node(index.structure["b"]));
  EXPECT_EQ(index.structure["b"].entry_index(), 0U);
}

TEST(Structure, NamesThatClashAreToldApart) {
  EXPECT_THAT(names_of(dict({text("a.b"), leaf(), text("a"), dict({text("b"), leaf(), text("b#2"), leaf()})})),
              ElementsAre("a.b", "a.b#3", "a.b#2"));
}

TEST(Structure, BareStoragesAreOneDimensionalTensors) {
  const Index index =
      index_of(dict({text("s"), storage("HalfStorage", "1", 8), text("u"), storage("UntypedStorage", "1", 16)}));
  ASSERT_EQ(index.entries.size(), 2U);
  EXPECT_EQ(index.entries[0].dtype, DType::float16);
  EXPECT_EQ(index.entries[0].shape, Shape{8});
  EXPECT_EQ(index.entries[1].dtype, DType::uint8);
  EXPECT_EQ(index.entries[1].shape, Shape{16});
  EXPECT_EQ(index.storages.size(), 1U);
}

TEST(Structure, SharingAndCyclesAreKept) {
  const Value value = read_object(
      "]q\x01h\x01"
      "a}q\x02(" +
      text("self") + "h\x02" + text("list") + "h\x01ua");
  EXPECT_TRUE(value[0].same_node(value));
  EXPECT_TRUE(value[1]["self"].same_node(value[1]));
  EXPECT_TRUE(value[1]["list"].same_node(value));
}

TEST(Structure, OrderedDictsKeepTheirMetadata) {
  const Value value = read_object(ordered_dict() + "(" + text("b") + "K\x01" + text("a") + "K\x02u" +
                                  dict({text("_metadata"), dict({text(""), dict({text("version"), "K\x01"})})}) + "b");
  EXPECT_EQ(value.type_name(), "collections.OrderedDict");
  EXPECT_EQ(value.item(0).first.as_string(), "b");
  ASSERT_TRUE(value.state());
  EXPECT_EQ((*value.state())["_metadata"][""]["version"].as_int(), 1);
}

TEST(Structure, AKeyTwiceIsRefused) {
  for (const std::string& object :
       {dict({text("a"), "N", text("a"), "N"}), dict({"K\x05", "N", "J\x05\x00\x00\x00"s, "N"}),
        dict({"\x88", "N", "\x88", "N"}), dict({"N", "N", "N", "N"}), dict({bytes("x"), "N", bytes("x"), "N"}),
        dict({"F1.5\n", "N", "Fnan\n", "N", "F1.5\n", "N"}), dict({"F0.0\n", "N", "F-0.0\n", "N"}),
        dict({tuple({text("a"), "K\x05"}), "N", tuple({text("a"), "J\x05\x00\x00\x00"s}), "N"}),
        dict({tuple({}), "N", "N", "N", tuple({}), "N"})}) {
    EXPECT_THAT(error_of([&] { read_object(object); })->message(), HasSubstr("twice"));
  }
  EXPECT_EQ(read_object(dict({text("1"), "N", "K\x01", "N", bytes("1"), "N"})).size(), 3U);
  EXPECT_EQ(read_object(dict({"Fnan\n", "N", "F2\n", "N", "Fnan\n", "N"})).size(), 3U);
  EXPECT_EQ(read_object(dict({tuple({"K\x01", "K\x02"}), "N", tuple({"K\x01", "K\x03"}), "N"})).size(), 2U);
}

/// A byte string of Python 2.
std::string byte_string(const std::string& content) {
  return "U" + std::string(1, static_cast<char>(content.size())) + content;
}

Value decoded(const std::string& object, const Decode& decode) {
  const std::string pickle = whole(object);
  Index index;
  test::MadeStorages storages(index);
  read_pickle(test::bytes_of(pickle), 0, index, storages, {.decode = decode});
  return index.structure;
}

TEST(Structure, ByteStringsBecomeWhatTheCallerMakesOfThem) {
  const Decode bracketed = [](std::string_view content) {
    return content.empty() ? std::nullopt : std::optional("<" + std::to_string(content.size()) + ">");
  };
  const Value value = decoded(list({byte_string("\xe9"), byte_string(""), text("x"), bytes("y")}), bracketed);
  EXPECT_EQ(value[0].as_string(), "<1>");
  EXPECT_TRUE(value[1].is(Kind::kBytes));
  EXPECT_EQ(value[2].as_string(), "x");
  EXPECT_TRUE(value[3].is(Kind::kBytes));
  EXPECT_THROW(decoded(byte_string("a"), [](auto) -> std::optional<std::string> { throw 1; }), int);
}

TEST(Structure, KeysAreComparedAsWhatTheyBecome) {
  const std::string object = dict({byte_string("a"), "N", text("a"), "N"});
  EXPECT_EQ(decoded(object, [](auto) { return std::optional<std::string>(); }).size(), 2U);
  EXPECT_EQ(code_of([&] { decoded(object, [](auto text) { return std::optional<std::string>(text); }); }),
            ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] { read_object(object); }), ErrorCode::kCorrupt);
}

TEST(Structure, DeepNestingIsRefusedWithoutUsingTheStack) {
  constexpr std::size_t kVeryDeep = 1'000'000;
  constexpr std::size_t kDeep = 100'000;
  const std::string lists = repeated("]", kVeryDeep) + repeated("a", kVeryDeep - 1);
  const std::string tuples = "N" + repeated("\x85", kDeep);
  const std::string dicts = repeated("}N", kDeep) + "N" + repeated("s", kDeep);
  const std::string objects = "cm\nn\nq\x01" + repeated("h\x01", kDeep - 1) + "N" + repeated("\x85R", kDeep);
  const std::string states = "cm\nn\n)\x81q\x01" + repeated("h\x01)\x81", kDeep) + repeated("b", kDeep);
  for (const std::string& object : {lists, tuples, dicts, objects, states}) {
    EXPECT_EQ(code_of([&] { read_object(object); }), ErrorCode::kLimit);
  }
  EXPECT_TRUE(read_object(repeated("]", kMaxDepth) + repeated("a", kMaxDepth - 1)).is(Kind::kList));
  EXPECT_EQ(code_of([&] { read_object(repeated("]", kMaxDepth + 2) + repeated("a", kMaxDepth + 1)); }),
            ErrorCode::kLimit);
}

TEST(Structure, DepthCountsTheLongestWayHoweverNodesAreFound) {
  // Tuples each holding the one before, and a list of them all from the innermost on: walked in that order none is
  // deep.
  std::string pickle = "](N\x85\x94";
  for (std::uint32_t i = 0; i < 3000; ++i) {
    pickle += "j";
    test::put(pickle, i);
    pickle += "\x85\x94";
  }
  EXPECT_EQ(code_of([&] { read_object(pickle + "e"); }), ErrorCode::kLimit);
}

TEST(Structure, ABillionLaughsStaySmall) {
  // Thirty tuples, each holding the one before ten times: 10^30 ways to the first.
  std::string pickle = "N\x85q\x00"s;
  for (int i = 1; i <= 30; ++i) {
    pickle += "0(" + repeated("h"s + static_cast<char>(i - 1), 10) + "tq" + static_cast<char>(i);
  }
  const Value value = test::read_whole(pickle + ".").structure;
  EXPECT_EQ(value.size(), 10U);
  EXPECT_TRUE(value[0].same_node(value[9]));
  // As the key of a dict every tuple is looked at once.
  EXPECT_EQ(test::read_whole("}" + pickle + "Ns.").structure.size(), 1U);
  // Hashing goes on being cheap when such keys come again and again.
  std::string keys = "}(" + pickle + "N";
  for (int i = 0; i < 20000; ++i) keys += "h\x1e" + integer(i) + "\x86N";
  EXPECT_EQ(test::read_whole(keys + "u.").structure.size(), 20001U);
}

TEST(Structure, NamesThatMultiplyAreCut) {
  // A key of a megabyte on the way to each of very many tensors.
  const std::string pickle =
      "}" + text(std::string(1 << 20, 'k')) + "](" + leaf() + "q\x01" + repeated("h\x01", 2000) + "es";
  const Index index = index_of(pickle);
  ASSERT_EQ(index.entries.size(), 2001U);
  std::size_t bytes = 0;
  std::set<std::string> names;
  for (const TensorEntry& entry : index.entries) {
    bytes += entry.name.size();
    names.insert(entry.name);
  }
  EXPECT_LT(bytes, std::size_t{64} << 20);
  EXPECT_EQ(names.size(), index.entries.size());
  EXPECT_TRUE(index.entries.back().name.ends_with("kkk.2000")) << index.entries.back().name;
}

TEST(Structure, UnknownNamesAreListedOnceAndSorted) {
  const Index index = index_of(list({call(global("z.mod", "B"), {}), global("a", "f"), call(global("z.mod", "B"), {}),
                                     ordered_dict(), global("torch", "float32"), global("torch", "FloatStorage")}));
  EXPECT_THAT(index.unknown_globals, ElementsAre("a.f", "z.mod.B"));
}

}  // namespace
}  // namespace penstock::format::pickle
