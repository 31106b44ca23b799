#include "format/pt/pickle/pickle_vm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "format/pt/pickle/pickled.h"
#include "support/errors.h"

namespace penstock::format::pickle {
namespace {

using namespace std::string_literals;
using namespace test::pickled;
using test::code_of;
using test::error_of;
using test::read_object;
using test::read_whole;
using testing::HasSubstr;
using Kind = Value::Kind;

struct Case {
  std::string name;
  std::string opcodes;  ///< of one object, STOP included
  std::string text;     ///< Value::to_string
};

std::string sized64(std::string_view body) {
  std::string out;
  test::put(out, std::uint64_t{body.size()});
  return out.append(body);
}

class EveryOpcode : public testing::TestWithParam<Case> {};

TEST_P(EveryOpcode, GivesItsValue) { EXPECT_EQ(read_whole(GetParam().opcodes).structure.to_string(), GetParam().text); }

const std::vector<Case> kCases = {
    {"NONE", "N.", "None"},
    {"NEWTRUE", "\x88.", "True"},
    {"NEWFALSE", "\x89.", "False"},
    {"INT", "I-17\n.", "-17"},
    {"INT_true", "I01\n.", "True"},
    {"INT_false", "I00\n.", "False"},
    {"INT_big", "I123456789012345678901234567890\n.", "123456789012345678901234567890"},
    {"LONG", "L42L\n.", "42"},
    {"LONG_without_suffix", "L-42\n.", "-42"},
    {"LONG_big", "L-00012345678901234567890L\n.", "-12345678901234567890"},
    {"BININT", "J\xfe\xff\xff\xff."s, "-2"},
    {"BININT1", "K\xff.", "255"},
    {"BININT2", "M\x01\x02.", "513"},
    {"LONG1", "\x8a\x02\x00\x80."s, "-32768"},
    {"LONG1_empty", "\x8a\x00."s, "0"},
    {"LONG1_eight", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", "9223372036854775807"},
    {"LONG1_nine", "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00."s, "9223372036854775808"},
    {"LONG1_small_in_nine", "\x8a\x09\x05\x00\x00\x00\x00\x00\x00\x00\x00."s, "5"},
    {"LONG4", "\x8b\x01\x00\x00\x00\x80."s, "-128"},
    {"FLOAT", "F-1.5e3\n.", "-1500.0"},
    {"FLOAT_plus", "F+1.5\n.", "1.5"},
    {"BINFLOAT", "G\x3f\xf8\x00\x00\x00\x00\x00\x00."s, "1.5"},
    {"STRING", "S'a\\n\\x41\\101\\'\\q'\n.", "'a\\nAA'\\q'"},
    {"STRING_double", "S\"it's\"\n.", "'it's'"},
    {"BINSTRING", "T\x02\x00\x00\x00hi."s, "'hi'"},
    {"SHORT_BINSTRING", "U\x02hi.", "'hi'"},
    {"BINSTRING_bytes", "U\x01\xff.", R"(b'\xff')"},
    {"UNICODE", "V\\u0041\\\\b\xe9\\U0001F600\n.", "'A\\\\b\u00e9\U0001F600'"},
    {"UNICODE_pair", "V\\ud83d\\ude00\n.", "'\U0001F600'"},
    {"BINUNICODE", "X\x03\x00\x00\x00\xe2\x82\xac."s, "'\u20ac'"},
    {"SHORT_BINUNICODE", "\x8c\x02hi.", "'hi'"},
    {"BINUNICODE8", "\x8d" + sized64("hi") + ".", "'hi'"},
    {"BINBYTES", "B\x02\x00\x00\x00hi."s, "b'hi'"},
    {"SHORT_BINBYTES", "C\x02hi.", "b'hi'"},
    {"BINBYTES8", "\x8e" + sized64("hi") + ".", "b'hi'"},
    {"EMPTY_LIST", "].", "[]"},
    {"EMPTY_TUPLE", ").", "()"},
    {"EMPTY_DICT", "}.", "{}"},
    {"LIST", "(K\x01K\x02l.", "[1, 2]"},
    {"APPEND",
     "]K\x01"
     "aK\x02"
     "a.",
     "[1, 2]"},
    {"APPENDS",
     "](K\x01K\x02"
     "e.",
     "[1, 2]"},
    {"APPENDS_nothing", "](e.", "[]"},
    {"TUPLE", "(K\x01K\x02K\x03K\x04t.", "(1, 2, 3, 4)"},
    {"TUPLE1", "K\x01\x85.", "(1,)"},
    {"TUPLE2", "K\x01K\x02\x86.", "(1, 2)"},
    {"TUPLE3", "K\x01K\x02K\x03\x87.", "(1, 2, 3)"},
    {"DICT",
     "(K\x01K\x02"
     "d.",
     "{1: 2}"},
    {"SETITEM", "}K\x01K\x02s.", "{1: 2}"},
    {"SETITEMS", "}(K\x01K\x02K\x03K\x04u.", "{1: 2, 3: 4}"},
    {"EMPTY_SET_ADDITEMS", "\x8f(K\x01K\x02\x90.", "{1, 2}"},
    {"PROTO_FRAME", "\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00N."s, "None"},
    {"POP",
     "NK\x01"
     "0.",
     "None"},
    {"POP_of_a_mark", "N(0.", "None"},
    {"POP_MARK",
     "N(K\x01K\x02"
     "1.",
     "None"},
    {"DUP",
     "K\x07"
     "2\x86.",
     "(7, 7)"},
    {"PUT_GET", "K\x07p12\n0g12\n.", "7"},
    {"BINPUT_BINGET",
     "K\x07q\x05"
     "0h\x05.",
     "7"},
    {"LONG_BINPUT_LONG_BINGET",
     "K\x07r\x00\x00\x00\x80"
     "0j\x00\x00\x00\x80."s,
     "7"},
    {"MEMOIZE", "K\x07\x94K\x08\x94\x86h\x00h\x01\x86\x86."s, "((7, 8), (7, 8))"},
};
INSTANTIATE_TEST_SUITE_P(Machine, EveryOpcode, testing::ValuesIn(kCases),
                         [](const auto& one) { return one.param.name; });

TEST(Machine, KindsThatHaveNoTextOfTheirOwn) {
  EXPECT_EQ(read_whole("(K\x01\x91.").structure.type_name(), "frozenset");
  const Value array = read_whole("\x96" + sized64("hi") + ".").structure;
  EXPECT_TRUE(array.is(Kind::kBytes));
  EXPECT_EQ(array.type_name(), "bytearray");
  EXPECT_TRUE(std::isnan(read_whole("Fnan\n.").structure.as_float()));
  const Value name = read_whole("\x8c\x01m\x8c\x01n\x93.").structure;
  EXPECT_TRUE(name.is(Kind::kGlobal));
  EXPECT_EQ(name.type_name(), "m.n");
}

TEST(Machine, LoneSurrogatesAreKeptAsTheirBytes) {
  const Value value = read_object(text("a\xed\xb2\x80z"));
  EXPECT_TRUE(value.is(Kind::kBytes));
  EXPECT_EQ(value.type_name(), "str");
  EXPECT_EQ(value.as_string(), "a\xed\xb2\x80z");
}

TEST(Machine, NoNameBecomesCode) {
  for (const std::string& attack : {
           call(global("os", "system"), {text("touch /tmp/owned")}),
           global("os", "system") + tuple({text("x")}) + "\x81",                                // NEWOBJ
           "(" + global("posix", "system") + text("x") + "o",                                   // OBJ
           "(" + text("x") + "ios\nsystem\n",                                                   // INST
           global("builtins", "eval") + tuple({text("1")}) + "}" + "\x92",                      // NEWOBJ_EX
           text("builtins") + text("exec") + "\x93" + tuple({text("1")}) + "R",                 // STACK_GLOBAL
           call(global("torch.jit", "unpickler"), {text("x")}) + dict({text("a"), "N"}) + "b",  // BUILD
       }) {
    const Value value = read_object(attack);
    EXPECT_TRUE(value.is(Kind::kObject));
    EXPECT_FALSE(test::index_of(attack).unknown_globals.empty());
  }
}

TEST(Machine, WhatAnUnknownObjectWouldGiveIsInertToo) {
  const std::string getter = call(global("builtins", "getattr"), {global("os", "path"), text("join")});
  const Value value = read_object(getter + tuple({text("a")}) + "R");
  ASSERT_TRUE(value.is(Kind::kObject));
  EXPECT_EQ(value.type_name(), "builtins.getattr");
  ASSERT_EQ(value.size(), 2U);
  EXPECT_TRUE(value[0].is(Kind::kObject));
  EXPECT_EQ(value[1].as_string(), "a");
}

TEST(Machine, SubclassesOfContainersKeepTheirItems) {
  const Value value = read_object(global("easydict", "EasyDict") + ")\x81(" + text("a") + "K\x01u(K\x07" + "e" +
                                  dict({text("s"), "K\x02"}) + "b");
  ASSERT_TRUE(value.is(Kind::kObject));
  ASSERT_EQ(value.size(), 2U);
  EXPECT_EQ(value[0]["a"].as_int(), 1);
  EXPECT_EQ(value[1][0].as_int(), 7);
  ASSERT_TRUE(value.state());
  EXPECT_EQ((*value.state())["s"].as_int(), 2);
}

struct Refusal {
  std::string name;
  std::string opcodes;
  ErrorCode code = ErrorCode::kCorrupt;
  std::string says;
  std::uint64_t offset = 0;  ///< of the opcode to blame
};

class EveryRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(EveryRefusal, NamesTheOpcodeAndItsPlace) {
  const Refusal& refusal = GetParam();
  const auto error = error_of([&] { read_whole(refusal.opcodes); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), refusal.code) << error->what();
  EXPECT_THAT(error->message(), HasSubstr(refusal.says));
  EXPECT_EQ(error->offset(), 1000 + refusal.offset) << error->what();
}

const std::vector<Refusal> kRefusals = {
    {"nothing", "", ErrorCode::kTruncated, "ends early", 0},
    {"no_stop", "N", ErrorCode::kTruncated, "ends early", 1},
    {"unknown_opcode", "N\xff.", ErrorCode::kCorrupt, "0xff", 1},
    {"EXT1", "\x82\x01.", ErrorCode::kUnsafe, "EXT1", 0},
    {"EXT2", "\x83\x01\x01.", ErrorCode::kUnsafe, "EXT2", 0},
    {"EXT4", "\x84\x01\x01\x01\x01.", ErrorCode::kUnsafe, "EXT4", 0},
    {"NEXT_BUFFER", "\x97.", ErrorCode::kUnsafe, "NEXT_BUFFER", 0},
    {"READONLY_BUFFER", "N\x98.", ErrorCode::kUnsafe, "READONLY_BUFFER", 1},
    {"protocol_6", "\x80\x06N.", ErrorCode::kUnsupported, "protocol 6", 0},
    {"empty_stack", ".", ErrorCode::kCorrupt, "STOP", 0},
    {"two_objects", "NN.", ErrorCode::kCorrupt, "2 objects", 2},
    {"open_mark", "N(0(N.", ErrorCode::kCorrupt, "1 mark", 5},
    {"bytes_behind", "N.N", ErrorCode::kCorrupt, "1 byte follows", 2},
    {"POP_underflow", "0N.", ErrorCode::kCorrupt, "POP", 0},
    {"DUP_underflow", "2.", ErrorCode::kCorrupt, "DUP", 0},
    {"no_mark", "Nt.", ErrorCode::kCorrupt, "TUPLE finds no mark", 1},
    {"POP_MARK_no_mark", "N1.", ErrorCode::kCorrupt, "POP_MARK", 1},
    {"TUPLE2_underflow", "N\x86.", ErrorCode::kCorrupt, "TUPLE2 finds 1", 1},
    {"TUPLE1_across_mark", "N(\x85.", ErrorCode::kCorrupt, "TUPLE1", 2},
    {"missing_memo", "h\x05.", ErrorCode::kCorrupt, "object 5", 0},
    {"missing_sparse_memo", "Nr\x07\x00\x00\x00j\x08\x00\x00\x00."s, ErrorCode::kCorrupt, "object 8", 6},
    {"PUT_of_nothing", "q\x00."s, ErrorCode::kCorrupt, "BINPUT", 0},
    {"PUT_negative", "Np-1\n.", ErrorCode::kCorrupt, "'-1'", 1},
    {"GET_no_number", "gx\n.", ErrorCode::kCorrupt, "'x'", 0},
    {"INT_no_number", "Ix\n.", ErrorCode::kCorrupt, "'x'", 0},
    {"LONG_no_number", "LL\n.", ErrorCode::kCorrupt, "LONG", 0},
    {"FLOAT_no_number", "F1.5x\n.", ErrorCode::kCorrupt, "'1.5x'", 0},
    {"FLOAT_beyond", "F1e999\n.", ErrorCode::kCorrupt, "'1e999'", 0},
    {"FLOAT_two_signs", "F+-1\n.", ErrorCode::kCorrupt, "'+-1'", 0},
    {"FLOAT_empty", "F\n.", ErrorCode::kCorrupt, "FLOAT", 0},
    {"STRING_unquoted", "Sabc\n.", ErrorCode::kCorrupt, "'abc'", 0},
    {"STRING_bad_escape", "S'\\xg0'\n.", ErrorCode::kCorrupt, "string literal", 0},
    {"UNICODE_bad_escape", "V\\u12\n.", ErrorCode::kCorrupt, "escaped", 0},
    {"BINUNICODE_no_utf8", "NX\x01\x00\x00\x00\xff."s, ErrorCode::kCorrupt, "not UTF-8", 1},
    {"BINUNICODE_overlong", "NX\x02\x00\x00\x00\xc0\x80."s, ErrorCode::kCorrupt, "not UTF-8", 1},
    {"BINUNICODE_too_long", "X\xff\xff\xff\x7f"s + "abc.", ErrorCode::kTruncated, "declares 2147483647", 0},
    {"BINUNICODE8_too_long", "\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", ErrorCode::kTruncated, "declares", 0},
    {"BINBYTES8_too_long", "\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", ErrorCode::kTruncated, "declares", 0},
    {"BYTEARRAY8_too_long", "\x96\xff\xff\xff\xff\xff\xff\xff\x7f.", ErrorCode::kTruncated, "declares", 0},
    {"FRAME_too_long", "\x95\x03\x00\x00\x00\x00\x00\x00\x00N."s, ErrorCode::kTruncated, "frame", 0},
    {"LONG1_too_long", "\x8a\x10"s + "ab.", ErrorCode::kTruncated, "16 bytes", 2},
    {"APPEND_to_None", "NNa.", ErrorCode::kCorrupt, "APPEND is applied to None", 2},
    {"APPENDS_to_dict", "}(Ne.", ErrorCode::kCorrupt, "APPENDS is applied to a dict", 3},
    {"APPENDS_below_mark", "(Ne.", ErrorCode::kCorrupt, "below its mark", 2},
    {"SETITEM_on_list", "]NNs.", ErrorCode::kCorrupt, "SETITEM is applied to a list", 3},
    {"SETITEM_on_tuple", ")NNs.", ErrorCode::kCorrupt, "SETITEM is applied to a tuple", 3},
    {"SETITEMS_on_text",
     "U\x01"
     "a(NNu.",
     ErrorCode::kCorrupt, "SETITEMS is applied to a str", 6},
    {"SETITEMS_odd", "}(N\x88Nu.", ErrorCode::kCorrupt, "without a value", 5},
    {"DICT_odd", "(Nd.", ErrorCode::kCorrupt, "without a value", 2},
    {"key_list", "}]Ns.", ErrorCode::kCorrupt, "cannot hash", 3},
    {"key_dict", "}}Ns.", ErrorCode::kCorrupt, "cannot hash", 3},
    {"key_set", "}\x8fNs.", ErrorCode::kCorrupt, "cannot hash", 3},
    {"key_tuple_of_list", "}]\x85\x85Ns.", ErrorCode::kCorrupt, "cannot hash", 5},
    {"ADDITEMS_to_list", "](N\x90.", ErrorCode::kCorrupt, "ADDITEMS", 3},
    {"ADDITEMS_unhashable", "\x8f(]\x90.", ErrorCode::kCorrupt, "cannot hash", 3},
    {"FROZENSET_unhashable", "(]\x91.", ErrorCode::kCorrupt, "cannot hash", 2},
    {"REDUCE_of_None", "N)R.", ErrorCode::kCorrupt, "REDUCE calls None", 2},
    {"REDUCE_of_text", "U\x01x)R.", ErrorCode::kCorrupt, "REDUCE calls a str", 4},
    {"REDUCE_without_tuple", "cm\nn\n]R.", ErrorCode::kCorrupt, "a tuple was expected", 6},
    {"NEWOBJ_EX_of_list", "])}K\x01Ns\x92.", ErrorCode::kCorrupt, "NEWOBJ_EX calls a list", 7},
    {"NEWOBJ_of_int", "K\x01)\x81.", ErrorCode::kCorrupt, "NEWOBJ calls an int", 3},
    {"NEWOBJ_EX_keywords", "cm\nn\n)]\x92.", ErrorCode::kCorrupt, "NEWOBJ_EX", 7},
    {"OBJ_empty", "(o.", ErrorCode::kCorrupt, "OBJ has no class", 1},
    {"INST_no_mark", "im\nn\n.", ErrorCode::kCorrupt, "INST", 0},
    {"STACK_GLOBAL_of_ints", "K\x01K\x02\x93.", ErrorCode::kCorrupt, "STACK_GLOBAL", 4},
    {"GLOBAL_not_text", "c\xff\nn\n.", ErrorCode::kCorrupt, "UTF-8", 0},
    {"GLOBAL_cut", "cm\nn", ErrorCode::kTruncated, "line", 3},
    {"BUILD_of_list", "]}b.", ErrorCode::kCorrupt, "BUILD", 2},
    {"BUILD_of_plain_dict", "}}b.", ErrorCode::kCorrupt, "BUILD", 2},
    {"BINPERSID_of_text", "U\x01xQ.", ErrorCode::kCorrupt, "persistent id", 3},
    {"PERSID", "Px\n.", ErrorCode::kCorrupt, "persistent id", 0},
};
INSTANTIATE_TEST_SUITE_P(Machine, EveryRefusal, testing::ValuesIn(kRefusals),
                         [](const auto& one) { return one.param.name; });

TEST(Machine, EveryOpcodeIsKnownOrRefused) {
  // 68 opcodes of Python 3.11's pickletools; the others are no opcodes at all.
  int known = 0;
  for (int code = 0; code < 256; ++code) {
    const auto error = error_of([&] { read_whole(std::string(1, static_cast<char>(code))); });
    ASSERT_TRUE(error);
    known += error->message().find("is not a pickle opcode") == std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(known, 68);
}

TEST(Machine, EveryTruncationIsAnError) {
  const std::string pickle =
      whole(dict({text("a"), list({integer(1), "N"}), text("b"), tuple({bytes("xyz"), "\x88"})}));
  for (std::size_t length = 0; length < pickle.size(); ++length) {
    EXPECT_TRUE(error_of([&] { read_whole(pickle.substr(0, length)); })) << length;
  }
}

TEST(Machine, LongIntegersAreRefused) {
  const std::string length("\x01\x04\x00\x00", 4);  // 1025
  EXPECT_EQ(code_of([&] { read_whole("\x8b" + length + std::string(1025, '\x7f') + "."); }), ErrorCode::kLimit);
  EXPECT_EQ(code_of([&] { read_whole("L" + std::string(5000, '9') + "L\n."); }), ErrorCode::kLimit);
  const std::string fits("\x00\x04\x00\x00", 4);
  EXPECT_TRUE(read_whole("\x8b" + fits + std::string(1024, '\x7f') + ".").structure.is(Kind::kBigInt));
}

TEST(Machine, BudgetsHold) {
  const auto run = [](const std::string& pickle, const Limits& limits) {
    Index index;
    test::MadeStorages storages(index);
    CellArena arena(limits.cells, limits.text_slack);
    World world(arena, index, storages);
    Machine machine(test::bytes_of(pickle), 0, arena, world, limits);
    machine.run();
  };
  const auto repeated = [](const std::string& part, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += part;
    return out;
  };
  EXPECT_NO_THROW(run("](" + repeated("]", 900) + "e.", {.cells = 1000}));
  EXPECT_EQ(code_of([&] { run("](" + repeated("]", 1100) + "e.", {.cells = 1000}); }), ErrorCode::kLimit);
  EXPECT_EQ(code_of([&] { run(repeated("N", 1100) + ".", {.stack = 1000}); }), ErrorCode::kLimit);
  EXPECT_EQ(code_of([&] { run(repeated("(", 1100) + ".", {.stack = 1000}); }), ErrorCode::kLimit);
  EXPECT_EQ(code_of([&] { run("N" + repeated("\x94", 1100) + ".", {.memo = 1000}); }), ErrorCode::kLimit);
  // A hundred bytes that become text again and again.
  const std::string encode =
      global("_codecs", "encode") + "q\x01" + text(std::string(100, 'a')) + "q\x02" + text("latin1") + "q\x03\x86R0";
  const std::string again = "h\x01h\x02h\x03\x86R0";
  EXPECT_EQ(code_of([&] { run(encode + repeated(again, 100) + "N.", {.text_slack = 5000}); }), ErrorCode::kLimit);
  // A big list that is copied again and again.
  const std::string copy = global("builtins", "tuple") + "q\x01](" + repeated("N", 500) + "eq\x02\x85R0";
  EXPECT_EQ(code_of([&] { run(copy + repeated("h\x01h\x02\x85R0", 10) + "N.", {.cells = 3000}); }), ErrorCode::kLimit);
}

TEST(Machine, BudgetsGrowWithThePickle) {
  // Half a million lists, in more bytes than two each; and as many integers, of which equal ones are one cell.
  std::string lists = "](";
  std::string integers = "](";
  for (int i = 0; i < 500'000; ++i) {
    lists += "]0]q\x01";
    integers += "M\x01\x02";
  }
  EXPECT_EQ(read_whole(lists + "e.").structure.size(), 500'000U);
  const Value many = read_whole(integers + "e.").structure;
  EXPECT_EQ(many[499'999].as_int(), 0x201);
  EXPECT_TRUE(many[400'000].same_node(many[499'999]));
  const Limits limits = Limits::of(9'000'000);
  EXPECT_LT(limits.cells, 5'000'000U);
}

TEST(Machine, MemoIndicesCostNothing) {
  // Four billion as an index must not reserve four billion places.
  EXPECT_EQ(read_whole("K\x07r\xff\xff\xff\xff"s + "0j\xff\xff\xff\xff.").structure.as_int(), 7);
  EXPECT_EQ(read_whole("K\x07p99999999999999\n0g99999999999999\n.").structure.as_int(), 7);
}

TEST(Memo, KeepsTheLastOfAnIndex) {
  Memo memo;
  CellArena arena(100, 100);
  Cell* const a = arena.add(Kind::kNone);
  Cell* const b = arena.add(Kind::kNone);
  memo.put(1, a);  // ahead of its turn
  memo.put(0, b);
  EXPECT_EQ(memo.get(1), a);
  EXPECT_EQ(memo.size(), 2U);
  memo.put(1, b);
  EXPECT_EQ(memo.get(1), b);
  EXPECT_EQ(memo.size(), 2U);
  memo.put(0, a);
  EXPECT_EQ(memo.get(0), a);
  EXPECT_EQ(memo.get(2), nullptr);
}

}  // namespace
}  // namespace penstock::format::pickle
