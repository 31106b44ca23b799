#include "core/fnv1a.h"

#include <gtest/gtest.h>

namespace penstock::core {
namespace {

TEST(Fnv1a, IsThatOfItsAuthors) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8);
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

}  // namespace
}  // namespace penstock::core
