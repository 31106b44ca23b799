#include "io/source/opened_file.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::io {
namespace {

using test::CountingSource;

std::string numbered_text(std::size_t bytes) {
  const std::vector<std::byte> numbered = test::numbered_bytes(bytes);
  return {reinterpret_cast<const char*>(numbered.data()), numbered.size()};
}

std::string read(const ByteSource& source, std::uint64_t offset, std::size_t bytes) {
  std::string out(bytes, '\0');
  source.read(offset, std::as_writable_bytes(std::span(out)));
  return out;
}

class OpenedFileTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 300'000;

  const std::string content_ = numbered_text(kBytes);
  std::shared_ptr<CountingSource> source_ = std::make_shared<CountingSource>(content_);
};

TEST_F(OpenedFileTest, ReadsTheHeadOnce) {
  const OpenedFile opened(source_);
  EXPECT_FALSE(opened.whole());
  EXPECT_FALSE(opened.memory());
  for (const std::size_t bytes : {1U, 64U, 512U, 16384U}) EXPECT_EQ(read(opened, 0, bytes), content_.substr(0, bytes));
  EXPECT_EQ(read(opened, 16'000, 384), content_.substr(16'000, 384));
  EXPECT_EQ(source_->reads, 1U);
  EXPECT_EQ(source_->bytes_read, OpenedFile::kHead);
}

TEST_F(OpenedFileTest, ReadsTheTailOnceWhenItIsAskedFor) {
  const OpenedFile opened(source_);
  constexpr std::size_t kTail = OpenedFile::kTail;
  for (const std::size_t bytes : {std::size_t{22}, std::size_t{1000}, kTail}) {
    EXPECT_EQ(read(opened, kBytes - bytes, bytes), content_.substr(kBytes - bytes));
  }
  EXPECT_EQ(read(opened, kBytes - kTail, 10), content_.substr(kBytes - kTail, 10));
  EXPECT_EQ(source_->reads, 2U);
  EXPECT_EQ(source_->bytes_read, OpenedFile::kHead + kTail);
}

TEST_F(OpenedFileTest, EndsThatWereReadAlreadyAreNotReadAgain) {
  const auto part = [&](std::size_t offset, std::size_t bytes) {
    OpenedFile::Bytes out = OpenedFile::Bytes::uninitialised(bytes);
    content_.copy(reinterpret_cast<char*>(out.data.get()), bytes, offset);
    return out;
  };
  const OpenedFile opened(source_, {{}, part(0, 4096), part(kBytes - 1000, 1000)});
  EXPECT_EQ(read(opened, 1000, 3096), content_.substr(1000, 3096));
  EXPECT_EQ(read(opened, kBytes - 1000, 1000), content_.substr(kBytes - 1000));
  EXPECT_EQ(source_->reads, 0U);
  EXPECT_EQ(read(opened, 4000, 97), content_.substr(4000, 97));
  EXPECT_EQ(source_->reads, 1U);
  EXPECT_EQ(read(opened, kBytes - 1001, 1001), content_.substr(kBytes - 1001));
  EXPECT_EQ(read(opened, kBytes - 60'000, 60'000), content_.substr(kBytes - 60'000));
  EXPECT_EQ(source_->reads, 2U);  // the whole tail, once

  const auto small = std::make_shared<CountingSource>(content_.substr(0, 100));
  Buffer all = Buffer::allocate(100);
  content_.copy(reinterpret_cast<char*>(all.data()), 100);
  const OpenedFile whole(small, {std::move(all)});
  EXPECT_EQ(whole.memory().size(), 100U);
  EXPECT_EQ(read(whole, 0, 100), content_.substr(0, 100));
  EXPECT_EQ(small->reads, 0U);
}

TEST_F(OpenedFileTest, WhatLiesBetweenComesFromTheFile) {
  const OpenedFile opened(source_);
  for (const auto& [offset, bytes] : {std::pair{16'000U, 385U}, {100'000U, 5U}, {234'441U, 20'000U}, {0U, 300'000U}}) {
    const std::size_t before = source_->reads;
    EXPECT_EQ(read(opened, offset, bytes), content_.substr(offset, bytes));
    EXPECT_EQ(source_->reads, before + 1);
  }
}

TEST_F(OpenedFileTest, ASmallFileIsReadWhole) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{65'536}, std::size_t{65'537}}) {
    const auto source = std::make_shared<CountingSource>(content_.substr(0, bytes));
    const OpenedFile opened(source);
    EXPECT_EQ(opened.whole().size(), bytes <= OpenedFile::kWhole ? bytes : 0);
    EXPECT_EQ(opened.memory().size(), opened.whole().size());
    EXPECT_EQ(read(opened, 0, bytes), content_.substr(0, bytes));
    if (bytes <= OpenedFile::kWhole) {
      EXPECT_EQ(source->reads, 1U);
    }
  }
}

TEST_F(OpenedFileTest, WhatIsInMemoryIsNotReadAtAll) {
  const Buffer memory = Buffer::allocate(1000);
  const OpenedFile opened(memory_source(memory));
  EXPECT_FALSE(opened.whole());
  EXPECT_TRUE(opened.memory().shares_memory_with(memory));
}

TEST_F(OpenedFileTest, ReadsBeyondTheEndAreRefusedWhereverTheyBegin) {
  const OpenedFile opened(source_);
  for (const std::uint64_t offset : {std::uint64_t{0}, kBytes - std::uint64_t{5}, ~std::uint64_t{0}}) {
    EXPECT_EQ(test::code_of([&] { read(opened, offset, kBytes + 1); }), ErrorCode::kTruncated) << offset;
  }
}

TEST_F(OpenedFileTest, ThreadsThatAskForTheTailAtOnceReadItOnce) {
  const OpenedFile opened(source_);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { EXPECT_EQ(read(opened, kBytes - 100, 100), content_.substr(kBytes - 100)); });
    }
  }
  EXPECT_EQ(source_->reads, 2U);
}

}  // namespace
}  // namespace penstock::io
