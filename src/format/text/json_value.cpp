// The events of JsonReader, put together. NaN and Infinity are no JSON, but Python writes them: each is replaced by a 0
// before the text is parsed, and the place of that 0 says what it stands for.
#include "format/text/json_value.h"

#include <limits>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/json_reader.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

using NotFinite = std::map<std::uint64_t, double>;  ///< by the offset of the 0 in the text

struct Token {
  std::string_view text;
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Token kTokens[] = {
    {"NaN", std::numeric_limits<double>::quiet_NaN()}, {"-Infinity", -kInfinity}, {"Infinity", kInfinity}};

/// Whether a value may begin behind these characters: else "1NaN" would become "10".
bool may_begin_behind(std::string_view before) noexcept {
  return before.empty() || std::string_view(" \t\r\n[,:").find(before.back()) != std::string_view::npos;
}

/// Replaces such numbers outside of texts by a 0 and blanks.
NotFinite take_not_finite(std::string& text) {
  NotFinite out;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_text && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_text = !in_text;
    } else if (!in_text) {
      for (const Token& token : kTokens) {
        if (text.compare(i, token.text.size(), token.text) != 0) continue;
        if (!may_begin_behind(std::string_view(text).substr(0, i))) continue;
        out.emplace(i, token.value);
        text.replace(i, token.text.size(), token.text.size(), ' ');
        text[i] = '0';
        i += token.text.size() - 1;
        break;
      }
    }
  }
  return out;
}

bool has_not_finite(std::string_view text) noexcept {
  return text.find("NaN") != text.npos || text.find("Infinity") != text.npos;
}

class ValueReader final : public core::JsonReader {
 public:
  ValueReader(std::string_view text, std::string path, std::uint64_t base, const NotFinite& not_finite)
      : JsonReader(text, std::move(path), base), base_(base), not_finite_(not_finite) {}

  Value value() {
    read_any();
    return std::move(*root_);
  }

 private:
  struct Open {
    bool is_object;
    std::vector<Value> items = {};
    std::vector<std::pair<std::string, Value>> pairs = {};
    std::unordered_set<std::string> names = {};
    std::string key = {};
  };

  void on_object() override { open_.push_back({.is_object = true}); }
  void on_object_end() override {
    Open done = take();
    put(Value::dict(std::move(done.pairs)));
  }
  void on_array() override { open_.push_back({.is_object = false}); }
  void on_array_end() override {
    Open done = take();
    put(Value::list(std::move(done.items)));
  }
  void on_key(std::string& name) override {
    if (!open_.back().names.insert(name).second) {
      fail(core::format("the JSON object names {} twice; each name may occur once", core::quoted(name)));
    }
    open_.back().key = std::move(name);
  }
  void on_string(std::string& text) override { put(Value::string(std::move(text))); }
  void on_unsigned(std::uint64_t number) override {
    if (const std::optional<double> other = not_finite()) return put(Value::real(*other));
    put(Value(number));
  }
  void on_negative(std::int64_t number) override { put(Value::integer(number)); }
  void on_fraction(double number, const std::string& text) override {
    const bool is_whole = text.find_first_of(".eE") == text.npos;
    put(is_whole ? Value::big_integer(text) : Value::real(number));
  }
  void on_boolean(bool value) override { put(Value::boolean(value)); }
  void on_null() override { put(Value()); }
  [[noreturn]] void unexpected(std::string_view kind) override { fail(core::format("the JSON holds {}", kind)); }

  /// What the 0 that was just read stands for. The parser has looked at one character behind it.
  std::optional<double> not_finite() const {
    if (not_finite_.empty()) return std::nullopt;
    const std::uint64_t behind = offset() - base_;
    const auto found = not_finite_.find(behind - 2);
    return found == not_finite_.end() ? std::nullopt : std::optional(found->second);
  }
  Open take() {
    Open out = std::move(open_.back());
    open_.pop_back();
    return out;
  }
  void put(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().pairs.emplace_back(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
  }

  std::uint64_t base_;
  const NotFinite& not_finite_;
  std::vector<Open> open_;
  std::optional<Value> root_;
};

}  // namespace

Value json_value(std::string_view text, const std::string& path, std::uint64_t offset) {
  if (!has_not_finite(text)) return ValueReader(text, path, offset, {}).value();
  std::string finite(text);
  const NotFinite numbers = take_not_finite(finite);
  return ValueReader(finite, path, offset, numbers).value();
}

}  // namespace penstock::format
