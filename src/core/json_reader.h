#pragma once

// Strict reading of JSON that comes from outside: headers of files, states that somebody kept, answers of services.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/error.h"

namespace penstock::core {

/// Reads JSON text as a stream of events: a derived class overrides those it expects, every other one is an error. The
/// nesting is bounded; values nobody asked for can be stepped over, and in them too a name may not occur twice. Memory
/// is what the derived class keeps. Errors have path and byte offset.
class JsonReader {
 public:
  static constexpr std::size_t kMaxDepth = 64;
  /// The most names of objects that are stepped over and have not ended.
  static constexpr std::size_t kMaxSkippedNames = std::size_t{1} << 20;

  /// `text` must outlive the reader; `base` is its offset in the file at `path`. It is nothing where the text does not
  /// lie in a file as it is: then errors have no offset.
  JsonReader(std::string_view text, std::string path, std::optional<std::uint64_t> base,
             std::size_t max_depth = kMaxDepth);
  virtual ~JsonReader() = default;
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  /// Reads the whole text: one object, with JSON's white space around it and nothing else. kCorrupt for what is not
  /// JSON or not UTF-8, kLimit for nesting beyond the most levels.
  void read();
  /// The same for any value: an object, a list, a text, a number.
  void read_any();

 protected:
  virtual void on_object() { unexpected("an object"); }
  virtual void on_object_end() {}
  virtual void on_array() { unexpected("a list"); }
  virtual void on_array_end() {}
  /// A name, unescaped. The text may be moved from.
  virtual void on_key(std::string& name) = 0;
  virtual void on_string(std::string&) { unexpected("a string"); }
  /// A whole number without sign, fraction or exponent that fits in 64 bits.
  virtual void on_unsigned(std::uint64_t) { unexpected("a number"); }
  /// Whole numbers below 0, and numbers with a fraction or exponent or beyond 64 bits; for on_other if not overridden.
  virtual void on_negative(std::int64_t) { on_other("a negative number"); }
  /// `text`: the number as it is written.
  virtual void on_fraction(double, const std::string& text) {
    static_cast<void>(text);
    on_other("a number with a fraction or exponent, or beyond 64 bits");
  }
  virtual void on_boolean(bool) { on_other("a boolean"); }
  virtual void on_null() { on_other("null"); }
  /// Any other scalar: null, a boolean, a negative, fractional or huge number. `kind` says which ("a negative number").
  virtual void on_other(std::string_view kind) { unexpected(kind); }
  /// Called for an event that has no place here; must throw.
  [[noreturn]] virtual void unexpected(std::string_view kind) = 0;

  /// From on_key: step over the value that follows.
  void skip_value() noexcept { skip_next_ = true; }
  /// From on_object or on_array: step over what has just begun; its end is not told.
  void skip_object() { skipped_.emplace_back(std::in_place); }
  void skip_array() { skipped_.emplace_back(std::nullopt); }
  /// Byte offset in the file, just behind the token of this event.
  std::uint64_t offset() const noexcept { return base_.value_or(0) + static_cast<std::uint64_t>(at_ - text_.data()); }
  const std::string& path() const noexcept { return path_; }
  [[noreturn]] void fail(std::string message, std::string tensor = {}, ErrorCode code = ErrorCode::kCorrupt) const;

 private:
  class Events;
  using Names = std::set<std::string, std::less<>>;

  void parse();
  bool skip_scalar() noexcept;
  bool skip_open(bool object);
  bool skip_close();
  bool skip_key(const std::string& name);
  void enter();

  std::string_view text_;
  std::string path_;
  std::optional<std::uint64_t> base_;
  std::size_t max_depth_;
  const char* at_;
  std::size_t depth_ = 0;
  bool skip_next_ = false;
  std::size_t skipped_names_ = 0;
  std::vector<std::optional<Names>> skipped_;  ///< containers of the value being stepped over; a list has no names
};

}  // namespace penstock::core
