#include "cli/output_file.h"

#include <filesystem>
#include <system_error>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::cli {

void require_free(const std::string& from, const std::string& to, bool force, std::string_view done) {
  std::error_code ignored;
  if (std::filesystem::equivalent(from, to, ignored)) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("this is the file that is to be {}; name another one to write", done), {.path = to});
  }
  if (force || !std::filesystem::exists(to, ignored)) return;
  throw Error(ErrorCode::kInvalidArgument, "the file exists; name another one, or replace it with --force",
              {.path = to});
}

void require_free(std::span<const Source> from, const std::string& to, bool force, std::string_view done) {
  for (const Source& source : from) require_free(std::string(source.name()), to, force, done);
}

}  // namespace penstock::cli
