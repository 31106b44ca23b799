#include "cli/json/json_writer.h"

#include "core/format.h"
#include "core/text.h"

namespace penstock::cli {

namespace {

constexpr std::size_t kBufferBytes = 1 << 16;

bool printed = false;

}  // namespace

bool is_json_printed() noexcept { return printed; }

JsonWriter::JsonWriter()
    : give_([](std::string_view text) {
        printed = true;
        core::print("{}", text);
      }) {}

void JsonWriter::begin(char open, char close, Layout layout) {
  place();
  if (!levels_.empty() && levels_.back().layout == Layout::kCompact) layout = Layout::kCompact;
  levels_.push_back({close, layout});
  out_ += open;
}

void JsonWriter::end() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && level.layout == Layout::kLines) new_line(levels_.size());
  out_ += level.close;
  flush_when_full();
}

void JsonWriter::write_key(std::string_view name) {
  place();
  out_ += core::json_quoted(name);
  out_ += ": ";
  after_key_ = true;
}

void JsonWriter::write_string(std::string_view text) {
  place();
  out_ += core::json_quoted(text);
  flush_when_full();
}

void JsonWriter::write_raw(std::string_view json) {
  place();
  out_ += json;
  flush_when_full();
}

void JsonWriter::finish() {
  out_ += '\n';
  give_(out_);
  out_.clear();
}

/// What separates the value that comes from those before it.
void JsonWriter::place() {
  if (after_key_ || levels_.empty()) {
    after_key_ = false;
    return;
  }
  Level& level = levels_.back();
  if (!level.empty) out_ += level.layout == Layout::kLines ? "," : ", ";
  level.empty = false;
  if (level.layout == Layout::kLines) new_line(levels_.size());
}

void JsonWriter::new_line(std::size_t levels) { out_.append("\n").append(2 * levels, ' '); }

void JsonWriter::flush_when_full() {
  if (out_.size() < kBufferBytes) return;
  give_(out_);
  out_.clear();
}

}  // namespace penstock::cli
