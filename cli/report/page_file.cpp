#include "cli/report/page_file.h"

#include <cstdint>
#include <string_view>

#include "cli/output_file.h"
#include "cli/report/page.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "io/file/atomic_file.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kDone = "reported on";

}  // namespace

void PageFile::require_free(const Archive& from) const {
  if (path != kStandardOutput) cli::require_free(from.sources(), path, force, kDone);
}

void PageFile::require_free(const std::string& from) const {
  if (path != kStandardOutput) cli::require_free(from, path, force, kDone);
}

void PageFile::write(const std::function<void(JsonWriter&)>& data) const {
  if (path == kStandardOutput) return write_page([](std::string_view text) { core::print("{}", text); }, data);
  io::AtomicFile file(path);
  write_page([&file](std::string_view text) { file.write_text(text); }, data);
  const std::uint64_t bytes = file.position();
  file.commit();
  core::print("{}: {}\n", printable(path), human_bytes(static_cast<double>(bytes)));
}

}  // namespace penstock::cli
