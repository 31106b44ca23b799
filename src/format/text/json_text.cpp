#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "core/utf8.h"
#include "format/text/json_value.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::size_t kMaxDepth = 64;

std::string real_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  const std::string text = core::format("{}", value);
  // A whole number without a point would be read back as an integer.
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

/// A text in quotes. Bytes that are no UTF-8 would become half a surrogate pair, which readers refuse.
std::string quoted_text(const std::string& text) {
  if (core::is_utf8(text)) return core::json_quoted(text);
  throw Error(ErrorCode::kUnsupported,
              core::format("the text {} is not UTF-8, and JSON holds no other", core::quoted(text)));
}

/// Writes one value. What comes again is copied from where it stands, because parts that hold parts twice are more than
/// anybody could walk over.
class JsonWriter {
 public:
  explicit JsonWriter(std::size_t most) : most_(most) {}

  std::string text(const Value& root) {
    add(root, 1);
    return std::move(out_);
  }

 private:
  /// Where a list or dict stands, and how many levels it has.
  struct Written {
    std::size_t begin;
    std::size_t length;
    std::size_t height;
  };

  /// Gives the levels of the value.
  std::size_t add(const Value& value, std::size_t depth) {
    switch (value.kind()) {
      case Value::Kind::kNone:
        return put("null");
      case Value::Kind::kBool:
        return put(value.as_bool() ? "true" : "false");
      case Value::Kind::kInt:
        return put(std::to_string(value.as_int()));
      case Value::Kind::kBigInt:
        return put(value.as_string());
      case Value::Kind::kFloat:
        return put(real_text(value.as_float()));
      case Value::Kind::kString:
        return put(quoted_text(value.as_string()));
      case Value::Kind::kList:
      case Value::Kind::kTuple:
      case Value::Kind::kDict:
        return add_container(value, depth);
      default:
        throw Error(ErrorCode::kUnsupported,
                    core::format("found {} in a value that is to be JSON, expected numbers, texts, lists and dicts; "
                                 "give it a field of its own",
                                 value.to_string()));
    }
  }

  std::size_t add_container(const Value& value, std::size_t depth) {
    const auto known = written_.find(value.node_id());
    require_levels(depth - 1 + (known == written_.end() ? 1 : known->second.height));
    if (known != written_.end()) {
      const auto [begin, length, height] = known->second;
      require_room(length);
      out_.append(out_, begin, length);
      return height;
    }
    const std::size_t begin = out_.size();
    const std::size_t height = 1 + (value.is(Value::Kind::kDict) ? add_pairs(value, depth) : add_items(value, depth));
    written_.emplace(value.node_id(), Written{begin, out_.size() - begin, height});
    return height;
  }

  std::size_t add_items(const Value& list, std::size_t depth) {
    std::size_t height = 0;
    put("[");
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) put(", ");
      height = std::max(height, add(list[i], depth + 1));
    }
    put("]");
    return height;
  }

  std::size_t add_pairs(const Value& dict, std::size_t depth) {
    std::size_t height = 0;
    put("{");
    for (std::size_t i = 0; i < dict.size(); ++i) {
      const auto [key, item] = dict.item(i);
      if (!key.is(Value::Kind::kString)) {
        throw Error(ErrorCode::kUnsupported, core::format("JSON has texts for keys; found {}", key.to_string()));
      }
      if (i > 0) put(", ");
      put(quoted_text(key.as_string()) + ": ");
      height = std::max(height, add(item, depth + 1));
    }
    put("}");
    return height;
  }

  std::size_t put(std::string_view text) {
    require_room(text.size());
    out_ += text;
    return 0;
  }

  static void require_levels(std::size_t levels) {
    if (levels <= kMaxDepth) return;
    throw Error(ErrorCode::kLimit,
                core::format("the value is nested deeper than {} levels, and JSON here is not", kMaxDepth));
  }

  void require_room(std::size_t bytes) const {
    if (bytes <= most_ - out_.size()) return;
    throw Error(ErrorCode::kLimit, core::format("the value takes more than {} as JSON", core::format_bytes(most_)));
  }

  std::size_t most_;
  std::string out_;
  std::unordered_map<const void*, Written> written_;
};

}  // namespace

std::string json_text(const Value& value, std::size_t most) { return JsonWriter(most).text(value); }

}  // namespace penstock::format
