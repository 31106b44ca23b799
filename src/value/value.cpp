// A Value is a handle on a node of a graph of nested content. A child that belongs to its parent has no owner of its
// own, so a handle to it shares the owner of the whole graph. This allows cycles, which pickles may have, without
// leaks.

#include "penstock/value.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/format.h"
#include "core/parse_number.h"
#include "core/text.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock {

using detail::ValueNode;

namespace {

using Kind = Value::Kind;

constexpr std::array<std::string_view, 16> kKindNames = {
    "None",     "a bool",  "an int", "a large int", "a float", "a complex", "a string",  "bytes",
    "a tensor", "a dtype", "a list", "a tuple",     "a dict",  "a set",     "an object", "a global name"};
static_assert(kKindNames.size() == static_cast<std::size_t>(Kind::kGlobal) + 1);

std::string_view describe(Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

[[noreturn]] void throw_kind(Kind found, std::string_view expected) {
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("the value is {}, where {} was expected", describe(found), expected));
}

[[noreturn]] void throw_index(std::size_t index, std::size_t size, std::string_view what) {
  // A negative int arrives here as a huge size.
  throw Error(ErrorCode::kIndexOutOfRange,
              core::format("index {} is outside {} of {}", static_cast<std::int64_t>(index), what, size));
}

bool is_dict(const ValueNode* node) { return node != nullptr && node->kind == Kind::kDict; }

const std::string* key_text(const ValueNode* key) {
  return key != nullptr && key->kind == Kind::kString ? std::get_if<std::string>(&key->scalar) : nullptr;
}

std::shared_ptr<ValueNode> make_node(Kind kind, ValueNode::Scalar scalar = {}, std::string type_name = {}) {
  auto node = std::make_shared<ValueNode>(kind);
  node->scalar = std::move(scalar);
  node->type_name = std::move(type_name);
  return node;
}

std::shared_ptr<ValueNode> make_container(Kind kind, std::vector<Value> items, std::string type_name) {
  auto node = make_node(kind, {}, std::move(type_name));
  node->items = std::move(items);
  return node;
}

/// The scalar of type T of a node of `kind`, or kDTypeMismatch.
template <class T>
const T& scalar_of(const ValueNode* node, Kind kind) {
  const Kind found = node != nullptr ? node->kind : Kind::kNone;
  if (found != kind) throw_kind(found, describe(kind));
  return std::get<T>(node->scalar);
}

}  // namespace

Value::Value() = default;
Value Value::boolean(Flag value) { return Value(make_node(Kind::kBool, static_cast<bool>(value))); }
Value Value::integer(std::int64_t value) { return Value(make_node(Kind::kInt, value)); }
Value Value::big_integer(std::string decimal) { return Value(make_node(Kind::kBigInt, std::move(decimal))); }
Value Value::real(double value) { return Value(make_node(Kind::kFloat, value)); }
Value Value::complex(std::complex<double> value) { return Value(make_node(Kind::kComplex, value)); }
Value Value::from_text(const char* utf8) {
  if (!utf8) throw Error(ErrorCode::kInvalidArgument, "found a null pointer in place of a text");
  return string(utf8);
}
Value Value::string(std::string utf8) { return Value(make_node(Kind::kString, std::move(utf8))); }
Value Value::bytes(std::string raw) { return Value(make_node(Kind::kBytes, std::move(raw))); }
Value Value::tensor(Tensor tensor) {
  if (!tensor.defined()) throw Error(ErrorCode::kInvalidArgument, "found an undefined tensor, which has no value");
  return Value(make_node(Kind::kTensor, std::make_shared<const Tensor>(std::move(tensor))));
}
Value Value::entry(std::size_t index) { return Value(make_node(Kind::kTensor, ValueNode::Entry{index})); }
Value Value::dtype(DType dtype) { return Value(make_node(Kind::kDType, std::move(dtype))); }

Value Value::list(std::vector<Value> items) { return Value(make_container(Kind::kList, std::move(items), {})); }

Value Value::tuple(std::vector<Value> items, std::string type_name) {
  return Value(make_container(Kind::kTuple, std::move(items), std::move(type_name)));
}

Value Value::dict(std::vector<Item> items, std::string type_name) {
  std::vector<Value> flat;
  flat.reserve(2 * items.size());
  for (Item& item : items) {
    flat.push_back(std::move(item.first));
    flat.push_back(std::move(item.second));
  }
  return Value(make_container(Kind::kDict, std::move(flat), std::move(type_name)));
}

Value Value::dict(std::vector<std::pair<std::string, Value>> items, std::string type_name) {
  std::vector<Value> flat;
  flat.reserve(2 * items.size());
  for (std::pair<std::string, Value>& item : items) {
    flat.push_back(string(std::move(item.first)));
    flat.push_back(std::move(item.second));
  }
  return Value(make_container(Kind::kDict, std::move(flat), std::move(type_name)));
}

Value Value::set(std::vector<Value> items, std::string type_name) {
  return Value(make_container(Kind::kSet, std::move(items), std::move(type_name)));
}

Value Value::object(std::string type_name, std::vector<Value> arguments, std::optional<Value> state) {
  auto node = make_container(Kind::kObject, std::move(arguments), std::move(type_name));
  if (state) node->state = std::make_unique<Value>(*std::move(state));
  return Value(std::move(node));
}

Value Value::global(std::string name) { return Value(make_node(Kind::kGlobal, {}, std::move(name))); }

Value::Kind Value::kind() const noexcept { return node_ ? node_->kind : Kind::kNone; }

const std::string& Value::type_name() const& noexcept {
  static const std::string none;
  return node_ ? node_->type_name : none;
}

bool Value::as_bool() const { return scalar_of<bool>(node_.get(), Kind::kBool); }

std::int64_t Value::as_int() const { return scalar_of<std::int64_t>(node_.get(), Kind::kInt); }

double Value::as_float() const {
  if (is(Kind::kInt)) return static_cast<double>(as_int());
  return scalar_of<double>(node_.get(), Kind::kFloat);
}

const std::complex<double> Value::as_complex() const {
  return scalar_of<std::complex<double>>(node_.get(), Kind::kComplex);
}

const std::string& Value::as_string() const& {
  if (!is(Kind::kBytes) && !is(Kind::kBigInt)) return scalar_of<std::string>(node_.get(), Kind::kString);
  return std::get<std::string>(node_->scalar);
}

const DType& Value::as_dtype() const& { return scalar_of<DType>(node_.get(), Kind::kDType); }

const Tensor& Value::as_tensor() const& {
  if (!is(Kind::kTensor)) throw_kind(kind(), describe(Kind::kTensor));
  if (const auto* tensor = std::get_if<ValueNode::TensorPtr>(&node_->scalar)) return **tensor;
  throw Error(ErrorCode::kInvalidArgument,
              "the tensor is not loaded, because only the index was read; load the archive");
}

const std::optional<std::size_t> Value::entry_index() const noexcept {
  const auto* entry = node_ ? std::get_if<ValueNode::Entry>(&node_->scalar) : nullptr;
  return entry != nullptr ? std::optional(entry->index) : std::nullopt;
}

std::size_t Value::size() const noexcept {
  if (!node_) return 0;
  return is_dict(node_.get()) ? node_->items.size() / 2 : node_->items.size();
}

Value Value::at_place(Integer index) const {
  constexpr std::string_view kExpected = "a list, tuple, set or object";
  const Kind found = kind();
  if (found == Kind::kDict) throw_kind(found, "a list, tuple, set or object (a dict has keys and item(i))");
  if (found != Kind::kList && found != Kind::kTuple && found != Kind::kSet && found != Kind::kObject) {
    throw_kind(found, kExpected);
  }
  const auto at = static_cast<std::size_t>(std::int64_t{index});
  if (at >= node_->items.size()) throw_index(at, node_->items.size(), describe(found));
  return adopt(node_->items[at]);
}

Value Value::operator[](TextView key) const {
  if (std::optional<Value> found = find(key)) return *std::move(found);
  if (!is_dict(node_.get())) throw_kind(kind(), core::format("a dict with the key {}", core::quoted(key)));
  core::NearestNames nearest(key);
  for (std::size_t i = 0; i < node_->items.size(); i += 2) {
    if (const std::string* name = key_text(node_->items[i].node_.get())) nearest.add(*name);
  }
  const std::string hint = core::did_you_mean(nearest.take());
  throw Error(ErrorCode::kKeyNotFound,
              core::format("no key {} in a dict of {}{}{}", core::quoted(key), size(), hint.empty() ? "" : "; ", hint));
}

const std::optional<Value> Value::find(TextView name) const {
  const std::string_view key = name;
  if (!is_dict(node_.get())) return std::nullopt;
  // From the end: of a key that a file gives twice the last one counts, as in Python.
  for (std::size_t i = node_->items.size(); i >= 2; i -= 2) {
    const std::string* text = key_text(node_->items[i - 2].node_.get());
    if (text != nullptr && *text == key) return adopt(node_->items[i - 1]);
  }
  return std::nullopt;
}

std::optional<Value> Value::find_in_dict(TextView key) const {
  if (!is_dict(node_.get())) throw_kind(kind(), core::format("a dict that may have the key {}", core::quoted(key)));
  return find(key);
}

std::uint64_t Value::integer_within(std::int64_t low, std::uint64_t high) const {
  const auto refuse = [&](const std::string& number) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the value is {}, where an integer from {} to {} was asked for", number, low, high));
  };
  if (is(Kind::kBigInt)) {
    const std::string& text = as_string();
    const auto number = core::parse_number<std::uint64_t>(text);
    if (!number || *number > high) refuse(text);
    return *number;
  }
  const std::int64_t number = as_int();
  if (number < low || std::cmp_greater(number, high)) refuse(std::to_string(number));
  return static_cast<std::uint64_t>(number);
}

double Value::real_within(double greatest) const {
  const double number = as_float();
  if (!std::isfinite(number) || std::abs(number) <= greatest) return number;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the value is {}, where a number up to {} was asked for", number, greatest));
}

const Value::Item Value::item(Integer index) const {
  if (!is_dict(node_.get())) throw_kind(kind(), describe(Kind::kDict));
  const auto at = static_cast<std::size_t>(std::int64_t{index});
  if (at >= size()) throw_index(at, size(), describe(Kind::kDict));
  return {adopt(node_->items[2 * at]), adopt(node_->items[2 * at + 1])};
}

const Value::Items Value::items() const {
  if (!is(Kind::kDict)) throw_kind(kind(), describe(Kind::kDict));
  return Items(*this);
}

void Value::throw_not_iterable() const {
  throw_kind(kind(),
             is(Kind::kDict) ? "a list, tuple, set or object (a dict has items())" : "a list, tuple, set or object");
}

const std::optional<Value> Value::state() const {
  if (!node_ || !node_->state) return std::nullopt;
  return adopt(*node_->state);
}

Value Value::adopt(const Value& child) const {
  // A child that owns nothing lies in this value's graph (or is None).
  if (!child.node_ || child.node_.use_count() != 0) return child;
  return Value(std::shared_ptr<const ValueNode>(node_, child.node_.get()));
}

}  // namespace penstock
