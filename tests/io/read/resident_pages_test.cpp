#include "io/read/resident_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>

#include "core/round.h"

namespace penstock::io {
namespace {

/// Pages of which none is there until it is touched.
class ResidentPagesTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kPages = 1200;  // more than one call asks for
  const std::size_t page_ = core::page_size();
  std::byte* const begin_ = static_cast<std::byte*>(
      ::mmap(nullptr, kPages* page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

  void SetUp() override {
    ASSERT_NE(begin_, MAP_FAILED);
    ::madvise(begin_, kPages * page_, MADV_NOHUGEPAGE);
  }
  void TearDown() override { ::munmap(begin_, kPages * page_); }

  std::span<const std::byte> bytes(std::size_t begin, std::size_t count) const { return {begin_ + begin, count}; }
};

TEST_F(ResidentPagesTest, AreThoseThatWereTouched) {
  begin_[2 * page_] = std::byte{1};
  ResidentPages pages;
  EXPECT_TRUE(pages.hold(bytes(2 * page_, page_)));
  EXPECT_TRUE(pages.hold(bytes(2 * page_ + 7, 10)));
  EXPECT_FALSE(pages.hold(bytes(2 * page_ - 1, 2)));
  EXPECT_FALSE(pages.hold(bytes(3 * page_ - 1, 2)));
  EXPECT_FALSE(pages.hold(bytes(0, 1)));
  EXPECT_TRUE(pages.hold(bytes(2 * page_, 1))) << "what was asked in between is not remembered";
}

TEST_F(ResidentPagesTest, OneThatIsMissingAmongManyIsNoticed) {
  std::memset(begin_, 1, kPages * page_);
  ResidentPages pages;
  EXPECT_TRUE(pages.hold(bytes(0, kPages * page_)));
  ::madvise(begin_ + (kPages - 1) * page_, page_, MADV_DONTNEED);
  EXPECT_FALSE(ResidentPages().hold(bytes(0, kPages * page_)));
  EXPECT_TRUE(ResidentPages().hold(bytes(0, (kPages - 1) * page_)));
}

TEST_F(ResidentPagesTest, AnAnswerIsBelievedForAsLongAsItIsSaid) {
  std::memset(begin_, 1, 2 * page_);
  ResidentPages kept(std::chrono::hours(1)), asked_again(std::chrono::nanoseconds(0));
  EXPECT_TRUE(kept.hold(bytes(0, page_)));
  EXPECT_TRUE(asked_again.hold(bytes(0, page_)));
  ::madvise(begin_, page_, MADV_DONTNEED);
  EXPECT_TRUE(kept.hold(bytes(7, 10)));
  EXPECT_FALSE(asked_again.hold(bytes(7, 10)));
  EXPECT_TRUE(kept.hold(bytes(page_, page_)));
  EXPECT_FALSE(kept.hold(bytes(0, page_))) << "the page behind it was asked for last";
}

TEST_F(ResidentPagesTest, NothingIsThere) { EXPECT_TRUE(ResidentPages().hold({})); }

TEST_F(ResidentPagesTest, WhatIsNotMappedIsNotThere) {
  ::munmap(begin_ + (kPages - 1) * page_, page_);
  EXPECT_FALSE(ResidentPages().hold(bytes((kPages - 1) * page_, 1)));
}

}  // namespace
}  // namespace penstock::io
