#include "format/tar/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "support/bytes.h"
#include "support/errors.h"
#include "support/tar_builder.h"

namespace penstock::format {
namespace {

using test::bytes_of;
using test::put;
using test::tar_header;
using ::testing::HasSubstr;

TarHeader read(const std::string& block) { return read_tar_header(bytes_of(block), 0, "a.tar"); }

/// The size that a header tells whose field has this text.
std::uint64_t size_of(std::string field) {
  field.resize(12, '\0');
  return read(tar_header("a.npy", 0, '0', [&](std::string& block) { put(block, 124, field); })).size;
}
std::optional<ErrorCode> refused(const std::string& field) {
  return test::code_of([&] { size_of(field); });
}

TEST(TarHeader, ReadsWhatTarWrites) {
  const TarHeader header = read(tar_header("folder/a.npy", 1234));
  EXPECT_EQ(header.name, "folder/a.npy");
  EXPECT_EQ(header.size, 1234U);
  EXPECT_EQ(header.type, '0');
  EXPECT_FALSE(header.is_extended);
  EXPECT_EQ(read(tar_header(std::string(100, 'n'), 0)).name, std::string(100, 'n'));  // no NUL behind it
}

TEST(TarHeader, ReadsNumbersInOctal) {
  EXPECT_EQ(size_of("00000000017"), 15U);
  EXPECT_EQ(size_of("000000000017"), 15U);  // twelve digits, no NUL
  EXPECT_EQ(size_of("         17 "), 15U);
  EXPECT_EQ(size_of("17 "), 15U);
  EXPECT_EQ(size_of(std::string("17\0z 9", 6)), 15U);
  EXPECT_EQ(size_of(std::string("17 \0-1", 6)), 15U);
  EXPECT_EQ(size_of("0"), 0U);
  EXPECT_EQ(size_of(""), 0U);
  EXPECT_EQ(size_of("           "), 0U);
  EXPECT_EQ(size_of("777777777777"), (std::uint64_t{1} << 36) - 1);
}

TEST(TarHeader, RefusesWhatIsNoNumber) {
  for (const char* field : {"00000000018", "-0000000001", "+0000000001", "0x000000001", "1 1", "1.0", "abc"}) {
    EXPECT_EQ(refused(field), ErrorCode::kCorrupt) << field;
  }
  EXPECT_EQ(refused(std::string("1 z\0", 4)), ErrorCode::kCorrupt);
}

TEST(TarHeader, ReadsNumbersInBase256) {
  EXPECT_EQ(size_of(std::string("\x80\0\0\0\0\0\0\0\0\0\1\2", 12)), 258U);
  EXPECT_EQ(size_of(std::string("\x80\0\0\0\x3f\0\0\0\0\0\0\1", 12)), (std::uint64_t{0x3F} << 56) + 1);
  EXPECT_EQ(size_of(std::string("\x80\0\0\0\x40\0\0\0\0\0\0\0", 12)), std::uint64_t{1} << 62);
}

TEST(TarHeader, RefusesNegativeAndOverflowingNumbers) {
  EXPECT_EQ(refused(std::string(12, '\xff')), ErrorCode::kCorrupt);  // -1
  EXPECT_EQ(refused(std::string("\xff\xff\xff\xff\x80\0\0\0\0\0\0\0", 12)),
            ErrorCode::kCorrupt);  // the least of 64 bits
  EXPECT_EQ(refused(std::string("\x80\0\0\0\x40\0\0\0\0\0\0\1", 12)), ErrorCode::kCorrupt);
  EXPECT_EQ(refused(std::string("\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12)), ErrorCode::kCorrupt);
  EXPECT_EQ(refused(std::string("\x80\1\0\0\0\0\0\0\0\0\0\0", 12)), ErrorCode::kCorrupt);
  EXPECT_EQ(refused(std::string("\x81\0\0\0\0\0\0\0\0\0\0\0", 12)), ErrorCode::kCorrupt);
  EXPECT_EQ(refused(std::string("\xbf\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12)), ErrorCode::kCorrupt);
}

TEST(TarHeader, AnErrorOfASizeNamesMemberAndPlace) {
  std::string block = tar_header("a\n.npy", 0, '0', [](std::string& b) { put(b, 124, "zz"); });
  const auto error = test::error_of([&] { read_tar_header(bytes_of(block), 5120, "a.tar"); });
  EXPECT_EQ(error->path(), "a.tar");
  EXPECT_EQ(error->offset(), 5120U + 124);
  EXPECT_EQ(error->tensor(), "a\\n.npy");
}

TEST(TarHeader, TakesBothSums) {
  const auto edit = [](std::string& block) { put(block, 0, "\xc3\xa4\xff.npy"); };
  std::string block = tar_header("", 7, '0', edit);
  EXPECT_EQ(read(block).size, 7U);
  EXPECT_EQ(read(test::with_checksum(block, true)).size, 7U);
}

TEST(TarHeader, RefusesEachChangedByte) {
  const std::string good = tar_header("a.npy", 99);
  for (std::size_t i = 0; i < good.size(); ++i) {
    if (i >= 148 && i < 156) continue;  // of the checksum itself, below
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(has_tar_checksum(bytes_of(bad))) << i;
    EXPECT_EQ(test::code_of([&] { read(bad); }), ErrorCode::kCorrupt) << i;
  }
  for (std::size_t i = 148; i < 154; ++i) {
    std::string bad = good;
    bad[i] = bad[i] == '1' ? '2' : '1';
    EXPECT_FALSE(has_tar_checksum(bytes_of(bad))) << i;
  }
  EXPECT_FALSE(has_tar_checksum(bytes_of(std::string(512, '\0'))));
  EXPECT_FALSE(has_tar_checksum(bytes_of(good.substr(0, 511))));
}

TEST(TarHeader, MayHaveNoName) {
  // Python's tarfile writes a folder with a name of 100 bytes and more so.
  const auto prefix = [](std::string& block) { put(block, 345, std::string(104, 'x')); };
  EXPECT_EQ(read(tar_header("", 0, '5', prefix)).name, std::string(104, 'x') + "/");
  EXPECT_EQ(read(tar_header("", 7)).name, "");
  std::string zeros(512, '\0');
  zeros[0] = 'x';
  for (int i = 1; i < 4; ++i) zeros[i] = '\x88';  // signed, the sum is 0, which is what the empty field says
  EXPECT_FALSE(has_tar_checksum(bytes_of(zeros)));
}

TEST(TarHeader, ReadsV7) {
  const auto v7 = [](std::string& block) { block.replace(257, 255, 255, '\0'); };
  EXPECT_EQ(read(tar_header("a.npy", 3, '\0', v7)).type, '0');
  EXPECT_EQ(read(tar_header("folder/", 0, '\0', v7)).type, '5');
  EXPECT_EQ(read(tar_header("folder/", 0, '0', v7)).type, '0');
}

TEST(TarHeader, TakesThePrefixOfPosixAlone) {
  const auto prefix = [](std::string& block) { put(block, 345, "long/folder"); };
  EXPECT_EQ(read(tar_header("a.npy", 0, '0', prefix)).name, "long/folder/a.npy");
  // Old GNU has times there, and V7 anything.
  for (const std::string_view magic : {std::string_view("ustar  \0", 8), std::string_view("\0\0\0\0\0\0\0\0", 8)}) {
    const auto other = [&](std::string& block) {
      prefix(block);
      put(block, 257, magic);
    };
    EXPECT_EQ(read(tar_header("a.npy", 0, '0', other)).name, "a.npy");
  }
  const auto full = [](std::string& block) { put(block, 345, std::string(155, 'p')); };
  EXPECT_EQ(read(tar_header(std::string(100, 'n'), 0, '0', full)).name,
            std::string(155, 'p') + "/" + std::string(100, 'n'));
}

TEST(TarHeader, TellsAnOldSparseMapThatGoesOn) {
  const auto extended = [](std::string& block) { block[482] = 1; };
  EXPECT_TRUE(read(tar_header("a.npy", 0, 'S', extended)).is_extended);
  EXPECT_FALSE(read(tar_header("a.npy", 0, 'S')).is_extended);
  EXPECT_FALSE(read(tar_header("a.npy", 0, '0', extended)).is_extended);
}

TEST(TarHeader, PadsToBlocks) {
  EXPECT_EQ(tar_padded(0), 0U);
  EXPECT_EQ(tar_padded(1), 512U);
  EXPECT_EQ(tar_padded(512), 512U);
  EXPECT_EQ(tar_padded(std::uint64_t{1} << 62), std::uint64_t{1} << 62);
  EXPECT_FALSE(tar_padded((std::uint64_t{1} << 62) + 1));
  EXPECT_FALSE(tar_padded(~std::uint64_t{0}));
}

TEST(TarHeader, IsReadAsItIsWritten) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 33) - 1}) {
    const auto block = tar_header_of("a/b.npy", size);
    ASSERT_TRUE(block);
    EXPECT_EQ(read(*block).name, "a/b.npy");
    EXPECT_EQ(read(*block).size, size);
    EXPECT_EQ(block, tar_header_of("a/b.npy", size));
  }
  EXPECT_FALSE(tar_header_of("a.npy", std::uint64_t{1} << 33));
  EXPECT_FALSE(tar_header_of("", 1));
  EXPECT_TRUE(tar_header_of(std::string(100, 'n'), 1));
  EXPECT_FALSE(tar_header_of(std::string(101, 'n'), 1));
}

}  // namespace
}  // namespace penstock::format
