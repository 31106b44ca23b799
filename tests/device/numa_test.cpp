#include "device/numa.h"

#include <gtest/gtest.h>

#include <cstring>

#include "penstock/buffer.h"
#include "support/memory_policy.h"

namespace penstock::device {
namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20;

class Numa : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::memory_policy(memory.data())) GTEST_SKIP() << "the kernel tells no memory's policy";
  }
  void expect_unchanged(int node) {
    const test::MemoryPolicy before = *test::memory_policy(memory.data());
    prefer_node({memory.data(), memory.size()}, node);
    EXPECT_EQ(*test::memory_policy(memory.data()), before) << node;
  }

  const Buffer memory = Buffer::allocate(kBytes);
};

TEST_F(Numa, ANodeIsPreferredForPagesThatAreThereToo) {
  std::memset(memory.data(), 7, memory.size());
  prefer_node({memory.data(), memory.size()}, 0);
  if (test::memory_policy(memory.data())->mode != test::MemoryPolicy::kPreferred) GTEST_SKIP() << "mbind is forbidden";
  EXPECT_TRUE(test::memory_policy(memory.data())->nodes.test(0));
  EXPECT_EQ(*test::memory_policy(memory.data() + kBytes - 1), *test::memory_policy(memory.data()));
  EXPECT_EQ(memory.data()[kBytes - 1], std::byte{7});
}

TEST_F(Numa, NodesThatAreNotThereChangeNothing) {
  for (const int node : {-1, 1023, 1024, 1 << 30}) expect_unchanged(node);
}

}  // namespace
}  // namespace penstock::device
