#include "io/remote/json_text.h"

#include <optional>
#include <utility>

#include "core/json_reader.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

class TextReader final : public core::JsonReader {
 public:
  TextReader(std::string_view json, std::string_view name) : core::JsonReader(json, {}, std::nullopt), name_(name) {}

  std::string found;

 private:
  void on_object() override {
    if (std::exchange(is_open_, true)) skip_object();
  }
  void on_array() override { skip_array(); }
  void on_key(std::string& name) override {
    if (name != name_) skip_value();
  }
  void on_string(std::string& text) override { found = std::move(text); }
  void on_unsigned(std::uint64_t number) override { found = std::to_string(number); }
  void on_other(std::string_view) override {}
  [[noreturn]] void unexpected(std::string_view) override { fail("no value of its kind is expected"); }

  std::string_view name_;
  bool is_open_ = false;
};

}  // namespace

std::string json_text(std::string_view json, std::string_view name) {
  TextReader reader(json, name);
  try {
    reader.read();
  } catch (const Error&) {
    return {};
  }
  return std::move(reader.found);
}

bool is_json_object(const std::string& text) {
  try {
    TextReader(text, {}).read();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace penstock::io::remote
