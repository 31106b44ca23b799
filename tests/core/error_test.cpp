#include "penstock/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/system_error.h"

namespace penstock {
namespace {

constexpr auto kLast = ErrorCode::kCancelled;

TEST(ErrorCodes, EachHasARowWithAUniqueNameAndABuiltInException) {
  const std::set<std::string_view> builtins = {"FileNotFoundError", "IsADirectoryError", "NotADirectoryError",
                                               "PermissionError",   "OSError",           "ValueError",
                                               "KeyError",          "IndexError",        "TypeError",
                                               "MemoryError",       "TimeoutError",      "RuntimeError"};
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(kLast); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    const ErrorCodeInfo& info = error_code_info(code);
    EXPECT_EQ(info.code, code);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(builtins.contains(info.python)) << info.python;
  }
  EXPECT_EQ(error_code_info(ErrorCode::kNotFound).name, "not_found");
  EXPECT_EQ(error_code_info(ErrorCode::kKeyNotFound).python, "KeyError");
}

TEST(Error, SaysWhatIsKnown) {
  EXPECT_STREQ(Error(ErrorCode::kIo, "it broke").what(), "it broke");
  EXPECT_STREQ(Error(ErrorCode::kIo, "it broke", {.path = "a.pt"}).what(), "a.pt: it broke");
  EXPECT_STREQ(Error(ErrorCode::kIo, "it broke", {.offset = 0}).what(), "it broke (byte 0)");
  EXPECT_STREQ(Error(ErrorCode::kIo, "it broke", {.path = "a.pt", .offset = 7, .tensor = "w"}).what(),
               "a.pt: it broke (tensor 'w', byte 7)");
}

TEST(Error, HostileNamesCannotReachTheTerminal) {
  const Error error(ErrorCode::kIo, "it broke", {.path = "a\x1b[2J.pt", .tensor = std::string(5000, 'x') + "\n"});
  const std::string what = error.what();
  EXPECT_THAT(what, testing::HasSubstr("a\\x1b[2J.pt"));
  EXPECT_LT(what.size(), 200U);
  EXPECT_EQ(what.find_first_of("\x1b\n"), std::string::npos);
  EXPECT_EQ(error.tensor().size(), 5001U) << "the field itself is unchanged";
}

TEST(Error, WithinFillsOnlyWhatIsMissing) {
  const Error inner(ErrorCode::kTruncated, "short", {.offset = 3});
  const Error outer = inner.within({.path = "p", .offset = 99, .tensor = "t"});
  EXPECT_EQ(outer.code(), ErrorCode::kTruncated);
  EXPECT_EQ(outer.path(), "p");
  EXPECT_EQ(outer.offset(), 3U);
  EXPECT_EQ(outer.tensor(), "t");
  EXPECT_EQ(outer.within({.path = "q"}).path(), "p");
}

TEST(Error, PrefixedKeepsTheContext) {
  const Error error = Error(ErrorCode::kIo, "short", {.path = "p", .offset = 1}).prefixed("sample 17: ");
  EXPECT_EQ(error.message(), "sample 17: short");
  EXPECT_STREQ(error.what(), "p: sample 17: short (byte 1)");
}

TEST(Error, CopiesKeepTheNumbers) {
  const Error error(ErrorCode::kIo, "it broke", {.path = "p", .offset = 1, .system_error = EIO, .http_status = 500});
  for (const Error& copy : {error.prefixed("sample 17: "), error.within({.tensor = "t", .system_error = EPERM}),
                            error.at({.path = "q"}), error.caused_by(nullptr)}) {
    EXPECT_EQ(copy.system_error(), EIO);
    EXPECT_EQ(copy.http_status(), 500);
  }
  EXPECT_STREQ(error.at({.path = "q", .tensor = "t"}).what(), "q: it broke (tensor 't')");
  const Error without(ErrorCode::kIo, "it broke");
  EXPECT_FALSE(without.system_error() || without.http_status());
  EXPECT_EQ(without.within({.system_error = EIO, .http_status = 0}).system_error(), EIO);
}

TEST(Error, CopiesKeepTheCause) {
  const Error error = Error(ErrorCode::kUserCode, "it threw").caused_by(std::make_exception_ptr(7));
  const Error copy = error.prefixed("sample 17: ").within({.path = "p"});
  EXPECT_THROW(std::rethrow_exception(copy.cause()), int);
  EXPECT_FALSE(Error(ErrorCode::kIo, "short").cause());
}

TEST(SystemError, MapsNumbersToCodes) {
  using core::code_of_errno;
  EXPECT_EQ(code_of_errno(ENOENT), ErrorCode::kNotFound);
  EXPECT_EQ(code_of_errno(EISDIR), ErrorCode::kIsDirectory);
  EXPECT_EQ(code_of_errno(ENOTDIR), ErrorCode::kNotDirectory);
  EXPECT_EQ(code_of_errno(EACCES), ErrorCode::kPermission);
  EXPECT_EQ(code_of_errno(EPERM), ErrorCode::kPermission);
  EXPECT_EQ(code_of_errno(ENOMEM), ErrorCode::kOutOfMemory);
  EXPECT_EQ(code_of_errno(EIO), ErrorCode::kIo);
  EXPECT_EQ(code_of_errno(12345), ErrorCode::kIo);
}

TEST(SystemError, ThrowsWithTextAndAdvice) {
  try {
    core::throw_errno(EACCES, "cannot open the file", {.path = "secret.pt"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermission);
    EXPECT_EQ(error.system_error(), EACCES);
    EXPECT_STREQ(
        error.what(),
        "secret.pt: cannot open the file: Permission denied; check the permissions of the file and its folders");
  }
}

}  // namespace
}  // namespace penstock
