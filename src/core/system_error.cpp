#include "core/system_error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "core/format.h"

namespace penstock::core {
namespace {

struct Row {
  int err;
  ErrorCode code;
  std::string_view advice;
};

constexpr std::array kRows = std::to_array<Row>({
    {ENOENT, ErrorCode::kNotFound, "check the path"},
    {EISDIR, ErrorCode::kIsDirectory, "a file was expected"},
    {ENOTDIR, ErrorCode::kNotDirectory, "a part of the path is not a folder"},
    {EACCES, ErrorCode::kPermission, "check the permissions of the file and its folders"},
    {EPERM, ErrorCode::kPermission, "check the permissions of the file and its folders"},
    {EROFS, ErrorCode::kPermission, "write somewhere else"},
    {ETXTBSY, ErrorCode::kPermission, ""},
    {ENAMETOOLONG, ErrorCode::kIo, "use a shorter path"},
    {ELOOP, ErrorCode::kNotFound, "its symbolic links lead in a circle"},
    {ENOMEM, ErrorCode::kOutOfMemory, "free memory or ask for less"},
    {EMFILE, ErrorCode::kIo, "raise the limit on open files (ulimit -n)"},
    {ENFILE, ErrorCode::kIo, "close files in other programs"},
    {ENOSPC, ErrorCode::kIo, "free space on the disk"},
    {EDQUOT, ErrorCode::kIo, "free space in your quota"},
    {EFBIG, ErrorCode::kIo, "the file system or a limit (RLIMIT_FSIZE) takes no larger files"},
    {ESTALE, ErrorCode::kChanged, "the file was replaced on its server: open it again"},
    {ETIMEDOUT, ErrorCode::kTimeout, ""},
    {ECANCELED, ErrorCode::kCancelled, ""},
});

const Row* find_row(int err) noexcept {
  const auto* row = std::find_if(kRows.begin(), kRows.end(), [err](const Row& r) { return r.err == err; });
  return row == kRows.end() ? nullptr : row;
}

}  // namespace

ErrorCode code_of_errno(int err) noexcept {
  const Row* row = find_row(err);
  return row != nullptr ? row->code : ErrorCode::kIo;
}

void throw_errno(int err, std::string_view what, ErrorContext context) {
  std::string message = core::format("{}: {}", what, std::generic_category().message(err));
  const Row* row = find_row(err);
  if (row != nullptr && !row->advice.empty()) message += core::format("; {}", row->advice);
  context.system_error = err;
  throw Error(code_of_errno(err), std::move(message), std::move(context));
}

}  // namespace penstock::core
