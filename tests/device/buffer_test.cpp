#include "penstock/buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "device/host_blocks.h"
#include "device/host_memory.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock {
namespace {

using test::error_of;

bool is_aligned(const void* address, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

TEST(Buffer, DefaultIsNothing) {
  const Buffer none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.size(), 0U);
}

TEST(Buffer, IsAlignedAndWritableAtEverySize) {
  constexpr std::size_t kHuge = device::kHugePage;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4097}, kHuge - 1, kHuge,
                                  kHuge + 1, 3 * kHuge + 12345}) {
    const Buffer buffer = Buffer::allocate(bytes);
    ASSERT_TRUE(buffer) << bytes;
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_FALSE(buffer.read_only());
    EXPECT_NE(buffer.data(), nullptr);
    EXPECT_TRUE(is_aligned(buffer.data(), bytes >= kHuge ? kHuge : 64)) << bytes;
    std::memset(buffer.data(), 0x5A, bytes);
  }
}

TEST(Buffer, CopiesAreTheSameMemory) {
  Buffer a = Buffer::allocate(100);
  a.data()[7] = std::byte{42};
  const Buffer b = a;
  a = Buffer();
  EXPECT_EQ(b.data()[7], std::byte{42});
  EXPECT_FALSE(b.shares_memory_with(Buffer::allocate(100)));
}

TEST(Buffer, MovedFromIsNothing) {
  Buffer a = Buffer::allocate(64);
  std::byte* const data = a.data();
  Buffer b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): what is left is promised
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.size(), 0U);
  EXPECT_EQ(b.data(), data);
  a = std::move(b);
  EXPECT_EQ(a.data(), data);
  EXPECT_EQ(a.size(), 64U);
  EXPECT_EQ(b.size(), 0U);  // NOLINT(bugprone-use-after-move)
}

TEST(Buffer, PartsStayInsideAndKeepTheWholeAlive) {
  Buffer part;
  {
    const Buffer whole = Buffer::allocate(100);
    part = whole.part(10, 90);
    EXPECT_TRUE(part.shares_memory_with(whole));
    EXPECT_EQ(part.data(), whole.data() + 10);
  }
  std::memset(part.data(), 1, part.size());
  EXPECT_EQ(part.part(90, 0).size(), 0U);
  EXPECT_EQ(error_of([&] { part.part(90, 1); })->code(), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(error_of([&] { part.part(91, 0); })->code(), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(error_of([&] { part.part(2, std::numeric_limits<std::size_t>::max()); })->code(),
            ErrorCode::kIndexOutOfRange);
  const Buffer nothing = Buffer().part(0, 0);
  EXPECT_EQ(nothing.data(), nullptr);
}

TEST(Buffer, WrapsMemoryOfOthers) {
  auto bytes = std::make_shared<std::array<char, 4>>();
  const std::weak_ptr<void> alive = bytes;
  Buffer buffer = Buffer::wrap(bytes->data(), 4, bytes, true);
  bytes.reset();
  EXPECT_FALSE(alive.expired());
  EXPECT_TRUE(buffer.read_only());
  EXPECT_TRUE(buffer.part(1, 2).read_only());
  buffer = Buffer();
  EXPECT_TRUE(alive.expired());
}

TEST(Buffer, WrappedMemoryWithoutOwnerIsDefined) {
  static int forever = 0;
  EXPECT_TRUE(Buffer::wrap(&forever, sizeof forever, nullptr));
  EXPECT_TRUE(Buffer::wrap(nullptr, 0, nullptr));
}

TEST(Buffer, AbsurdSizesAreRefusedBeforeAnythingIsMapped) {
  for (const std::uint64_t bytes : {std::numeric_limits<std::uint64_t>::max(), std::uint64_t{1} << 63,
                                    std::uint64_t{1} << 47, device::largest_host_request() + 1}) {
    const auto error = error_of([bytes] { Buffer::allocate(bytes); });
    EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory) << bytes;
    EXPECT_THAT(error->message(), testing::HasSubstr("requested"));
    EXPECT_THAT(error->message(), testing::HasSubstr("free"));
  }
}

TEST(Buffer, AnAbsentDeviceIsNoDevice) {
  EXPECT_EQ(error_of([] { Buffer::allocate(1, Device(DeviceType::kCuda, 9999)); })->code(), ErrorCode::kNoDevice);
}

TEST(Buffer, OfNoAddressHasNoBytes) {
  EXPECT_EQ(Buffer::wrap(nullptr, 0, nullptr).size(), 0U);
  EXPECT_EQ(error_of([] { Buffer::wrap(nullptr, 16, nullptr); })->code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
