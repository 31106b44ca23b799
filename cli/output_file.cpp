#include "cli/output_file.h"

#include <sys/stat.h>

#include "core/format.h"
#include "io/file/atomic_file.h"
#include "io/file/output.h"
#include "io/file/url.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

void require_other(const std::string& from, const std::string& to, std::string_view done) {
  if (!io::is_same_place(from, to)) return;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("this is the file that is to be {}; name another one to write", done), {.path = to});
}

void require_new(const std::string& to, bool force) {
  if (force || !io::output_exists(to)) return;
  struct stat target {};
  if (!io::is_url(to) && ::stat(to.c_str(), &target) == 0) io::require_replaceable(target, to);
  throw Error(ErrorCode::kInvalidArgument, "the file exists; name another one, or replace it with --force",
              {.path = to});
}

}  // namespace

void require_no_stream(const std::string& to) {
  if (to != kStandardOutput) return;
  throw Error(ErrorCode::kInvalidArgument,
              "this is not written to standard output: name a file, or ./- for one that is called so", {.path = to});
}

void require_free(const std::string& from, const std::string& to, bool force, std::string_view done) {
  require_no_stream(to);
  io::require_output(to);
  require_other(from, to, done);
  require_new(to, force);
}

void require_other(std::span<const Source> from, const std::string& to, std::string_view done) {
  for (const Source& source : from) require_other(std::string(source.name()), to, done);
}

void require_free(std::span<const Source> from, const std::string& to, bool force, std::string_view done) {
  require_no_stream(to);
  io::require_output(to);
  require_other(from, to, done);
  require_new(to, force);
}

}  // namespace penstock::cli
