#include <cmath>
#include <string>

#include "core/format.h"
#include "core/shared_walk.h"
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

void add(std::string& out, const Value& value, core::SharedWalk& walk, std::size_t depth) {
  if (depth > kMaxDepth) {
    throw Error(ErrorCode::kLimit,
                core::format("the value is nested deeper than {} levels, and JSON here is not", kMaxDepth));
  }
  switch (value.kind()) {
    case Value::Kind::kNone:
      out += "null";
      return;
    case Value::Kind::kBool:
      out += value.as_bool() ? "true" : "false";
      return;
    case Value::Kind::kInt:
      out += std::to_string(value.as_int());
      return;
    case Value::Kind::kBigInt:
      out += value.as_string();
      return;
    case Value::Kind::kFloat:
      out += real_text(value.as_float());
      return;
    case Value::Kind::kString:
      out += quoted_text(value.as_string());
      return;
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      walk.visit(value.node_id(), value.size());
      out += '[';
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i > 0) out += ", ";
        add(out, value[i], walk, depth + 1);
      }
      out += ']';
      return;
    case Value::Kind::kDict:
      walk.visit(value.node_id(), value.size());
      out += '{';
      for (std::size_t i = 0; i < value.size(); ++i) {
        const auto [key, item] = value.item(i);
        if (!key.is(Value::Kind::kString)) {
          throw Error(ErrorCode::kUnsupported, core::format("JSON has texts for keys; found {}", key.to_string()));
        }
        if (i > 0) out += ", ";
        out += quoted_text(key.as_string()) + ": ";
        add(out, item, walk, depth + 1);
      }
      out += '}';
      return;
    default:
      throw Error(ErrorCode::kUnsupported,
                  core::format("found {} in a value that is to be JSON, expected numbers, texts, lists and dicts; give "
                               "it a field of its own",
                               value.to_string()));
  }
}

}  // namespace

std::string json_text(const Value& value) {
  std::string out;
  core::SharedWalk walk("JSON has each of them anew: save as .pt, which keeps what is shared");
  add(out, value, walk, 1);
  return out;
}

}  // namespace penstock::format
