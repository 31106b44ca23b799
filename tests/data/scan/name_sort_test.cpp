#include "data/scan/name_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace penstock::data {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out.append(name).push_back('\0');
  return out;
}

std::string sorted_names(std::string_view names) { return NameSorter().sorted(names); }

TEST(SortedNames, AreInOrderEachOnce) {
  EXPECT_EQ(sorted_names(""), "");
  EXPECT_EQ(sorted_names(joined({"one"})), joined({"one"}));
  EXPECT_EQ(sorted_names(joined({"b", "a", "b", "ab", "a"})), joined({"a", "ab", "b"}));
  EXPECT_EQ(sorted_names(joined({"f\xff", "f", "f\x01"})), joined({"f", "f\x01", "f\xff"})) << "bytes are unsigned";
}

TEST(SortedNames, AreWhatStringsSortTo) {
  std::mt19937 random(7);
  NameSorter sorter;
  for (int round = 0; round < 200; ++round) {
    const std::string prefix(random() % 20, 'p');
    std::vector<std::string> names(random() % (round % 4 == 0 ? 2000 : 60));
    for (std::string& name : names) {
      name = prefix;
      // Few letters, so that many names share more than the key holds.
      for (std::size_t n = random() % 14 + 1; n > 0; --n) name += "ab\xe9"[random() % 3];
    }
    const std::string given = joined(names);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    EXPECT_EQ(sorter.sorted(given), joined(names));
  }
}

}  // namespace
}  // namespace penstock::data
