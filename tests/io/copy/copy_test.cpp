#include "io/copy/copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "support/files.h"

namespace penstock::io {
namespace {

TEST(Copy, EveryLengthAndAlignmentAndNothingBeside) {
  const std::vector<std::byte> bytes = test::numbered_bytes(9000);
  for (const Stores stores : {Stores::kCached, Stores::kStreamed}) {
    for (std::size_t length = 0; length < 8000; length += length < 600 ? 1 : 331) {
      const std::size_t at = 64 + length % 67;
      const auto from = std::span(bytes).subspan(length % 59, length);
      std::vector<std::byte> to(at + length + 64, std::byte{0xAA});
      std::vector<std::byte> wanted = to;
      std::ranges::copy(from, wanted.begin() + static_cast<std::ptrdiff_t>(at));
      copy(to.data() + at, from, stores);
      ASSERT_EQ(to, wanted) << length;
    }
  }
}

TEST(Copy, MemoryThatNobodyHasTouchedIsStoredToThroughTheCaches) {
  const std::size_t bytes = 16 * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  auto* const target = static_cast<std::byte*>(memory);
  EXPECT_EQ(stores_for(target + bytes / 2 + 5), Stores::kCached);
  target[bytes / 2] = std::byte{1};
  EXPECT_EQ(stores_for(target + bytes / 2 + 5), Stores::kStreamed);
  EXPECT_EQ(stores_for(target), Stores::kCached);
  ::munmap(memory, bytes);
  EXPECT_EQ(stores_for(target), Stores::kStreamed) << "memory that the system tells nothing of";
}

}  // namespace
}  // namespace penstock::io
