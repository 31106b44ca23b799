// Every reader of the table of those that fill device memory. A reader that declines the file, and says why, is
// skipped.

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "device/queue.h"
#include "io/read/device_reader.h"
#include "io/source/source.h"
#include "penstock/stream.h"
#include "support/cufile.h"
#include "support/files.h"

namespace penstock::io {
namespace {

using Bytes = std::vector<std::byte>;

class DeviceReaders : public test::WithCufile, public testing::WithParamInterface<DeviceReader> {
 protected:
  static constexpr std::size_t kBytes = 3'000'017;

  void SetUp() override {
    WithCufile::SetUp();
    if (IsSkipped()) return;
    test::write_file(folder_ / "source", bytes_);
    source_ = open_source(folder_ / "source");
    std::string why_not;
    file_ = GetParam().open(*source_, device, true, why_not);
    EXPECT_NE(file_ == nullptr, why_not.empty());
    if (!file_) GTEST_SKIP() << why_not;
    into_ = Buffer::allocate(kBytes + 64, device);
    synchronize(device);
  }
  void TearDown() override {
    file_.reset();
    WithCufile::TearDown();
  }

  void expect(std::size_t offset, std::size_t length, std::size_t at) {
    ASSERT_TRUE(file_->read(offset, into_, at, length)) << file_->refusal();
    Bytes back(length);
    const auto stream = Stream::current(device);
    const std::array range{device::CopyRange{back.data(), into_.data() + at, length}};
    StreamAccess::queue(stream)->copy(range, device::Direction::kDeviceToHost);
    stream.synchronize();
    EXPECT_TRUE(std::equal(back.begin(), back.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset)))
        << length << " at " << offset << " to " << at;
  }

  test::TemporaryFolder folder_;
  Bytes bytes_ = test::numbered_bytes(kBytes);
  Source source_ = memory_source(Buffer::allocate(0));
  std::unique_ptr<DeviceFile> file_;
  Buffer into_;
};

TEST_P(DeviceReaders, ReadEveryKindOfRun) {
  EXPECT_FALSE(file_->how().empty());
  expect(0, kBytes, 0);
  expect(0, kBytes, 61);
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const std::size_t length = 1 + random() % (round % 2 == 0 ? 9000 : 1'000'000);
    const std::size_t offset = round % 5 == 0 ? kBytes - length : random() % (kBytes - length);
    expect(offset, length, random() % (kBytes - length));
  }
  EXPECT_TRUE(file_->refusal().empty());
}

TEST_P(DeviceReaders, ServeManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] { EXPECT_TRUE(file_->read(t * 300'001, into_, t * 300'001, 300'001)); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(DeviceReaders, NothingIsReadBeyondTheEnd) {
  EXPECT_FALSE(file_->read(kBytes - 5, into_, 0, 6));
  EXPECT_FALSE(file_->read(UINT64_MAX - 2, into_, 0, 6));
}

TEST_P(DeviceReaders, ACutFileIsRefusedFromThenOn) {
  std::filesystem::resize_file(folder_ / "source", 1'000'000);
  EXPECT_FALSE(file_->read(900'000, into_, 0, 200'000));
  EXPECT_FALSE(file_->refusal().empty());
  EXPECT_FALSE(file_->read(0, into_, 0, 1000));
}

TEST_P(DeviceReaders, WhatIsNoFileIsDeclined) {
  std::string why_not;
  const Source source = memory_source(Buffer::allocate(10));
  EXPECT_FALSE(GetParam().open(*source, device, true, why_not));
  EXPECT_EQ(why_not, "it is no file");
}

INSTANTIATE_TEST_SUITE_P(All, DeviceReaders, testing::ValuesIn(device_readers().begin(), device_readers().end()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace penstock::io
