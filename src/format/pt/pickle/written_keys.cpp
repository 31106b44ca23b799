// Readers hash the keys of dicts and refuse two equal ones, so both are checked before a file is written. What counts
// as equal follows the rules of Python and of our own reader.

#include "format/pt/pickle/written_keys.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/format.h"
#include "format/pt/pickle/structure.h"
#include "value/graph.h"

namespace penstock::format::pickle {

namespace {

using Kind = Value::Kind;
using Pairs = std::vector<Value>;  // key, value, key, value ...

/// Keys that are sooner compared with each other than looked up.
constexpr std::size_t kFewKeys = 8;

bool is_text_or_integer(const Value& key) { return key.is(Kind::kString) || key.is(Kind::kInt); }

bool can_change(const Value& value) {
  return value.is(Kind::kList) || value.is(Kind::kDict) || (value.is(Kind::kSet) && value.type_name() != "frozenset") ||
         (value.is(Kind::kBytes) && value.type_name() == "bytearray");
}

std::strong_ordering compare_floats(double a, double b) {
  if (a < b) return std::strong_ordering::less;
  if (a > b) return std::strong_ordering::greater;
  return std::isnan(a) <=> std::isnan(b);
}

/// An order in which keys that are one to a reader are neighbours and equal.
std::strong_ordering compare(const Value& a, const Value& b, bool inside_tuple = false) {
  if (a.kind() != b.kind()) return a.kind() <=> b.kind();
  switch (a.kind()) {
    case Kind::kNone:
      return std::strong_ordering::equal;
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kBigInt:
      return a.as_string() <=> b.as_string();
    case Kind::kInt:
      return a.as_int() <=> b.as_int();
    case Kind::kBool:
      return a.as_bool() <=> b.as_bool();
    case Kind::kDType:
      return a.as_dtype().name() <=> b.as_dtype().name();
    case Kind::kGlobal:
      return a.type_name() <=> b.type_name();
    case Kind::kFloat: {
      const auto order = compare_floats(a.as_float(), b.as_float());
      if (order != 0 || !std::isnan(a.as_float())) return order;
      break;  // no NaN is another
    }
    case Kind::kTuple:
      if (inside_tuple) break;
      if (a.size() != b.size()) return a.size() <=> b.size();
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (const auto order = compare(a[i], b[i], true); order != 0) return order;
      }
      return std::strong_ordering::equal;
    default:
      break;
  }
  return std::compare_three_way()(a.node_id(), b.node_id());
}

std::optional<Value> twin_of_few(const Pairs& items) {
  for (std::size_t i = 2; i < items.size(); i += 2) {
    for (std::size_t k = 0; k < i; k += 2) {
      if (compare(items[i], items[k]) == 0) return items[i];
    }
  }
  return std::nullopt;
}

std::optional<Value> twin_of_usual(const Pairs& items) {
  std::unordered_set<std::string_view> texts;
  std::unordered_set<std::int64_t> numbers;
  for (std::size_t i = 0; i < items.size(); i += 2) {
    const Value& key = items[i];
    const bool fresh =
        key.is(Kind::kString) ? texts.insert(key.as_string()).second : numbers.insert(key.as_int()).second;
    if (!fresh) return key;
  }
  return std::nullopt;
}

std::optional<Value> twin_of_any(const Pairs& items) {
  std::vector<const Value*> keys;
  keys.reserve(items.size() / 2);
  for (std::size_t i = 0; i < items.size(); i += 2) keys.push_back(&items[i]);
  std::sort(keys.begin(), keys.end(), [](const Value* a, const Value* b) { return compare(*a, *b) < 0; });
  const auto twin =
      std::adjacent_find(keys.begin(), keys.end(), [](const Value* a, const Value* b) { return compare(*a, *b) == 0; });
  return twin == keys.end() ? std::nullopt : std::optional(**twin);
}

}  // namespace

std::optional<std::string> why_no_key(const Value& key) {
  if (is_text_or_integer(key)) return std::nullopt;
  int parts = 0;
  std::vector<std::pair<Value, int>> open{{key, 0}};
  while (!open.empty()) {
    const auto [value, depth] = std::move(open.back());
    open.pop_back();
    if (can_change(value))
      return core::format("a key is, or has in it, {}, which Python cannot hash", value.to_string());
    if (!value.is(Kind::kTuple)) continue;
    if (depth == kMaxKeyDepth || ++parts > kMaxKeyParts) {
      return core::format("a key nests deeper than {} tuples or has more than {} of them, which would not be read",
                          kMaxKeyDepth, kMaxKeyParts);
    }
    for (std::size_t i = 0; i < value.size(); ++i) open.emplace_back(value[i], depth + 1);
  }
  return std::nullopt;
}

std::optional<Value> twin_key(const Value& dict) {
  const Pairs& items = ValueGraph::node_of(dict)->items;  // without handles, of which a large value makes millions
  if (dict.size() <= kFewKeys) return twin_of_few(items);
  bool usual = true;
  for (std::size_t i = 0; i < items.size(); i += 2) usual = usual && is_text_or_integer(items[i]);
  return usual ? twin_of_usual(items) : twin_of_any(items);
}

}  // namespace penstock::format::pickle
