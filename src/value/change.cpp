// A value does not change: what differs in one item is another value, which shares all other items with it.

#include <utility>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock {
namespace {

using Kind = Value::Kind;

bool has_items(const Value& value) {
  return value.is(Kind::kList) || value.is(Kind::kTuple) || value.is(Kind::kSet) || value.is(Kind::kObject);
}

Value rebuilt(const Value& like, std::vector<Value> items) {
  switch (like.kind()) {
    case Kind::kList:
      return Value::list(std::move(items));
    case Kind::kTuple:
      return Value::tuple(std::move(items), like.type_name());
    case Kind::kSet:
      return Value::set(std::move(items), like.type_name());
    default:
      return Value::object(like.type_name(), std::move(items), like.state());
  }
}

}  // namespace

Value Value::with(TextView name, Value item) const {
  const std::string_view key = name;
  if (!is(Kind::kDict)) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("the key {} was given for a value that is no dict: {}", core::quoted(key), to_string()));
  }
  std::vector<Item> pairs;
  std::size_t place = size();
  for (std::size_t i = 0; i < size(); ++i) {
    pairs.push_back(this->item(i));
    // Of a key that is there twice the last one counts.
    if (pairs.back().first.is(Kind::kString) && pairs.back().first.as_string() == key) place = i;
  }
  if (place == pairs.size()) pairs.emplace_back(string(std::string(key)), Value());
  pairs[place].second = std::move(item);
  Value out = dict(std::move(pairs), type_name());
  if (const std::optional<Value> state = this->state()) {
    const_cast<detail::ValueNode&>(*out.node_).state = std::make_unique<Value>(*state);
  }
  return out;
}

Value Value::with_at(Integer index, Value item) const {
  if (!has_items(*this)) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("a position was given for what is no list, tuple, set or object: {}", to_string()));
  }
  static_cast<void>(at_place(index));
  std::vector<Value> items;
  for (std::size_t i = 0; i < size(); ++i) items.push_back((*this)[i]);
  items[static_cast<std::size_t>(std::int64_t{index})] = std::move(item);
  return rebuilt(*this, std::move(items));
}

}  // namespace penstock
