#include "io/remote/cache/block_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/file/file_descriptor.h"
#include "support/files.h"

namespace penstock::io::remote::block_file {
namespace {

constexpr std::uint64_t kSeed = 7;

std::string bytes(std::size_t count) {
  std::string out(count, '\0');
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<char>(i * 7 + i / 251);
  return out;
}

class BlockFile : public testing::Test {
 protected:
  void write(std::string content, std::size_t damaged = std::string::npos) {
    const std::string end = ending(std::as_bytes(std::span(content)), "a text", kSeed);
    content += end;
    if (damaged != std::string::npos) content[damaged] ^= 1;
    test::write_file(folder_ / "block", content);
    file_bytes_ = content.size();
  }
  FileDescriptor open() const { return FileDescriptor(::open((folder_ / "block").c_str(), O_RDONLY)); }
  /// The bytes, or nothing where they are damaged.
  std::string get(std::uint64_t length, std::uint64_t offset, std::size_t count, std::uint64_t seed = kSeed) const {
    std::string out(count, '?');
    const Scatter part{reinterpret_cast<std::byte*>(out.data()), count};
    return read(open().get(), length, seed, offset, {&part, 1}) ? out : std::string();
  }

  const test::TemporaryFolder folder_;
  std::uint64_t file_bytes_ = 0;
};

TEST_F(BlockFile, GivesAnyPartOfItsBytes) {
  for (const std::size_t length : {std::size_t{1}, kPiece, kPiece + 1, 5 * kPiece - 1, 64 * kPiece}) {
    const std::string content = bytes(length);
    write(content);
    EXPECT_EQ(get(length, 0, length), content) << length;
    EXPECT_EQ(get(length, length - 1, 1), content.substr(length - 1)) << length;
    EXPECT_EQ(get(length, length / 3, length / 2), content.substr(length / 3, length / 2)) << length;
    EXPECT_EQ(read_text(open().get(), file_bytes_), "a text");
  }
}

TEST_F(BlockFile, ScattersAndDrops) {
  const std::string content = bytes(100'000);
  write(content);
  std::string a(10, '?');
  std::string b(50'000, '?');
  const auto at = [](std::string& text) { return reinterpret_cast<std::byte*>(text.data()); };
  const std::vector<Scatter> parts = {{at(a), 10}, {nullptr, 40'000}, {at(b), 50'000}};
  ASSERT_TRUE(read(open().get(), content.size(), kSeed, 5, parts));
  EXPECT_EQ(a, content.substr(5, 10));
  EXPECT_EQ(b, content.substr(40'015, 50'000));
}

TEST_F(BlockFile, DamageIsFoundWhereItIsRead) {
  const std::string content = bytes(4 * kPiece);
  write(content, 2 * kPiece + 5);
  EXPECT_EQ(get(content.size(), 0, content.size()), "");
  EXPECT_EQ(get(content.size(), 2 * kPiece, 1), "");
  EXPECT_EQ(get(content.size(), 0, 2 * kPiece), content.substr(0, 2 * kPiece));
  write(content, content.size() + 1);  // a hash
  EXPECT_EQ(get(content.size(), 0, 10), "");
}

TEST_F(BlockFile, AnotherSeedOrLengthIsAnotherBlock) {
  const std::string content = bytes(3 * kPiece);
  write(content);
  EXPECT_EQ(get(content.size(), 0, content.size(), kSeed + 1), "");
  EXPECT_EQ(get(4 * kPiece, 0, 4 * kPiece), "");
  EXPECT_EQ(get(2 * kPiece, 0, 2 * kPiece), "");
}

TEST_F(BlockFile, ATextIsDamagedWithAnyOfItsBytes) {
  write(bytes(10));
  const std::uint64_t whole = file_bytes_;
  for (std::size_t i = whole - 22; i < whole; ++i) {
    write(bytes(10), i);
    EXPECT_FALSE(read_text(open().get(), file_bytes_)) << i;
  }
  EXPECT_FALSE(read_text(open().get(), 15));
}

}  // namespace
}  // namespace penstock::io::remote::block_file
