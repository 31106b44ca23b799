#include "format/text/python_literal.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>

#include "support/errors.h"

namespace penstock::format {
namespace {

using Encoding = LiteralScanner::Encoding;
using namespace std::string_view_literals;

std::string string_of(std::string_view text, Encoding encoding = Encoding::kUtf8) {
  LiteralScanner scan(text, encoding, 0);
  std::string out(scan.string());
  scan.expect_end();
  return out;
}

TEST(LiteralScanner, ReadsStrings) {
  EXPECT_EQ(string_of("'<f4'"), "<f4");
  EXPECT_EQ(string_of("  \"it's\" \n"), "it's");
  EXPECT_EQ(string_of("u'x'"), "x");
  EXPECT_EQ(string_of("''"), "");
  EXPECT_EQ(string_of("'\xC3\xA9'"), "\xC3\xA9");
  EXPECT_EQ(string_of("'\xE9'", Encoding::kLatin1), "\xC3\xA9");
}

TEST(LiteralScanner, DecodesEscapesAsPythonDoes) {
  EXPECT_EQ(string_of(R"('\\\'\"')"), "\\'\"");
  EXPECT_EQ(string_of(R"('a\n\t\r\a\b\f\v')"), "a\n\t\r\a\b\f\v");
  EXPECT_EQ(string_of(R"('\x41\101\u00e9\U0001F600')"), "AA\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(string_of(R"('\0')"), "\0"sv);
  EXPECT_EQ(string_of(R"('\18\q')"),
            "\x01"
            "8\\q");
  EXPECT_EQ(string_of("'a\\\nb'"), "ab");
  EXPECT_EQ(string_of(R"('\xe9')", Encoding::kLatin1), "\xC3\xA9");
}

TEST(LiteralScanner, RefusesOtherStrings) {
  for (const auto text : {"<f4"sv, "'<f4"sv, "'a\nb'"sv, "b'a'"sv, "r'a'"sv, "u"sv, "'\\'"sv, "'\\x4'"sv, "'\\ud800'"sv,
                          "'\\U00110000'"sv, "'\\N{BULLET}'"sv, "'a' 'b'"sv, "'''a'''"sv, ""sv}) {
    EXPECT_EQ(test::code_of([&] { string_of(text); }), ErrorCode::kCorrupt) << text;
  }
}

std::int64_t size_of(std::string_view text) {
  LiteralScanner scan(text, Encoding::kLatin1, 0);
  const std::int64_t out = scan.size();
  scan.expect_end();
  return out;
}

TEST(LiteralScanner, ReadsSizes) {
  EXPECT_EQ(size_of("0"), 0);
  EXPECT_EQ(size_of(" 42 "), 42);
  EXPECT_EQ(size_of("3L"), 3);
  EXPECT_EQ(size_of("00"), 0);
  EXPECT_EQ(size_of("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
}

TEST(LiteralScanner, ReadsNumpysScalars) {
  EXPECT_EQ(size_of("np.int64(3)"), 3);
  EXPECT_EQ(size_of(" numpy.uint32( 30 ) "), 30);
  EXPECT_EQ(size_of("int64(0)"), 0);
  EXPECT_EQ(size_of("np.intp(7L)"), 7);
  EXPECT_EQ(string_of("np.str_('<f4')"), "<f4");
  for (const auto text :
       {"np.int64(3"sv, "np.int64()"sv, "np.int64(-3)"sv, "np.int64(3, 4)"sv, "np.float64(3)"sv, "os.system(3)"sv,
        "np.int64(np.int64(3))"sv, "np.int64 (3)"sv, "np.np.int64(3)"sv, "np.int64(3)L"sv}) {
    EXPECT_EQ(test::code_of([&] { size_of(text); }), ErrorCode::kCorrupt) << text;
  }
}

TEST(LiteralScanner, TellsPython2) {
  LiteralScanner old("10L", Encoding::kLatin1, 0);
  EXPECT_FALSE(old.is_python2());
  old.size();
  EXPECT_TRUE(old.is_python2());
}

TEST(LiteralScanner, RefusesOtherSizes) {
  for (const auto text : {"-1"sv, "+1"sv, "True"sv, "1.0"sv, "1e3"sv, "0x10"sv, "1_0"sv, "03"sv, "3LL"sv, "1 0"sv,
                          "9223372036854775808"sv, "None"sv, "'3'"sv, ""sv}) {
    EXPECT_EQ(test::code_of([&] { size_of(text); }), ErrorCode::kCorrupt) << text;
  }
}

TEST(LiteralScanner, ReadsBooleans) {
  const auto boolean_of = [](std::string_view text) { return LiteralScanner(text, Encoding::kUtf8, 0).boolean(); };
  EXPECT_TRUE(boolean_of(" True"));
  EXPECT_FALSE(boolean_of("False,"));
  EXPECT_TRUE(boolean_of("np.True_}"));
  EXPECT_FALSE(boolean_of("numpy.bool_(False)"));
  for (const auto text : {"true"sv, "1"sv, "Truely"sv, ""sv, "None"sv, "True_"sv, "np.Truth"sv, "np.bool_(1)"sv}) {
    EXPECT_EQ(test::code_of([&] { boolean_of(text); }), ErrorCode::kCorrupt) << text;
  }
}

TEST(LiteralScanner, SaysWhereItIs) {
  LiteralScanner scan("  x", Encoding::kUtf8, 100);
  const auto error = test::error_of([&] { scan.expect('{'); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->offset(), 102u);
  EXPECT_EQ(error->message(), "the header has 'x' where '{' must be");
}

TEST(PythonRepr, IsReadBack) {
  EXPECT_EQ(python_repr("plain"), "'plain'");
  EXPECT_EQ(python_repr("it's"), "\"it's\"");
  EXPECT_EQ(python_repr("both ' and \""), R"('both \' and "')");
  EXPECT_EQ(python_repr("a\\b\n\x01\x7F"), R"('a\\b\n\x01\x7f')");
  for (int c = 0; c < 128; ++c) {
    const std::string text = std::string("'") + static_cast<char>(c) + "\"\xC3\xA9";
    EXPECT_EQ(string_of(python_repr(text)), text) << c;
  }
}

}  // namespace
}  // namespace penstock::format
