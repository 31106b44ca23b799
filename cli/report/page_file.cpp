#include "cli/report/page_file.h"

#include <cstdint>
#include <memory>
#include <string_view>

#include "cli/output_file.h"
#include "cli/report/page.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "io/file/output.h"

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

void PageFile::require_other(const Archive& from) const {
  if (path != kStandardOutput) cli::require_other(from.sources(), path, kDone);
}

void PageFile::write(const std::function<void(JsonWriter&)>& data) const {
  if (path == kStandardOutput) return write_page([](std::string_view text) { core::print("{}", text); }, data);
  const std::unique_ptr<io::Output> out = io::open_output(path, {.existing = existing(force)});
  write_page([&out](std::string_view text) { out->write_text(text); }, data);
  const std::uint64_t bytes = out->position();
  out->commit();
  if (!quiet) core::print("{}: {}\n", printable(path), human_bytes(static_cast<double>(bytes)));
}

}  // namespace penstock::cli
