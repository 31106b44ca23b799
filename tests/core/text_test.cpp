#include "core/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Escaped, KeepsPrintableTextInAnyLanguage) {
  EXPECT_EQ(escaped("encoder.weight"), "encoder.weight");
  EXPECT_EQ(escaped("Größe 重み 🙂"), "Größe 重み 🙂");
}

TEST(Escaped, WritesOutControlsAndInvalidBytes) {
  EXPECT_EQ(escaped("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(escaped("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(escaped(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(escaped("\xc2\x9b"), "\\x9b") << "a C1 control is a terminal's CSI";
  EXPECT_EQ(escaped("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(escaped("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

TEST(Escaped, ShowsCharactersThatReorderOrHide) {
  EXPECT_EQ(escaped("a\u202eb"), "a\\u{202e}b");
  EXPECT_EQ(escaped("a\u200bb"), "a\\u{200b}b");
}

TEST(Escaped, ShowsEveryCharacterThatDeceives) {
  const std::string shown = escaped(
      "\u0080\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u200b\u200e\u200f\u2028\u2029\u202a\u202e"
      "\u2060\u2066\u2067\u2068\u2069\u206f\u3164\ufe00\ufe0f\ufeff\uffa0\ufff9\U0001bca0\U0001d173\U000e0001"
      "\U000e0041\U000e01ef");
  EXPECT_TRUE(std::all_of(shown.begin(), shown.end(), [](char c) { return c >= ' ' && c <= '~'; })) << shown;
}

TEST(Escaped, KeepsTheNeighboursOfWhatDeceives) {
  const std::string_view text =
      " ~\u00a0\u00ac\u00ae\u034e\u0350\u061b\u061d\u115e\u1161\u17b6\u1810\u200a\u2010\u2027\u202f\u205f\u2070\u3163"
      "\u3165\ufe10\uff00\uff9f\uffa1\ufffc\U0001bca4\U0001d172\U000e1000\U0010ffff";
  EXPECT_EQ(escaped(text), text);
}

TEST(JsonQuoted, WritesOutWhatEscapedDoes) {
  EXPECT_EQ(json_quoted("w.\"\\/\n\t\x01\x7f"), R"("w.\"\\/\n\t\u0001\u007f")");
  EXPECT_EQ(json_quoted("Größe 重み 🙂"), "\"Größe 重み 🙂\"");
  EXPECT_EQ(json_quoted("\xc2\x9b\u202e\U000e0041"), R"("\u009b\u202e\udb40\udc41")");
}

TEST(JsonQuoted, KeepsBytesThatAreNoUtf8AsPythonDoes) {
  EXPECT_EQ(json_quoted("a\xff\xc3"), R"("a\udcff\udcc3")");
  EXPECT_EQ(json_quoted("\xed\xa0\x80"), R"("\ud800")") << "half a pair";
  EXPECT_EQ(json_quoted("\xed\xa0"), R"("\udced\udca0")");
  EXPECT_EQ(json_quoted(std::string_view("\0", 1)), R"("\u0000")");
}

TEST(Quoted, CutsTheMiddleOfLongNames) {
  EXPECT_EQ(core::quoted("w"), "'w'");
  EXPECT_EQ(core::quoted(std::string(80, 'x')), "'" + std::string(80, 'x') + "'");
  const std::string cut = core::quoted(std::string(1000, 'a') + ".weight");
  EXPECT_LE(cut.size(), 82U);
  EXPECT_THAT(cut, testing::EndsWith(".weight'"));
  EXPECT_THAT(cut, testing::HasSubstr("..."));
}

TEST(Quoted, DoesNotCutACharacterInTwo) {
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string text(shift, 'x');
    for (int i = 0; i < 60; ++i) text += "重";
    EXPECT_EQ(core::quoted(text).find('\\'), std::string::npos) << shift;
  }
}

TEST(FormatBytes, UsesTheUnitThatFits) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(1), "1 byte");
  EXPECT_EQ(format_bytes(999), "999 bytes");
  EXPECT_EQ(format_bytes(1000), "1 kB");
  EXPECT_EQ(format_bytes(1536), "1.5 kB");
  EXPECT_EQ(format_bytes(99'949), "99.9 kB");
  EXPECT_EQ(format_bytes(99'960), "100 kB");
  EXPECT_EQ(format_bytes(999'499), "999 kB");
  EXPECT_EQ(format_bytes(999'500), "1 MB");
  EXPECT_EQ(format_bytes(16'000'000'000), "16 GB");
  EXPECT_EQ(format_bytes(~0ULL), "18.4 EB");
}

TEST(NearestNames, FindsTyposAndNothingElse) {
  const std::vector<std::string> names = {"encoder.weight", "encoder.bias", "decoder.weight", "step"};
  EXPECT_THAT(nearest_names("encoder.wieght", names), ElementsAre("encoder.weight", "decoder.weight", "encoder.bias"));
  EXPECT_THAT(nearest_names("Encoder.Bias", names), ElementsAre("encoder.bias"));
  EXPECT_THAT(nearest_names("setp", names), ElementsAre("step"));
  EXPECT_THAT(nearest_names("stop", names), ElementsAre("step"));
  EXPECT_THAT(nearest_names("optimizer", names), IsEmpty());
}

TEST(NearestNames, LeavesOutEmptyNames) {
  const std::vector<std::string> names = {"", "b"};
  EXPECT_THAT(nearest_names("a", names), ElementsAre("b"));
}

TEST(NearestNames, FindsTheNameThatEndsWithTheKey) {
  const std::vector<std::string> names = {"model.encoder.weight", "other"};
  EXPECT_THAT(nearest_names("weight", names), ElementsAre("model.encoder.weight"));
}

TEST(NearestNames, KeepsThreeNearestFirst) {
  const std::vector<std::string> names = {"abcdeX", "abcdYX", "abcdef", "abcdeY", "abcdeZ"};
  EXPECT_THAT(nearest_names("abcdef", names), ElementsAre("abcdef", "abcdeX", "abcdeY"));
}

TEST(NearestNames, LimitsWorkOnHugeNames) {
  NearestNames nearest(std::string(100'000, 'a'));
  for (int i = 0; i < 1000; ++i) nearest.add(std::string(100'000, 'b'));
  EXPECT_THAT(nearest.take(), IsEmpty());
}

TEST(DidYouMean, ReadsLikeASentence) {
  EXPECT_EQ(did_you_mean({}), "");
  EXPECT_EQ(did_you_mean({"a"}), "did you mean 'a'?");
  EXPECT_EQ(did_you_mean({"a", "b", "c"}), "did you mean 'a', 'b' or 'c'?");
}

}  // namespace
}  // namespace penstock::core
