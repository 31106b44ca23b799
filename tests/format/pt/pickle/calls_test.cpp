// Python's own types and NumPy's.

#include "format/pt/pickle/calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "format/pt/pickle/pickled.h"
#include "support/errors.h"

namespace penstock::format::pickle {
namespace {

using namespace std::string_literals;
using namespace test::pickled;
using test::code_of;
using test::index_of;
using test::read_object;
using Kind = Value::Kind;

TEST(PythonCalls, Dicts) {
  const std::string pairs = list({list({text("b"), "K\x01"}), tuple({text("a"), "K\x02"})});
  const Value ordered = read_object(call(global("collections", "OrderedDict"), {pairs}));
  EXPECT_EQ(ordered.type_name(), "collections.OrderedDict");
  EXPECT_EQ(ordered.item(0).first.as_string(), "b");
  EXPECT_EQ(ordered["a"].as_int(), 2);
  const Value counter = read_object(call(global("collections", "Counter"), {dict({text("x"), "K\x03"})}));
  EXPECT_EQ(counter.type_name(), "collections.Counter");
  EXPECT_EQ(counter["x"].as_int(), 3);
  const Value fallback =
      read_object(call(global("collections", "defaultdict"), {global("builtins", "list")}) + text("k") + "K\x05s");
  EXPECT_EQ(fallback.type_name(), "collections.defaultdict");
  EXPECT_EQ(fallback["k"].as_int(), 5);
  EXPECT_EQ(fallback.state()->type_name(), "builtins.list");
  EXPECT_TRUE(
      index_of(call(global("collections", "defaultdict"), {global("__builtin__", "int")})).unknown_globals.empty());
}

TEST(PythonCalls, SetsListsTuples) {
  EXPECT_TRUE(read_object(call(global("__builtin__", "set"), {list({"K\x01", "K\x02"})})).is(Kind::kSet));
  EXPECT_EQ(read_object(call(global("builtins", "frozenset"), {list({"K\x01"})})).type_name(), "frozenset");
  EXPECT_EQ(read_object(call(global("builtins", "tuple"), {list({"K\x01"})})).to_string(), "(1,)");
  EXPECT_EQ(read_object(call(global("builtins", "list"), {})).to_string(), "[]");
  EXPECT_EQ(code_of([&] { read_object(call(global("builtins", "set"), {list({"]"})})); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] { read_object(call(global("builtins", "set"), {"K\x01"})); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] { read_object(call(global("collections", "OrderedDict"), {list({"K\x01"})})); }),
            ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] {
              read_object(call(global("collections", "OrderedDict"), {list({tuple({"]", "N"})})}));
            }),
            ErrorCode::kCorrupt);
}

TEST(PythonCalls, NumbersAndBytes) {
  EXPECT_EQ(read_object(call(global("builtins", "complex"), {"F1.5\n", "K\x02"})).as_complex(),
            std::complex<double>(1.5, 2));
  EXPECT_EQ(code_of([&] { read_object(call(global("builtins", "complex"), {text("1")})); }), ErrorCode::kCorrupt);
  const Value bytes = read_object(call(global("_codecs", "encode"), {text("a\u00ff"), text("latin1")}));
  EXPECT_TRUE(bytes.is(Kind::kBytes));
  EXPECT_EQ(bytes.as_string(), "a\xff");
  EXPECT_EQ(read_object(call(global("builtins", "bytes"), {})).as_string(), "");
  EXPECT_EQ(code_of([&] {
              read_object(call(global("_codecs", "encode"), {text("\u0100"), text("latin1")}));
            }),
            ErrorCode::kCorrupt);
  // Any other codec would be code.
  EXPECT_TRUE(read_object(call(global("_codecs", "encode"), {text("x"), text("rot13")})).is(Kind::kObject));
  for (const std::string& array : {call(global("builtins", "bytearray"), {text("hi"), text("latin-1")}),
                                   call(global("builtins", "bytearray"), {test::pickled::bytes("hi")})}) {
    EXPECT_EQ(read_object(array).type_name(), "bytearray");
    EXPECT_EQ(read_object(array).as_string(), "hi");
  }
}

TEST(PythonCalls, ObjectsOfOldProtocols) {
  const std::string plain =
      call(global("copy_reg", "_reconstructor"), {global("m", "C"), global("__builtin__", "object"), "N"});
  const Value object = read_object(plain + dict({text("x"), "K\x01"}) + "b");
  EXPECT_EQ(object.type_name(), "m.C");
  EXPECT_EQ(object.size(), 0U);
  EXPECT_EQ((*object.state())["x"].as_int(), 1);
  const Value list = read_object(call(global("copyreg", "_reconstructor"),
                                      {global("m", "L"), global("builtins", "list"), test::pickled::list({"K\x01"})}));
  EXPECT_EQ(list.type_name(), "m.L");
  EXPECT_EQ(list[0][0].as_int(), 1);
}

TEST(Names, Canonical) {
  CellArena arena(0, 1000);
  const auto name = [&arena](std::string_view module, std::string_view of) {
    return canonical_name(module, of, arena);
  };
  EXPECT_EQ(name("__builtin__", "unicode"), "builtins.str");
  EXPECT_EQ(name("__builtin__", "set"), "builtins.set");
  EXPECT_EQ(name("copy_reg", "_reconstructor"), "copyreg._reconstructor");
  EXPECT_EQ(name("torch.tensor", "_rebuild_from_type_v2"), "torch._tensor._rebuild_from_type_v2");
  EXPECT_EQ(name("numpy._core.multiarray", "scalar"), "numpy.core.multiarray.scalar");
  EXPECT_EQ(name("numpy._corex", "scalar"), "numpy._corex.scalar");
}

// --- NumPy ---

std::string numpy_dtype(const std::string& kind, const std::string& order = "<") {
  return call(global("numpy", "dtype"), {text(kind), "\x89", "\x88"}) +
         tuple({"K\x03", text(order), "N", "N", "N", integer(-1), integer(-1), "K\x00"s}) + "b";
}
std::string scalar(const std::string& dtype, const std::string& raw) {
  return call(global("numpy._core.multiarray", "scalar"), {dtype, bytes(raw)});
}
std::string array(const std::string& dtype, const std::vector<std::int64_t>& shape, const std::string& data,
                  bool fortran = false, const std::string& type = "ndarray") {
  return call(global("numpy.core.multiarray", "_reconstruct"), {global("numpy", type), integers({0}), bytes("b")}) +
         tuple({"K\x01", integers(shape), dtype, fortran ? "\x88" : "\x89", data}) + "b";
}
template <class T>
std::string raw(T value, bool swapped = false) {
  std::string out(reinterpret_cast<const char*>(&value), sizeof value);
  return swapped ? std::string(out.rbegin(), out.rend()) : out;
}

TEST(NumpyCalls, ScalarsBecomePlainValues) {
  EXPECT_EQ(read_object(scalar(numpy_dtype("b1", "|"), "\x01")).as_bool(), true);
  EXPECT_EQ(read_object(scalar(numpy_dtype("i1", "|"), "\xff")).as_int(), -1);
  EXPECT_EQ(read_object(scalar(numpy_dtype("i1", "|"), "\xff")).type_name(), "numpy.int8");
  EXPECT_EQ(read_object(scalar(numpy_dtype("u1", "|"), "\xff")).as_int(), 255);
  for (const bool swapped : {false, true}) {
    const auto type = [swapped](const char* kind) { return numpy_dtype(kind, swapped ? ">" : "<"); };
    EXPECT_EQ(read_object(scalar(type("i2"), raw<std::int16_t>(-300, swapped))).as_int(), -300);
    EXPECT_EQ(read_object(scalar(type("u4"), raw<std::uint32_t>(4000000000U, swapped))).as_int(), 4000000000);
    EXPECT_EQ(read_object(scalar(type("i8"), raw<std::int64_t>(-5, swapped))).as_int(), -5);
    EXPECT_EQ(read_object(scalar(type("u8"), raw<std::uint64_t>(~0ULL, swapped))).as_string(), "18446744073709551615");
    EXPECT_EQ(read_object(scalar(type("f4"), raw(1.5F, swapped))).as_float(), 1.5);
    EXPECT_EQ(read_object(scalar(type("f8"), raw(-2.25, swapped))).as_float(), -2.25);
    EXPECT_EQ(read_object(scalar(type("f2"), raw<std::uint16_t>(0xC100, swapped))).as_float(), -2.5);
    EXPECT_EQ(read_object(scalar(type("c16"), raw(1.0, swapped) + raw(-2.0, swapped))).as_complex(),
              std::complex<double>(1, -2));
  }
  EXPECT_EQ(read_object(scalar(numpy_dtype("S4", "|"), "ab\0\0"s)).as_string(), "ab");
  EXPECT_TRUE(read_object(scalar(numpy_dtype("O8", "|"), "x")).is(Kind::kObject));
  EXPECT_EQ(code_of([&] { read_object(scalar(numpy_dtype("f8"), "1234567")); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([&] {
              read_object(call(global("numpy.core.multiarray", "scalar"), {numpy_dtype("f8"), "N"}));
            }),
            ErrorCode::kCorrupt);
}

TEST(NumpyCalls, HalfPrecisionScalars) {
  const auto half = [](std::uint16_t bits) { return read_object(scalar(numpy_dtype("f2"), raw(bits))).as_float(); };
  EXPECT_EQ(half(0x0001), 5.9604644775390625e-08);
  EXPECT_EQ(half(0x3C00), 1.0);
  EXPECT_EQ(half(0x7BFF), 65504.0);
  EXPECT_EQ(half(0xFC00), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(half(0x7E00)));
}

TEST(NumpyCalls, ArraysBecomeEntriesWithTheirBytes) {
  const std::string data = raw<std::int32_t>(1) + raw<std::int32_t>(2) + raw<std::int32_t>(3) + raw<std::int32_t>(4) +
                           raw<std::int32_t>(5) + raw<std::int32_t>(6);
  for (const bool fortran : {false, true}) {
    const Index index = index_of(dict({text("x"), array(numpy_dtype("i4"), {2, 3}, bytes(data), fortran)}));
    ASSERT_EQ(index.entries.size(), 1U);
    const TensorEntry& entry = index.entries[0];
    EXPECT_EQ(entry.name, "x");
    EXPECT_EQ(entry.dtype, DType::int32);
    EXPECT_EQ(entry.strides, fortran ? (Strides{1, 2}) : (Strides{3, 1}));
    const StorageEntry& storage = index.storages[entry.storage];
    ASSERT_TRUE(storage.resident);
    EXPECT_EQ(storage.nbytes, 24U);
    EXPECT_EQ(std::memcmp(storage.resident.data(), data.data(), 24), 0);
  }
}

TEST(NumpyCalls, ArraysOfEveryProtocol) {
  // Protocol 2 writes bytes as text; Python 2 as a string, which is UTF-8 by chance; protocol 5 has a function of its
  // own.
  const std::string latin = call(global("_codecs", "encode"), {text("\u00ff\u0001"), text("latin1")});
  for (const std::string& data : {latin, "U\x02\xff\x01"s, "U\x02"s + "AB", bytes("xy")}) {
    EXPECT_EQ(index_of(array(numpy_dtype("u1", "|"), {2}, data)).entries.at(0).shape, Shape{2});
  }
  for (const char* order : {"C", "F"}) {
    const Index index = index_of(call(global("numpy._core.numeric", "_frombuffer"),
                                      {bytes("abcdef"), numpy_dtype("u1", "|"), integers({2, 3}), text(order)}));
    EXPECT_EQ(index.entries.at(0).strides, order == "C"s ? (Strides{3, 1}) : (Strides{1, 2}));
  }
  EXPECT_EQ(index_of(array(numpy_dtype("u1", "|"), {2}, bytes("xy"), false, "memmap")).entries.size(), 1U);
  EXPECT_EQ(index_of(array(numpy_dtype("u1", "|"), {2}, bytes("xy"))).structure.type_name(), "numpy.ndarray");
}

TEST(NumpyCalls, ArraysHaveTheirOwnByteOrder) {
  const Index index = test::read_whole(
      whole(list({array(numpy_dtype("i2", ">"), {1}, bytes("ab")), array(numpy_dtype("i2", "<"), {1}, bytes("ab"))})),
      true);
  EXPECT_TRUE(index.entries.at(0).encoding.swapped);
  EXPECT_FALSE(index.entries.at(1).encoding.swapped);
}

TEST(NumpyCalls, TextAndDates) {
  const Index index = index_of(list(
      {array(numpy_dtype("U2"), {1}, bytes("a\0\0\0b\0\0\0"s)), array(numpy_dtype("S3", "|"), {1}, bytes("abc"))}));
  EXPECT_EQ(index.entries.at(0).dtype, DType::with_descr(DType::Code::kText, 8, "<U2"));
  EXPECT_EQ(index.entries.at(1).dtype, DType::with_descr(DType::Code::kBytes, 3, "|S3"));
  const auto dates = [](const char* unit) {
    const std::string dtype = call(global("numpy", "dtype"), {text("M8"), "\x89", "\x88"}) +
                              tuple({"K\x04", text("<"), "N", "N", "N", integer(-1), integer(-1), "K\x00"s,
                                     tuple({dict({}), tuple({bytes(unit), "K\x19", "K\x01", "K\x01"})})}) +
                              "b";
    return index_of(array(dtype, {1}, bytes("12345678")));
  };
  EXPECT_EQ(dates("ns").entries.at(0).dtype.name(), "datetime64[25ns]");
  EXPECT_EQ(dates("generic").entries.at(0).dtype.name(), "datetime64");
  for (const char* unit : {"foo", "\x1b[2J", ""}) {
    EXPECT_TRUE(dates(unit).structure.is(Kind::kObject)) << "NumPy has no such unit";
  }
}

TEST(NumpyCalls, ArraysOfObjectsStayInert) {
  const Index index =
      index_of(dict({text("o"), array(numpy_dtype("O8", "|"), {1}, list({call(global("os", "system"), {text("x")})})),
                     text("t"), tensor(storage("FloatStorage", "0", 16), 0, {1}, {1})}));
  EXPECT_TRUE(index.structure["o"].is(Kind::kObject));
  EXPECT_EQ(index.structure["o"].type_name(), "numpy.ndarray");
  EXPECT_EQ(index.entries.size(), 1U);
  EXPECT_THAT(index.unknown_globals, testing::ElementsAre("os.system"));
}

TEST(NumpyCalls, LiesAreRefused) {
  for (const std::string& object : {
           array(numpy_dtype("i4"), {2}, bytes("1234567")),
           array(numpy_dtype("i4"), {-1}, bytes("")),
           array(numpy_dtype("i4"), {std::int64_t{1} << 62}, bytes("")),
           array(numpy_dtype("u1", "|"), {2}, "N"),
           call(global("numpy.core.multiarray", "_reconstruct"), {text("x"), integers({0}), bytes("b")}),
           call(global("numpy.core.multiarray", "_reconstruct"), {}),
           call(global("numpy", "dtype"), {}),
           call(global("numpy.core.numeric", "_frombuffer"),
                {bytes("a"), numpy_dtype("u1", "|"), text("x"), text("C")}),
       }) {
    EXPECT_EQ(code_of([&] { read_object(object); }), ErrorCode::kCorrupt);
  }
}

TEST(NumpyCalls, ArraysOfOneBytesObjectShareIt) {
  std::string object = "](" + bytes(std::string(1000, 'x')) + "q\x01";
  for (int i = 0; i < 50; ++i) object += array(numpy_dtype("u1", "|"), {1000}, "h\x01");
  const Index index = index_of(object + "e");
  EXPECT_EQ(index.entries.size(), 50U);
  EXPECT_EQ(index.storages.size(), 1U);
}

}  // namespace
}  // namespace penstock::format::pickle
