#include "io/file/output_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/errors.h"
#include "support/faults.h"
#include "support/files.h"

namespace penstock::io {
namespace {

using test::WriteFault;
using testing::ElementsAre;
using testing::IsEmpty;

std::unique_ptr<Output> written(const std::string& path) {
  std::unique_ptr<Output> out = open_output(path);
  out->write_text("x");
  return out;
}

TEST(OutputSet, GoesWithoutItsLastOne) {
  const test::TemporaryFolder folder;
  {
    OutputSet set;
    for (const char* const name : {"a", "b"}) set.commit(folder / name, *written(folder / name));
    EXPECT_THAT(folder.names(), testing::UnorderedElementsAre("a", "b"));
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(OutputSet, StaysBehindItsLastOne) {
  const test::TemporaryFolder folder;
  {
    OutputSet set;
    set.commit(folder / "a", *written(folder / "a"));
    set.commit_last(*written(folder / "b"));
  }
  EXPECT_THAT(folder.names(), testing::UnorderedElementsAre("a", "b"));
}

// A commit of a new file flushes it, links it to its name and flushes the folder.
TEST(OutputSet, StaysWhereItsLastOneMayBeThere) {
  for (const auto kind : {WriteFault::Kind::kRefused, WriteFault::Kind::kLost}) {
    for (int call = 0; call < 3; ++call) {
      const test::TemporaryFolder folder;
      const bool is_there = call > 1 || (call == 1 && kind == WriteFault::Kind::kLost);
      {
        OutputSet set;
        set.commit(folder / "a", *written(folder / "a"));
        const auto last = written(folder / "b");
        const WriteFault fault(kind, call);
        EXPECT_EQ(test::code_of([&] { set.commit_last(*last); }), ErrorCode::kIo);
        EXPECT_EQ(last->may_be_there(), is_there) << call;
      }
      EXPECT_EQ(folder.names().size(), is_there ? 2U : 0U) << call;
    }
  }
}

// A commit over a file flushes the new one, gives it a temporary name, renames it and flushes the folder.
TEST(OutputSet, StaysWhereItsLastOneMayHaveReplacedAFile) {
  for (const auto kind : {WriteFault::Kind::kRefused, WriteFault::Kind::kLost}) {
    for (int call = 0; call < 4; ++call) {
      const test::TemporaryFolder folder;
      test::write_file(folder / "b", "old");
      const bool is_new = call > 2 || (call == 2 && kind == WriteFault::Kind::kLost);
      {
        OutputSet set;
        set.commit(folder / "a", *written(folder / "a"));
        const auto last = written(folder / "b");
        const WriteFault fault(kind, call);
        EXPECT_EQ(test::code_of([&] { set.commit_last(*last); }), ErrorCode::kIo);
        EXPECT_EQ(last->may_be_there(), is_new) << call;
      }
      EXPECT_EQ(test::read_file(folder / "b"), is_new ? "x" : "old") << call;
      EXPECT_EQ(folder.names().size(), is_new ? 2U : 1U) << call;
    }
  }
}

TEST(OutputSet, AFileWhoseFolderCannotBeFlushedGoesToo) {
  const test::TemporaryFolder folder;
  {
    OutputSet set;
    const auto out = written(folder / "a");
    const WriteFault fault(WriteFault::Kind::kRefused, 2);
    EXPECT_EQ(test::code_of([&] { set.commit(folder / "a", *out); }), ErrorCode::kIo);
    EXPECT_THAT(folder.names(), ElementsAre("a"));
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace penstock::io
