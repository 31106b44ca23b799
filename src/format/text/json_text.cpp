#include <cmath>
#include <string>

#include "core/format.h"
#include "core/text.h"
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

void add(std::string& out, const Value& value, std::size_t depth) {
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
      out += core::json_quoted(value.as_string());
      return;
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      out += '[';
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i > 0) out += ", ";
        add(out, value[i], depth + 1);
      }
      out += ']';
      return;
    case Value::Kind::kDict:
      out += '{';
      for (std::size_t i = 0; i < value.size(); ++i) {
        const auto [key, item] = value.item(i);
        if (!key.is(Value::Kind::kString)) {
          throw Error(ErrorCode::kUnsupported, core::format("JSON has texts for keys; found {}", key.to_string()));
        }
        if (i > 0) out += ", ";
        out += core::json_quoted(key.as_string()) + ": ";
        add(out, item, depth + 1);
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
  add(out, value, 1);
  return out;
}

}  // namespace penstock::format
