// nlohmann::json parses and this class decides what is accepted. The parser reports events and builds no value, so that
// memory does not grow with a hostile file. What the parser does not check is checked here: names that occur twice, the
// depth, zero bytes, and that the text is one object.

#include "core/json_reader.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/format.h"
#include "core/text.h"

namespace penstock::core {
namespace {

using Json = nlohmann::json;

/// A char iterator that tells where it is, for the offsets of errors.
class TrackedChars {
 public:
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  TrackedChars(const char* at, const char** told) noexcept : at_(at), told_(told) {}
  reference operator*() const noexcept { return *at_; }
  TrackedChars& operator++() noexcept {
    *told_ = ++at_;
    return *this;
  }
  bool operator==(const TrackedChars& other) const noexcept { return at_ == other.at_; }
  bool operator!=(const TrackedChars& other) const noexcept { return at_ != other.at_; }

 private:
  const char* at_;
  const char** told_;
};

/// The parser's own words without its prefix, its line numbers and the text it quotes, which may be megabytes.
std::string reason(std::string_view what) {
  if (const auto colon = what.find("column"); colon != what.npos) {
    if (const auto start = what.find(": ", colon); start != what.npos) what.remove_prefix(start + 2);
  }
  if (what.find("number overflow") != what.npos) return "a number in it is too large";
  if (const auto quote = what.find("; last read:"); quote != what.npos) what = what.substr(0, quote);
  return core::escaped(what.substr(0, 200));
}

}  // namespace

/// Translates the parser's events: steps over what is to be skipped, hands on the rest.
class JsonReader::Events final : public nlohmann::json_sax<Json> {
 public:
  explicit Events(JsonReader& reader) : reader_(reader) {}

  bool null() override {
    if (!reader_.skip_scalar()) reader_.on_null();
    return true;
  }
  bool boolean(bool value) override {
    if (!reader_.skip_scalar()) reader_.on_boolean(value);
    return true;
  }
  bool number_integer(number_integer_t value) override {
    if (!reader_.skip_scalar()) reader_.on_negative(value);
    return true;
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (!reader_.skip_scalar()) reader_.on_fraction(value, text);
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!reader_.skip_scalar()) reader_.on_unsigned(value);
    return true;
  }
  bool string(string_t& value) override {
    if (!reader_.skip_scalar()) reader_.on_string(value);
    return true;
  }
  bool start_object(std::size_t) override {
    reader_.enter();
    if (!reader_.skip_open(true)) reader_.on_object();
    return true;
  }
  bool start_array(std::size_t) override {
    reader_.enter();
    if (!reader_.skip_open(false)) reader_.on_array();
    return true;
  }
  bool end_object() override {
    --reader_.depth_;
    if (!reader_.skip_close()) reader_.on_object_end();
    return true;
  }
  bool end_array() override {
    --reader_.depth_;
    if (!reader_.skip_close()) reader_.on_array_end();
    return true;
  }
  bool key(string_t& name) override {
    if (!reader_.skip_key(name)) reader_.on_key(name);
    return true;
  }
  bool binary(Json::binary_t&) override { return other("binary data"); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    reader_.fail(core::format("the JSON is broken: {}", reason(error.what())));
  }

 private:
  bool other(std::string_view kind) {
    if (!reader_.skip_scalar()) reader_.on_other(kind);
    return true;
  }

  JsonReader& reader_;
};

JsonReader::JsonReader(std::string_view text, std::string path, std::optional<std::uint64_t> base,
                       std::size_t max_depth)
    : text_(text), path_(std::move(path)), base_(base), max_depth_(max_depth), at_(text.data()) {}

void JsonReader::read() {
  const std::size_t start = text_.find_first_not_of(" \t\r\n");
  if (start == text_.npos || text_[start] != '{') {
    // Said here because the parser would take a byte order mark, a list or a lone number.
    fail("the JSON is broken: it must be one object, that is begin with '{'");
  }
  parse();
}

void JsonReader::read_any() { parse(); }

void JsonReader::parse() {
  if (const std::size_t nul = text_.find('\0'); nul != text_.npos) {
    at_ = text_.data() + nul;  // The parser takes a NUL for the end of the text and would not look behind it.
    fail("the JSON is broken: it holds a zero byte");
  }
  Events events(*this);
  const char* end = text_.data() + text_.size();
  Json::sax_parse(TrackedChars(text_.data(), &at_), TrackedChars(end, &at_), &events);
}

void JsonReader::fail(std::string message, std::string tensor, ErrorCode code) const {
  throw Error(code, std::move(message), {path_, base_ ? std::optional(offset()) : std::nullopt, std::move(tensor)});
}

bool JsonReader::skip_scalar() noexcept { return std::exchange(skip_next_, false) || !skipped_.empty(); }

bool JsonReader::skip_open(bool object) {
  if (!std::exchange(skip_next_, false) && skipped_.empty()) return false;
  object ? skip_object() : skip_array();
  return true;
}

bool JsonReader::skip_close() {
  if (skipped_.empty()) return false;
  if (skipped_.back()) skipped_names_ -= skipped_.back()->size();
  skipped_.pop_back();
  return true;
}

bool JsonReader::skip_key(const std::string& name) {
  if (skipped_.empty()) return false;
  if (!skipped_.back()->insert(name).second) {
    fail(core::format("the JSON object names {} twice; each name may occur once", core::quoted(name)));
  }
  if (++skipped_names_ > kMaxSkippedNames) {
    fail(core::format("the JSON has an object of more than {} names that are not used", kMaxSkippedNames), {},
         ErrorCode::kLimit);
  }
  return true;
}

void JsonReader::enter() {
  if (++depth_ > max_depth_) {
    fail(core::format("the JSON is nested deeper than {} levels", max_depth_), {}, ErrorCode::kLimit);
  }
}

}  // namespace penstock::core
