#include "value/part.h"

#include <set>
#include <utility>

#include "core/parse_number.h"

namespace penstock::value {
namespace {

using Kind = Value::Kind;

std::optional<Value> at_step(const Value& value, std::string_view step) {
  if (std::optional<Value> found = value.find(step)) return found;
  const std::optional<std::int64_t> number = core::parse_number<std::int64_t>(step);
  return number ? part_at(value, *number) : std::nullopt;
}

/// Follows several keys joined with dots. Keys may have dots themselves: the longest first key that leads to the end
/// wins.
class PathSearch {
 public:
  std::optional<Value> at(const Value& value, std::string_view path) {
    if (std::optional<Value> found = at_step(value, path)) return found;
    // Keys with dots make many ways to one part. The same rest of the path fails from there each time, so it is tried
    // once.
    if (!tried_.emplace(value.node_id(), path.size()).second) return std::nullopt;
    for (std::size_t dot = path.rfind('.'); dot != path.npos && dot != 0; dot = path.rfind('.', dot - 1)) {
      const std::optional<Value> head = at_step(value, path.substr(0, dot));
      if (!head) continue;
      if (std::optional<Value> found = at(*head, path.substr(dot + 1))) return found;
    }
    return std::nullopt;
  }

 private:
  std::set<std::pair<const void*, std::size_t>> tried_;  ///< parts, and how much of the path was left there
};

}  // namespace

std::optional<Value> part_at(const Value& value, std::string_view path) { return PathSearch().at(value, path); }

std::optional<Value> part_at(const Value& value, std::int64_t key) {
  if (value.is(Kind::kDict)) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto [name, item] = value.item(i);
      if (name.is(Kind::kInt) && name.as_int() == key) return item;
    }
    return std::nullopt;
  }
  const bool is_sequence = value.is(Kind::kList) || value.is(Kind::kTuple);
  if (!is_sequence || key < 0 || static_cast<std::uint64_t>(key) >= value.size()) return std::nullopt;
  return value[static_cast<std::size_t>(key)];
}

}  // namespace penstock::value
