#include "core/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(format_bytes(1023), "1023 bytes");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1ULL << 20) - 1), "1 MiB");
  EXPECT_EQ(format_bytes(16ULL << 30), "16 GiB");
  EXPECT_EQ(format_bytes(~0ULL), "16 EiB");
}

TEST(NearestNames, FindsTyposAndNothingElse) {
  const std::vector<std::string> names = {"encoder.weight", "encoder.bias", "decoder.weight", "step"};
  EXPECT_THAT(nearest_names("encoder.wieght", names), ElementsAre("encoder.weight", "decoder.weight", "encoder.bias"));
  EXPECT_THAT(nearest_names("Encoder.Bias", names), ElementsAre("encoder.bias"));
  EXPECT_THAT(nearest_names("setp", names), ElementsAre("step"));
  EXPECT_THAT(nearest_names("stop", names), ElementsAre("step"));
  EXPECT_THAT(nearest_names("optimizer", names), IsEmpty());
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
