#include "format/numpy/npy_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "support/bytes.h"
#include "support/errors.h"

namespace penstock::format {
namespace {

using test::bytes_of;
using ::testing::HasSubstr;
using enum DType::Code;

/// A header of `text`, not padded.
std::string npy(std::string_view text, char major = 1) {
  std::string out = std::string("\x93NUMPY") + major + '\0';
  const auto length = static_cast<std::uint32_t>(text.size());
  out.append(reinterpret_cast<const char*>(&length), major == 1 ? 2 : 4);
  return out.append(text);
}

NpyHeader parse(std::string_view file) { return parse_npy_header(bytes_of(file), "x.npy"); }

std::string with_descr(std::string_view descr) {
  return npy("{'descr': " + std::string(descr) + ", 'fortran_order': False, 'shape': (2, 3), }");
}
std::string with_shape(std::string_view shape) {
  return npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(shape) + "}");
}

TEST(NpyHeader, ReadsEveryVersion) {
  for (const char major : {'\1', '\2', '\3'}) {
    const std::string text = "{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }     \n";
    const std::string file = npy(text, major);
    const NpyHeader header = parse(file + "payload");
    EXPECT_EQ(header.dtype, DType::float64);
    EXPECT_TRUE(header.byte_swapped);
    EXPECT_FALSE(header.fortran_order);
    EXPECT_EQ(header.shape, (Shape{2, 3}));
    EXPECT_EQ(header.strides, (Strides{3, 1}));
    EXPECT_EQ(header.size, file.size());
    EXPECT_EQ(header.payload, 48u);
    EXPECT_EQ(npy_header_size(bytes_of(file)), file.size());
    EXPECT_EQ(npy_header_size(bytes_of(file).first(kNpyPrefix)), file.size());
  }
}

TEST(NpyHeader, TakesKeysInAnyOrderAndPythonsFreedoms) {
  for (const auto* const text : {"{'shape': (2, 3), 'fortran_order': True, 'descr': '<f4'}",
                                 "  {\"descr\":\"<f4\",\n\"fortran_order\":True,\t\"shape\":(2,3,),}",
                                 "{u'descr': u'<f4', 'shape': (2L, 3L), "
                                 "'fortran_order': True}\f\r\n",
                                 R"({'d\x65scr': '<f\u0034', 'fortran_order': True, 'shape': ( 2 , 3 )})"}) {
    const NpyHeader header = parse(npy(text));
    EXPECT_EQ(header.dtype, DType::float32);
    EXPECT_TRUE(header.fortran_order);
    EXPECT_EQ(header.shape, (Shape{2, 3}));
    EXPECT_EQ(header.strides, (Strides{1, 2}));
  }
}

TEST(NpyHeader, ReadsShapes) {
  EXPECT_EQ(parse(with_shape("()")).shape, Shape());
  EXPECT_EQ(parse(with_shape("()")).payload, 4u);
  EXPECT_EQ(parse(with_shape("(5,)")).shape, Shape{5});
  EXPECT_EQ(parse(with_shape("(5L,)")).shape, Shape{5});
  EXPECT_EQ(parse(with_shape("(0, 4)")).payload, 0u);
  EXPECT_EQ(parse(with_shape("(0, 9223372036854775807)")).payload, 0u);
  EXPECT_EQ(parse(with_shape("(1,1,1,1,1,1,1,1,1,2)")).shape.rank(), 10u);
}

TEST(NpyHeader, RefusesShapes) {
  for (const auto* const shape : {"(-1,)", "(True,)", "(True, 2)", "[2, 3]", "5", "(5)", "(1.0,)", "(,)", "(5,,)", "(5",
                                  "((5,),)", "None", "(9223372036854775808,)"}) {
    EXPECT_EQ(test::code_of([&] { parse(with_shape(shape)); }), ErrorCode::kCorrupt) << shape;
  }
  // numpy lets this product wrap to 0.
  EXPECT_EQ(test::code_of([&] { parse(with_shape("(4294967296, 4294967296)")); }), ErrorCode::kLimit);
  EXPECT_EQ(test::code_of([&] { parse(with_shape("(0, 4294967296, 4294967296)")); }), ErrorCode::kLimit);
  std::string wide = "(";
  for (int i = 0; i < 65; ++i) wide += "1,";
  EXPECT_EQ(test::code_of([&] { parse(with_shape(wide + ")")); }), ErrorCode::kLimit);
  // 2^62 elements can be counted, their bytes cannot.
  const auto error =
      test::error_of([&] { parse(npy("{'descr': '<c16', 'fortran_order': False, 'shape': (4611686018427387904,)}")); });
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
}

struct Bad {
  std::string file;
  ErrorCode code;
  const char* message;
};

TEST(NpyHeader, RefusesWhatIsNotTheDict) {
  using enum ErrorCode;
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
  for (const Bad& bad : {
           Bad{"", kTruncated, "magic"},
           Bad{"\x93NUM", kTruncated, "magic"},
           Bad{"\x93NUMPX\1", kCorrupt, "magic"},
           Bad{"\x93NUMPY", kTruncated, "cut short"},
           Bad{npy(good, 0), kUnsupported, "version is 0.0"},
           Bad{npy(good, 4), kUnsupported, "version is 4.0"},
           Bad{std::string("\x93NUMPY\1\1\0\0\0\0", 12), kUnsupported, "version is 1.1"},
           Bad{std::string("\x93NUMPY\2\0\xFF\xFF\xFF\x7F", 12), kLimit, "claims 2147483647 bytes"},
           Bad{npy(good).substr(0, 40), kTruncated, "40 bytes of"},
           Bad{npy(""), kCorrupt, "its end where '{'"},
           Bad{npy("[]"), kCorrupt, "where '{'"},
           Bad{npy("{}"), kCorrupt, "lacks one of"},
           Bad{npy("{'descr': '<f4', 'fortran_order': False}"), kCorrupt, "lacks one of"},
           Bad{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}"), kCorrupt, "unknown key 'x'"},
           Bad{npy("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}"), kCorrupt, "twice"},
           Bad{npy("{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}"), kCorrupt, "where ':'"},
           Bad{npy("{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}"), kCorrupt, "where ','"},
           Bad{npy("{,'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"), kCorrupt, "a string must be"},
           Bad{npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}"), kCorrupt, "True or False"},
           Bad{npy("{'descr': 4, 'fortran_order': False, 'shape': (2,)}"), kCorrupt, "a string must be"},
           Bad{npy("{'descr': '''<f4''', 'fortran_order': False, 'shape': (2,)}"), kCorrupt, "three quotes"},
           Bad{npy("{'descr': None, 'fortran_order': False, 'shape': (2,)}"), kCorrupt, "a string must be"},
           Bad{npy("{'descr': '<x4', 'fortran_order': False, 'shape': (2,)}"), kUnsupported, "'<x4'"},
           Bad{npy(good + "x"), kCorrupt, "goes on with 'x'"},
           Bad{npy(good + " {}"), kCorrupt, "goes on with"},
           Bad{npy(good + std::string(1, '\0')), kCorrupt, "goes on with"},
           Bad{npy(good + "#"), kCorrupt, "goes on with"},
           Bad{npy(good + "\xFF", 3), kCorrupt, "not valid UTF-8"},
           Bad{npy("__import__('os').system('true')"), kCorrupt, "where '{'"},
           Bad{npy("{'descr': __import__('os'), 'fortran_order': False, 'shape': (2,)}"), kCorrupt, "a string"},
       }) {
    const auto error = test::error_of([&] { parse_npy_header(bytes_of(bad.file), "x.npy", "member", 1000); });
    ASSERT_TRUE(error) << bad.message;
    EXPECT_EQ(error->code(), bad.code) << error->what();
    EXPECT_THAT(error->message(), HasSubstr(bad.message));
    EXPECT_EQ(error->path(), "x.npy");
    EXPECT_EQ(error->tensor(), "member");
    ASSERT_TRUE(error->offset()) << error->what();
    EXPECT_GE(*error->offset(), 1000u);
    EXPECT_LE(*error->offset(), 1000u + bad.file.size());
  }
}

TEST(NpyHeader, SaysWhereItWentWrong) {
  const std::string text = "{'descr': '<f4', 'fortran_order': maybe, 'shape': ()}";
  const auto error = test::error_of([&] { parse(npy(text)); });
  EXPECT_EQ(error->offset(), 10 + text.find("maybe"));
}

TEST(NpyHeader, SizeIsUnknownForWhatItDoesNotAccept) {
  EXPECT_FALSE(npy_header_size(bytes_of("PK")));
  EXPECT_FALSE(npy_header_size(bytes_of("\x93NUMPY\1")));
  EXPECT_FALSE(npy_header_size(bytes_of(std::string_view("\x93NUMPY\2\0\1\0", 10))));
  EXPECT_FALSE(npy_header_size(bytes_of(std::string_view("\x93NUMPY\2\0\1\0\1\1", 12))));
}

struct Structure {
  const char* descr;
  const char* kept;  ///< as NumPy writes it; the same when null
  std::size_t itemsize;
};

TEST(NpyHeader, ReadsStructures) {
  for (const Structure& structure : {
           Structure{"[('a', '<f4')]", nullptr, 4},
           Structure{"[]", nullptr, 0},
           Structure{"[('a', '<f4'), ('b', '>i2')]", nullptr, 6},
           Structure{"[ ( u'a' , '=f4' , ) , ] ", "[('a', '<f4')]", 4},
           Structure{"[('a', '|u1'), ('', '|V7'), ('b', '<f8'), ('', '|V8')]", nullptr, 24},
           Structure{"[('', '<f4')]", nullptr, 4},
           Structure{"[(('the title', 'a'), '<f4')]", nullptr, 4},
           Structure{"[('a', '<f4', (2, 3))]", nullptr, 24},
           Structure{"[('a', '<f4', ())]", "[('a', '<f4')]", 4},
           Structure{"[('a', '<f4', 3)]", "[('a', '<f4', (3,))]", 12},
           Structure{"[('a', '<f4', (0,))]", nullptr, 0},
           Structure{"[('a', ('<f4', (2,)), (3,))]", nullptr, 24},
           Structure{"[('a', ('<f4', (2,)))]", "[('a', '<f4', (2,))]", 8},
           Structure{"[('a', (('<f4', ()), (2,)), 3)]", "[('a', ('<f4', (2,)), (3,))]", 24},
           Structure{"[('a', (('>f4', (2,)), (3,)), (4, 1))]", nullptr, 96},
           Structure{"[('a', ([('x', '|i1', (2,))], (2,)), (3,))]", nullptr, 12},
           Structure{"[('a', [('x', '<f4'), ('y', '<f4', (2,))], (2,)), ('t', '>M8[us]')]", nullptr, 32},
           Structure{"[('s', '|S3'), ('u', '>U2'), ('v', '|V5'), ('z', '|S0')]", nullptr, 16},
           Structure{"[('it\\'s', '<f4'), ('a\\\\b', '|b1')]", "[(\"it's\", '<f4'), ('a\\\\b', '|b1')]", 5},
           Structure{"[('l', '<f16'), ('h', '<f2')]", nullptr, 18},
           Structure{"[('\xE9', '<f4')]", "[('\xC3\xA9', '<f4')]", 4},
       }) {
    const NpyHeader header = parse(with_descr(structure.descr));
    EXPECT_EQ(header.dtype.code(), kStructured);
    EXPECT_EQ(header.dtype.numpy_descr(), structure.kept != nullptr ? structure.kept : structure.descr);
    EXPECT_EQ(header.dtype.itemsize(), structure.itemsize) << structure.descr;
    EXPECT_EQ(header.payload, structure.itemsize * 6);
    EXPECT_FALSE(header.byte_swapped);
    // What it keeps is what it reads.
    EXPECT_EQ(parse(npy("{'descr': " + header.dtype.numpy_descr() + ", 'fortran_order': False, 'shape': ()}", 3)).dtype,
              header.dtype);
  }
}

TEST(NpyHeader, RefusesStructures) {
  using enum ErrorCode;
  for (const auto& [descr, code] : {
           std::pair{"[('a',)]", kCorrupt},
           std::pair{"[('a')]", kCorrupt},
           std::pair{"['a', '<f4']", kCorrupt},
           std::pair{"[['a', '<f4']]", kCorrupt},
           std::pair{"[('a', '<f4'), ('a', '<f8')]", kCorrupt},
           std::pair{"[('', '<f4'), ('', '<f8')]", kCorrupt},
           std::pair{"[('a', '<f4', (-1,))]", kCorrupt},
           std::pair{"[('a', '<f4', (2,), 3)]", kCorrupt},
           std::pair{"[('a', '<f4', [2])]", kCorrupt},
           std::pair{"[('a', '<x4')]", kUnsupported},
           std::pair{"[('a', '<f8', (4294967296, 4294967296))]", kLimit},
           std::pair{"[('a', '<f8', (2305843009213693952,)), ('b', '<f8', (2305843009213693952,))]", kCorrupt},
           std::pair{"[('a', '<f8', (268435456,))]", kLimit},
           std::pair{"[('a', '<f4'", kCorrupt},
           std::pair{"('<f4',)", kCorrupt},
           std::pair{"('<f4', 3, 3)", kCorrupt},
           std::pair{"('<f4', [3])", kCorrupt},
           std::pair{"()", kCorrupt},
       }) {
    EXPECT_EQ(test::code_of([&, text = descr] { parse(with_descr(text)); }), code) << descr;
  }
}

TEST(NpyHeader, BoundsNesting) {
  const auto nested = [](int levels) {
    std::string descr;
    for (int i = 0; i < levels; ++i) descr += "[('a', ";
    descr += "'<f4'";
    for (int i = 0; i < levels; ++i) descr += ")]";
    return with_descr(descr);
  };
  EXPECT_EQ(parse(nested(30)).dtype.itemsize(), 4u);
  EXPECT_EQ(test::code_of([&] { parse(nested(40)); }), ErrorCode::kLimit);
  EXPECT_EQ(test::code_of([&] { parse(npy("{'descr': " + std::string(60'000, '[') + "}")); }), ErrorCode::kCorrupt);
  EXPECT_EQ(test::code_of([&] { parse(npy("{'descr': " + std::string(60'000, '(') + "}")); }), ErrorCode::kLimit);
}

TEST(NpyHeader, SubArraysFollowTheShape) {
  const NpyHeader c = parse(npy("{'descr': ('<f4', (5, 7)), 'fortran_order': False, 'shape': (2, 3)}"));
  EXPECT_EQ(c.shape, (Shape{2, 3, 5, 7}));
  EXPECT_EQ(c.strides, (Strides{105, 35, 7, 1}));
  EXPECT_EQ(c.payload, 840u);
  const NpyHeader fortran = parse(npy("{'descr': ('<f4', (5, 7)), 'fortran_order': True, 'shape': (2, 3)}"));
  EXPECT_EQ(fortran.shape, (Shape{2, 3, 5, 7}));
  EXPECT_EQ(fortran.strides, (Strides{35, 70, 7, 1}));
  EXPECT_EQ(parse(with_descr("('<f4', 4)")).shape, (Shape{2, 3, 4}));
  EXPECT_EQ(parse(npy("{'descr': (('>f4', (2,)), (3,)), 'fortran_order': True, 'shape': ()}")).strides,
            (Strides{2, 1}));
}

TEST(NpyHeader, SubArraysOfOneElementAreElements) {
  for (const auto* const descr : {"('<f4', 1)", "('<f4', (1,))", "('<f4', (1, 1))", "(('<f4', 1), (1,))"}) {
    EXPECT_EQ(parse(with_descr(descr)).shape, (Shape{2, 3})) << descr;
  }
  EXPECT_EQ(parse(with_descr("[('a', '<f4', 1)]")).dtype.numpy_descr(), "[('a', '<f4', (1,))]");
}

TEST(NpyHeader, MarksObjectsWhereverTheyAre) {
  for (const auto* const descr :
       {"'|O'", "[('a', '<f4'), ('b', '|O')]", "[('a', [('b', 'O', (2,))])]", "('|O', (2,))"}) {
    const NpyHeader header = parse(with_descr(descr));
    EXPECT_TRUE(header.has_objects) << descr;
    EXPECT_EQ(header.payload, 0u);
  }
}

TEST(NpyHeader, EveryTruncationIsRefused) {
  for (const char major : {'\1', '\2', '\3'}) {
    const std::string file = npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }  \n", major);
    for (std::size_t length = 0; length < file.size(); ++length) {
      EXPECT_EQ(test::code_of([&] { parse(file.substr(0, length)); }), ErrorCode::kTruncated) << length;
    }
  }
}

TEST(MakeNpyHeader, IsNumpysByteForByte) {
  EXPECT_EQ(make_npy_header(DType::float64, Shape{2, 3}, false),
            std::string("\x93NUMPY\x01\0v\0", 10) + "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }" +
                std::string(58, ' ') + "\n");
  EXPECT_EQ(make_npy_header(DType::boolean, Shape(), false).size(), 128u);
}

TEST(MakeNpyHeader, IsReadBack) {
  const DType structured = DType::with_descr(kStructured, 4, "[('a', '<f4')]");
  for (const DType& dtype : {DType(DType::float32), DType(DType::boolean), structured}) {
    for (const Shape& shape :
         {Shape(), Shape{0}, Shape{7}, Shape{2, 3}, Shape{std::numeric_limits<std::int64_t>::max() / 4}}) {
      for (const bool fortran : {false, true}) {
        const std::string file = make_npy_header(dtype, shape, fortran);
        EXPECT_EQ(file.size() % 64, 0u);
        EXPECT_EQ(file[6], 1);
        const NpyHeader header = parse(file);
        EXPECT_EQ(header.dtype, dtype);
        EXPECT_EQ(header.shape, shape);
        EXPECT_EQ(header.fortran_order, fortran);
        EXPECT_EQ(header.size, file.size());
      }
    }
  }
}

TEST(MakeNpyHeader, ChoosesTheVersionAsNumpyDoes) {
  std::string fields = "[";
  std::size_t itemsize = 0;
  for (; fields.size() < 70'000; itemsize += 4) fields += "('field_" + std::to_string(itemsize) + "', '<f4'), ";
  fields.resize(fields.size() - 2);
  fields += ']';
  const DType wide = DType::with_descr(kStructured, itemsize, fields);
  const std::string second = make_npy_header(wide, Shape{1}, false);
  EXPECT_EQ(second[6], 2);
  EXPECT_EQ(parse(second).dtype, wide);
  EXPECT_EQ(second.size() % 64, 0u);

  const DType latin1 = DType::with_descr(kStructured, 4, "[('caf\xC3\xA9', '<f4')]");
  const std::string first = make_npy_header(latin1, Shape{1}, false);
  EXPECT_EQ(first[6], 1);
  EXPECT_NE(first.find("caf\xE9'"), std::string::npos);
  EXPECT_EQ(parse(first).dtype, latin1);

  const DType greek = DType::with_descr(kStructured, 4, "[('\xCF\x80', '<f4')]");
  const std::string third = make_npy_header(greek, Shape{1}, false);
  EXPECT_EQ(third[6], 3);
  EXPECT_EQ(parse(third).dtype, greek);
}

}  // namespace
}  // namespace penstock::format
