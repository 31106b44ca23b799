#include "format/dcp/parts_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "io/copy/crc32.h"
#include "support/bytes.h"

namespace penstock::format::dcp {
namespace {

std::uint32_t crc_of(const std::string& text) { return io::crc32(0, test::bytes_of(text)); }

TEST(PartsCheck, PassesWhenAllPartsHaveCome) {
  const std::string text = "the bytes of a record, which come in any order";
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    PartsCheck check(text.size(), crc_of(text));
    std::vector<std::size_t> cuts{0, text.size()};
    for (int i = 0; i < 5; ++i) cuts.push_back(1 + random() % (text.size() - 1));
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<std::size_t> order(cuts.size() - 1);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      EXPECT_FALSE(check.passed());
      check.add(cuts[i], cuts[i + 1], crc_of(text.substr(cuts[i], cuts[i + 1] - cuts[i])));
    }
    EXPECT_TRUE(check.passed());
  }
}

TEST(PartsCheck, AWrongPartDoesNotPassUntilItCameAgain) {
  const std::string text = "0123456789";
  PartsCheck check(10, crc_of(text));
  check.add(0, 5, crc_of("01x34"));
  check.add(5, 10, crc_of("56789"));
  EXPECT_FALSE(check.passed());
  check.add(0, 5, crc_of("01234"));
  EXPECT_FALSE(check.passed()) << "what overlaps is forgotten";
  check.add(5, 10, crc_of("56789"));
  EXPECT_TRUE(check.passed());
}

}  // namespace
}  // namespace penstock::format::dcp
