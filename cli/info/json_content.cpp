#include "cli/info/json_content.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/info/tree.h"
#include "core/format.h"
#include "penstock/value.h"

namespace penstock::cli {
namespace {

using Kind = Value::Kind;
using Layout = JsonWriter::Layout;

/// Text of more bytes is written once, where it has several places.
constexpr std::size_t kLongText = 64;
/// Deeper values are items of "shared": readers of JSON have limits, some of them low.
constexpr std::size_t kMaxDepth = 32;
/// Deeper values stay on one line, or most of the output would be spaces.
constexpr std::size_t kMaxIndented = 6;

/// What the first member of an object can say. A dict with such a key is written as pairs, to be told from them.
constexpr std::array<std::string_view, 12> kWords = {"tensor", "int",   "float", "complex", "bytes",  "dtype",
                                                     "global", "tuple", "set",   "dict",    "object", "shared"};

bool is_text(const Value& value) {
  return value.is(Kind::kString) || value.is(Kind::kBytes) || value.is(Kind::kBigInt);
}

/// What an object's class is rebuilt from. The versions of modules that torch hangs on a state dict are no value of it.
std::optional<Value> state_of(const Value& value) {
  std::optional<Value> state = value.state();
  const bool versions = state && value.is(Kind::kDict) && state->is(Kind::kDict) && state->size() == 1 &&
                        state->find("_metadata").has_value();
  return versions ? std::nullopt : state;
}

/// Whether a reference to it is shorter than the value may be.
bool is_large(const Value& value) {
  if (is_container(value)) return value.size() > 0 || state_of(value).has_value();
  return is_text(value) && value.as_string().size() > kLongText;
}

template <class Visit>
void for_each_part(const Value& value, const Visit& visit) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!value.is(Kind::kDict)) {
      visit(value[i]);
      continue;
    }
    const auto [key, item] = value.item(i);
    visit(key);
    visit(item);
  }
  if (const auto state = state_of(value)) visit(*state);
}

/// The large values of a graph, and how often each is part of another.
class Places {
 public:
  explicit Places(const Value& root) {
    see(root);
    while (!pending_.empty()) {
      const Value value = std::move(pending_.back());
      pending_.pop_back();
      for_each_part(value, [this](const Value& part) { see(part); });
    }
  }

  bool several(const Value& value) const {
    const auto found = count_.find(value.node_id());
    return found != count_.end() && found->second > 1;
  }
  bool several(const std::string& type_name) const {
    const auto found = names_.find(type_name);
    return found != names_.end() && found->second > 1;
  }

 private:
  void see(const Value& value) {
    const bool large = is_large(value);
    if (large && count_[value.node_id()]++ > 0) return;
    if (value.type_name().size() > kLongText) ++names_[value.type_name()];
    if (large && is_container(value)) pending_.push_back(value);
  }

  std::unordered_map<const void*, std::size_t> count_;
  std::unordered_map<std::string, std::size_t> names_;
  std::vector<Value> pending_;
};

class Content {
 public:
  Content(JsonWriter& out, const Archive& archive) : out_(out), archive_(archive), places_(archive.structure()) {}

  void write() {
    out_.write_key("structure");
    place(archive_.structure(), 0);
    out_.write_key("shared");
    out_.begin_array();
    // Writing one may add others.
    for (std::size_t i = 0; i < shared_.size(); ++i) {
      const Value value = shared_[i];
      write_value(value, 0);
    }
    out_.end();
  }

 private:
  /// The value, or what stands for it.
  void place(const Value& value, std::size_t depth) {
    if (is_large(value) && (places_.several(value) || (depth >= kMaxDepth && is_container(value)))) {
      return write_reference(number_of(value));
    }
    write_value(value, depth);
  }

  std::size_t number_of(const Value& value) {
    const auto [found, is_new] = numbers_.try_emplace(value.node_id(), shared_.size());
    if (is_new) shared_.push_back(value);
    return found->second;
  }

  void write_reference(std::size_t number) {
    write_typed("shared", [&] { out_.write_raw(core::format("{}", number)); });
  }

  /// {"WORD": what `write` writes}
  template <class Write>
  void write_typed(std::string_view word, const Write& write) {
    out_.begin_object(Layout::kCompact);
    out_.write_key(word);
    write();
    out_.end();
  }

  void write_typed_text(std::string_view word, std::string_view text) {
    write_typed(word, [&] { out_.write_string(text); });
  }

  void write_value(const Value& value, std::size_t depth) {
    switch (value.kind()) {
      case Kind::kNone:
        return out_.write_raw("null");
      case Kind::kBool:
        return out_.write_raw(value.as_bool() ? "true" : "false");
      case Kind::kInt:
        return out_.write_raw(core::format("{}", value.as_int()));
      case Kind::kBigInt:
        return write_typed_text("int", value.as_string());
      case Kind::kFloat:
        return write_real(value.as_float());
      case Kind::kComplex:
        return write_complex(value);
      case Kind::kString:
        return out_.write_string(value.as_string());
      case Kind::kBytes:
        return write_bytes(value.as_string());
      case Kind::kTensor:
        return write_tensor(value);
      case Kind::kDType:
        return write_typed_text("dtype", value.as_dtype().name());
      case Kind::kGlobal:
        return write_typed("global", [&] { write_name(value.type_name()); });
      case Kind::kObject:
        return write_object(value, depth);
      case Kind::kDict:
        return write_dict(value, depth);
      default:
        return write_sequence(value, depth);
    }
  }

  void write_real(double value) {
    if (!std::isfinite(value)) return write_typed_text("float", std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    std::string text = core::format("{}", value);
    // Else it reads as an int.
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    out_.write_raw(text);
  }

  void write_complex(const Value& value) {
    write_typed("complex", [&] {
      out_.begin_array(Layout::kCompact);
      write_real(value.as_complex().real());
      write_real(value.as_complex().imag());
      out_.end();
    });
  }

  /// Each byte as the character of its number.
  void write_bytes(std::string_view raw) {
    std::string text;
    text.reserve(raw.size());
    for (const char c : raw) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80) {
        text += c;
      } else {
        text += static_cast<char>(0xC0U | byte >> 6U);
        text += static_cast<char>(0x80U | (byte & 0x3FU));
      }
    }
    write_typed_text("bytes", text);
  }

  void write_tensor(const Value& value) {
    const auto index = value.entry_index();
    write_typed_text("tensor", index ? archive_.entries()[*index].name : value.as_tensor().to_string());
  }

  /// The name may be long, and be that of many.
  void write_name(const std::string& name) {
    if (name.size() <= kLongText || !places_.several(name)) return out_.write_string(name);
    const auto [found, is_new] = names_.try_emplace(name, shared_.size());
    if (is_new) shared_.push_back(Value::string(name));
    write_reference(found->second);
  }

  static Layout layout_at(std::size_t depth) { return depth < kMaxIndented ? Layout::kLines : Layout::kCompact; }

  void items(const Value& value, std::size_t depth) {
    out_.begin_array(layout_at(depth));
    for (std::size_t i = 0; i < value.size(); ++i) place(value[i], depth + 1);
    out_.end();
  }

  void write_type_and_state(const Value& value, std::size_t depth) {
    if (!value.type_name().empty()) {
      out_.write_key("type");
      write_name(value.type_name());
    }
    write_state(value, depth);
  }

  void write_state(const Value& value, std::size_t depth) {
    const auto state = state_of(value);
    if (!state) return;
    out_.write_key("state");
    place(*state, depth + 1);
  }

  void write_sequence(const Value& value, std::size_t depth) {
    const bool plain = value.is(Kind::kList) && value.type_name().empty() && !state_of(value);
    if (plain) return items(value, depth);
    out_.begin_object(layout_at(depth));
    out_.write_key(value.is(Kind::kSet) ? "set" : value.is(Kind::kTuple) ? "tuple" : "list");
    items(value, depth + 1);
    write_type_and_state(value, depth);
    out_.end();
  }

  void write_object(const Value& value, std::size_t depth) {
    out_.begin_object(layout_at(depth));
    out_.write_key("object");
    write_name(value.type_name());
    out_.write_key("arguments");
    items(value, depth + 1);
    write_state(value, depth);
    out_.end();
  }

  void write_dict(const Value& value, std::size_t depth) {
    if (is_plain_dict(value)) return write_members(value, depth);
    out_.begin_object(layout_at(depth));
    out_.write_key("dict");
    if (has_plain_keys(value)) {
      write_members(value, depth + 1);
    } else {
      write_pairs(value, depth + 1);
    }
    write_type_and_state(value, depth);
    out_.end();
  }

  void write_members(const Value& value, std::size_t depth) {
    out_.begin_object(layout_at(depth));
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto [key, item] = value.item(i);
      out_.write_key(key.as_string());
      place(item, depth + 1);
    }
    out_.end();
  }

  void write_pairs(const Value& value, std::size_t depth) {
    out_.begin_array(layout_at(depth));
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto [key, item] = value.item(i);
      out_.begin_array(layout_at(depth + 1));
      place(key, depth + 2);
      place(item, depth + 2);
      out_.end();
    }
    out_.end();
  }

  /// Whether it can be a JSON object that nothing else is taken for.
  bool is_plain_dict(const Value& value) const {
    const std::string& type = value.type_name();
    return (type.empty() || type == "OrderedDict" || type == "collections.OrderedDict") && !state_of(value) &&
           has_plain_keys(value) && !has_word(value);
  }

  bool has_plain_keys(const Value& value) const {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const Value key = value.item(i).first;
      if (!key.is(Kind::kString) || (is_large(key) && places_.several(key))) return false;
    }
    return true;
  }

  static bool has_word(const Value& value) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const Value key = value.item(i).first;
      if (std::find(kWords.begin(), kWords.end(), key.as_string()) != kWords.end()) return true;
    }
    return false;
  }

  JsonWriter& out_;
  const Archive& archive_;
  Places places_;
  std::vector<Value> shared_;
  std::unordered_map<const void*, std::size_t> numbers_;
  std::unordered_map<std::string, std::size_t> names_;
};

}  // namespace

void write_content(JsonWriter& out, const Archive& archive) { Content(out, archive).write(); }

}  // namespace penstock::cli
