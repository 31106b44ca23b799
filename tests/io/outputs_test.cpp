#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "io/file/atomic_file.h"
#include "io/file/front_output.h"
#include "io/file/output.h"
#include "penstock/error.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::io {
namespace {

TEST(Outputs, APathIsAFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "s3:x";
  EXPECT_FALSE(output_exists(path));
  const auto out = open_output(path);
  out->write_text("hello");
  out->prepare();
  EXPECT_FALSE(output_exists(path));
  out->commit();
  EXPECT_TRUE(output_exists(path));
  EXPECT_TRUE(is_same_place(path, folder / "./s3:x"));
  EXPECT_FALSE(is_same_place(path, "s3://bucket/x"));
  remove_output(path);
  EXPECT_FALSE(output_exists(path));
}

TEST(Outputs, AFileUrlIsAFile) {
  const test::TemporaryFolder folder;
  const std::string url = "file://" + (folder / "a%20b");
  open_output(url)->commit();
  EXPECT_EQ(test::read_file(folder / "a b"), "");
  EXPECT_TRUE(output_exists(url));
  EXPECT_TRUE(is_same_place(url, folder / "a b"));
  remove_output(url);
  EXPECT_FALSE(output_exists(folder / "a b"));
  EXPECT_EQ(test::code_of([] { open_output("file://elsewhere/a"); }), ErrorCode::kUnsupported);
}

TEST(Outputs, OfAnotherSchemeAreNoFiles) {
  for (const std::string path : {"gcs://bucket/x.npy", "S3://bucket/x.npy", "a+b://c"}) {
    EXPECT_EQ(test::code_of([&] { require_output(path); }), ErrorCode::kUnsupported) << path;
  }
  for (const std::string path : {"s3:x.npy", "a/b://c.npy", "://x", "file:///x.npy"})
    EXPECT_NO_THROW(require_output(path));
}

TEST(Outputs, UrlsOfStoresAlone) {
  for (const char* const url : {"http://host/x?key=secret", "https://host/x", "hf://owner/repo/x"}) {
    const Error error = *test::error_of([&] { open_output(url); });
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("secret")));
    EXPECT_EQ(test::code_of([&] { output_exists(url); }), ErrorCode::kUnsupported);
  }
  EXPECT_NO_THROW(require_output("s3://bucket/x"));
  EXPECT_TRUE(is_same_place("s3://bucket/x", "s3://bucket/x"));
  EXPECT_EQ(test::code_of([] { open_output("s3://bucket/"); }), ErrorCode::kIsDirectory);
}

// The folder of temporary files is everybody's.
TEST(Outputs, WhatIsWrittenOnTheWayToAnObjectHasANameOfItsOwn) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "penstock");
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  EXPECT_NO_THROW(AtomicFile(scratch_path("s3://bucket/x"), false).write_text("x"));
  EXPECT_NE(scratch_path("s3://bucket/x"), scratch_path("s3://bucket/x"));
  if (before != nullptr) {
    ::setenv("TMPDIR", kept.c_str(), 1);
  } else {
    ::unsetenv("TMPDIR");
  }
  EXPECT_EQ(scratch_path("a/x"), "a/x");
}

}  // namespace
}  // namespace penstock::io
