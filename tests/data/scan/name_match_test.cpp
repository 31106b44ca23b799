#include "data/scan/name_match.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

namespace penstock::data {
namespace {

TEST(Matches, PatternsOfOneComponent) {
  EXPECT_TRUE(matches("*", "abc"));
  EXPECT_TRUE(matches("*.pt", "a.pt"));
  EXPECT_TRUE(matches("*.pt", "a.pt.pt"));
  EXPECT_FALSE(matches("*.pt", "a.pth"));
  EXPECT_TRUE(matches("a*b*c", "aXbXbYc"));
  EXPECT_FALSE(matches("a*b*c", "aXbXbY"));
  EXPECT_TRUE(matches("?.pt", "x.pt"));
  EXPECT_FALSE(matches("?.pt", ".pt"));
  EXPECT_FALSE(matches("?.pt", "xy.pt"));
  EXPECT_TRUE(matches("**", "x"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "x"));
  EXPECT_TRUE(matches("*", ""));
}

TEST(Matches, Sets) {
  EXPECT_TRUE(matches("[a-c]1", "b1"));
  EXPECT_FALSE(matches("[a-c]1", "d1"));
  EXPECT_TRUE(matches("[!a-c]1", "d1"));
  EXPECT_FALSE(matches("[!a-c]1", "a1"));
  EXPECT_TRUE(matches("[^a]", "b"));
  EXPECT_TRUE(matches("[]x]", "]"));
  EXPECT_TRUE(matches("[a-]", "-"));
  EXPECT_TRUE(matches("[abc]*[0-9]", "bxx7"));
  EXPECT_TRUE(matches("a[b", "a[b")) << "a set that is not closed is plain text";
  EXPECT_FALSE(matches("a[b", "ab"));
  EXPECT_TRUE(matches("*[", "x["));
  EXPECT_TRUE(matches("[\x80-\xff]", "\xe4"));
}

TEST(Matches, ALeadingDotIsWrittenOut) {
  EXPECT_FALSE(matches("*", ".hidden"));
  EXPECT_FALSE(matches("?hidden", ".hidden"));
  EXPECT_FALSE(matches("[.]hidden", ".hidden"));
  EXPECT_TRUE(matches(".*", ".hidden"));
}

TEST(Matches, AsTheCLibraryDoes) {
  std::mt19937 random(3);
  const auto text = [&](std::string_view letters, std::size_t most) {
    std::string out(random() % most, ' ');
    for (char& c : out) c = letters[random() % letters.size()];
    return out;
  };
  for (int round = 0; round < 100'000; ++round) {
    const std::string pattern = text("ab.*?", 6);
    const std::string name = text("ab.", 8);
    const bool wanted = ::fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD | FNM_NOESCAPE) == 0;
    EXPECT_EQ(matches(pattern, name), wanted) << pattern << " and " << name;
  }
}

TEST(Matches, TakesNoExponentialTime) {
  const std::string name(5000, 'a');
  EXPECT_FALSE(matches("*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
}

}  // namespace
}  // namespace penstock::data
