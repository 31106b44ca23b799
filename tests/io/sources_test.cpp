#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>

#include "io/read/reader.h"
#include "io/source/own_read.h"
#include "io/source/source.h"
#include "penstock/error.h"
#include "penstock/source.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/unprivileged.h"

namespace penstock::io {
namespace {

using test::code_of;
using test::error_of;
using testing::HasSubstr;

std::string content(const Source& source) {
  std::string out(source.size(), '?');
  source.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

TEST(Sources, SchemesAreUniqueAndOneIsForPlainPaths) {
  std::set<std::string_view> names;
  for (const Scheme& scheme : schemes()) EXPECT_TRUE(names.insert(scheme.name).second) << scheme.name;
  EXPECT_TRUE(names.contains(""));
}

/// A source of a program's own, which counts.
class Numbers final : public ByteSource {
 public:
  explicit Numbers(std::uint64_t size) : size_(size) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    for (std::byte& byte : into) byte = static_cast<std::byte>(offset++);
  }

 private:
  std::uint64_t size_;
  std::string name_ = "numbers";
};

TEST(Sources, AnObjectOfAClassOfOnesOwnIsOne) {
  const Source moved = Numbers(10);
  const auto object = std::make_shared<Numbers>(10);
  const Source shared = object;
  for (const Source& source : {moved, shared}) {
    EXPECT_EQ(source.name(), "numbers");
    EXPECT_EQ(source.size(), 10U);
    EXPECT_EQ(source.descriptor(), -1);
    EXPECT_FALSE(source.version());
    EXPECT_FALSE(source.memory());
    std::array<std::byte, 2> bytes{};
    source.read(7, bytes);
    EXPECT_EQ(bytes[1], std::byte{8});
  }
  EXPECT_EQ(&*shared, object.get());
  EXPECT_EQ(shared, Source(object));
  EXPECT_NE(shared, moved);
}

TEST(Sources, NullIsNoSource) {
  EXPECT_EQ(code_of([] { Source(std::shared_ptr<const ByteSource>()); }), ErrorCode::kInvalidArgument);
}

TEST(Sources, OpensAPath) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a:b.npy", "hello");
  const Source source = open_source(folder / "a:b.npy");
  EXPECT_EQ(source.name(), folder / "a:b.npy");
  EXPECT_EQ(source.size(), 5U);
  EXPECT_GE(source.descriptor(), 0);
  EXPECT_FALSE(source.memory());
  EXPECT_EQ(content(source), "hello");
}

TEST(Sources, TheDescriptorIsNotInherited) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a", "x");
  const Source source = open_source(folder / "a");
  EXPECT_NE(::fcntl(source.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Sources, OpensFileUrls) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a b%.npy", "hello");
  const std::string encoded = folder / "a%20b%25.npy";
  for (const std::string& url : {"file://" + encoded, "file://localhost" + encoded, "file:" + encoded}) {
    EXPECT_EQ(content(open_source(url)), "hello") << url;
  }
}

TEST(Sources, AFileUrlHasASlash) {
  const test::TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  for (const char* const name : {"file:a", "s3:a"}) {
    test::write_file(folder / name, name);
    EXPECT_EQ(content(open_source(name)), name);
  }
  std::filesystem::current_path(before);
}

TEST(Sources, RefusesUrlsItCannotOpen) {
  EXPECT_EQ(code_of([] { open_source("file://elsewhere/a.npy"); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([] { open_source("ftp://host/a.npy"); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([] { open_source("file:/a%2"); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { open_source("file:/a%zz"); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { open_source("file:/a%00b"); }), ErrorCode::kInvalidArgument);
}

TEST(Sources, SaysWhatIsWrongWithAPath) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "x");
  const auto error = error_of([&] { open_source(folder / "missing"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kNotFound);
  EXPECT_EQ(error->path(), folder / "missing");
  EXPECT_EQ(code_of([&] { open_source(""); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { open_source(folder.path().string()); }), ErrorCode::kIsDirectory);
  EXPECT_EQ(code_of([&] { open_source((folder / "file") + "/below"); }), ErrorCode::kNotDirectory);
  EXPECT_EQ(code_of([] { open_source(std::string_view("a\0b", 3)); }), ErrorCode::kInvalidArgument);
}

TEST(Sources, NeedsPermission) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "secret", "x");
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(folder / "secret", std::filesystem::perms::none);
  const test::Unprivileged unprivileged;
  EXPECT_EQ(code_of([&] { open_source(folder / "secret"); }), ErrorCode::kPermission);
}

TEST(Sources, RefusesWhatIsNoRegularFileWithoutWaiting) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { open_source(folder / "fifo"); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([] { open_source("/dev/null"); }), ErrorCode::kUnsupported);

  const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = folder / "socket";
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  ASSERT_EQ(::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const auto error = error_of([&] { open_source(path); });
  ::close(server);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), HasSubstr("a socket"));
}

TEST(Sources, KeepTheirSizeAndSayWhenTheFileWasCut) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a", std::string(1000, 'a'));
  const Source source = open_source(folder / "a");
  std::filesystem::resize_file(folder / "a", 300);
  EXPECT_EQ(source.size(), 1000U);
  std::array<std::byte, 200> into{};
  source.read(100, into);
  const auto error = error_of([&] { source.read(200, into); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kTruncated);
  EXPECT_EQ(error->path(), folder / "a");
  EXPECT_EQ(error->offset(), 200U);
  EXPECT_THAT(error->message(), HasSubstr("had 1000 bytes and now ends at byte 300"));
}

TEST(Sources, AFileThatGrewIsReadAsItWasOpened) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a", "12345");
  const Source source = open_source(folder / "a");
  test::write_file(folder / "a", "1234567890");
  std::array<std::byte, 6> into{};
  EXPECT_EQ(code_of([&] { source.read(0, into); }), ErrorCode::kTruncated);
}

TEST(Sources, ARemovedFileCanStillBeRead) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a", "still here");
  const Source source = open_source(folder / "a");
  std::filesystem::remove(folder / "a");
  EXPECT_EQ(content(source), "still here");
}

TEST(MemorySource, SharesItsBytes) {
  auto bytes = std::make_shared<std::string>("hello");
  const Buffer buffer = Buffer::wrap(bytes->data(), bytes->size(), bytes);
  const Source source = memory_source(buffer, "greeting");
  EXPECT_EQ(source.name(), "greeting");
  EXPECT_EQ(source.descriptor(), -1);
  const Buffer memory = source.memory();
  EXPECT_EQ(memory.data(), buffer.data());
  EXPECT_EQ(content(source), "hello");
  EXPECT_EQ(content(memory_source(Buffer())), "");
}

struct ThrowsOwn final : ByteSource {
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return 4; }
  void read(std::uint64_t, std::span<std::byte>) const override { throw std::runtime_error("no such tape"); }

 private:
  std::string name_ = "tape";
};

/// Says where its bytes are, but for the first `good` times, when it says that they are not in memory.
struct ThrowsMemory final : ByteSource {
  explicit ThrowsMemory(int good) : good_(good) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return 4; }
  void read(std::uint64_t, std::span<std::byte> into) const override { std::ranges::fill(into, std::byte{1}); }
  Buffer memory() const override {
    if (asked_++ < good_) return {};
    throw std::runtime_error("the tape is gone");
  }

 private:
  std::string name_ = "tape";
  int good_;
  mutable int asked_ = 0;
};

TEST(Source, OfTheProgramsOwnWhoseMemoryThrowsGivesAnError) {
  const Source source = std::make_shared<ThrowsMemory>(0);
  EXPECT_THAT(error_of([&] { memory_of(*source); })->what(),
              HasSubstr("tape: the source's memory threw: the tape is gone"));
  // Wherever it is asked: by the choice of a reader too, which ended the program.
  EXPECT_EQ(code_of([&] { reader_for(*source); }), ErrorCode::kUserCode);
  EXPECT_EQ(code_of([&] { costs_of(*source); }), ErrorCode::kUserCode);
  for (int good = 0; good < 4; ++good) {
    const Source later = std::make_shared<ThrowsMemory>(good);
    std::array<std::byte, 4> into{};
    const std::array<SourceRuns, 1> runs = {{{.source = later, .runs = {{.offset = 0, .into = into}}}}};
    try {
      read_at_once(runs);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUserCode) << error.what();
    }
  }
}

struct ShortMemory final : ByteSource {
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return 1 << 20; }
  void read(std::uint64_t, std::span<std::byte>) const override {}
  Buffer memory() const override { return Buffer::allocate(16); }

 private:
  std::string name_ = "tape";
};

TEST(Source, WhoseMemoryIsShorterIsNotReadBeyondIt) {
  const Source source = ShortMemory();
  const auto error = error_of([&] { memory_of(*source); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->what(), HasSubstr("tape: the source's memory has 16 bytes, and its size is 1048576"));
  std::byte byte{};
  const Scatter part{&byte, 1};
  EXPECT_EQ(code_of([&] { reader_for(*source).read(*source, 1000, {&part, 1}); }), ErrorCode::kInvalidArgument);
}

TEST(Source, OfTheProgramsOwnThrowsErrorsAlone) {
  const Source source = ThrowsOwn();
  std::byte byte{};
  const auto error = error_of([&] { source.read(0, {&byte, 1}); });
  EXPECT_EQ(error->code(), ErrorCode::kUserCode);
  EXPECT_THAT(error->what(), HasSubstr("tape: the source's read threw: no such tape"));
}

}  // namespace
}  // namespace penstock::io
