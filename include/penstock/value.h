#pragma once

/// The nested content of a file or batch: dicts, lists, tensors, numbers, text. `load` returns one. Start at
/// operator[], as_tensor() and the other as_ functions.

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/dtype.h"
#include "penstock/iterate.h"
#include "penstock/tensor.h"

namespace penstock {

namespace detail {
struct ValueNode;
/// Integers, but neither bool nor characters.
template <class T>
concept Number = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
                 !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;
}  // namespace detail

/// The nested content of a file or a batch: scalars, strings, tensors and containers of them. A value handle on an
/// immutable tree. From a `.pt` it is a graph: shared nodes stay shared and cycles are legal, so code that walks it
/// must bound the depth. Nothing in it runs: a call that a pickle asks for becomes a kObject node with the name of the
/// callable and its arguments. Thread-safe.
class Value {
 public:
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kInt,     ///< fits in 64 bits; larger integers are kBigInt
    kBigInt,  ///< decimal text
    kFloat,
    kComplex,
    kString,  ///< UTF-8
    kBytes,   ///< Python bytes or bytearray
    kTensor,  ///< a loaded tensor, or in an index the entry it will be loaded from
    kDType,   ///< torch.float32
    kList,
    kTuple,   ///< tuple, and torch.Size with type_name "torch.Size"
    kDict,    ///< dict, and OrderedDict etc. with their type_name; insertion order kept
    kSet,     ///< set, and frozenset with its type_name
    kObject,  ///< a call of a class or function, which is not made: type_name, arguments as elements, state()
    kGlobal,  ///< a bare name in the file: type_name
  };
  using Item = std::pair<Value, Value>;

  /// None.
  Value();

  // NOLINTBEGIN(google-explicit-constructor): so that content is written as it looks, {{"weight", tensor}, {"epoch",
  // 3}}
  /// What C++ has for it: a bool, number, text (UTF-8) or tensor. kInvalidArgument for an undefined tensor.
  template <std::same_as<bool> T>
  Value(T value) : Value(boolean(value)) {}
  template <detail::Number T>
  Value(T value) : Value(from_integer(value)) {}
  template <std::floating_point T>
  Value(T value) : Value(real(static_cast<double>(value))) {}
  Value(std::complex<double> value) : Value(complex(value)) {}
  Value(std::string utf8) : Value(string(std::move(utf8))) {}
  Value(std::string_view utf8) : Value(string(std::string(utf8))) {}
  Value(const char* utf8) : Value(string(utf8)) {}
  Value(std::nullptr_t) = delete;
  Value(Tensor value) : Value(tensor(std::move(value))) {}
  /// A dict with string keys.
  Value(std::initializer_list<std::pair<std::string, Value>> items) : Value(dict(items)) {}
  // NOLINTEND(google-explicit-constructor)

  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  static Value big_integer(std::string decimal);
  static Value real(double value);
  static Value complex(std::complex<double> value);
  static Value string(std::string utf8);
  static Value bytes(std::string raw);
  static Value tensor(Tensor tensor);  ///< kInvalidArgument for an undefined one
  /// A tensor of an index that is not loaded: the position of its TensorEntry.
  static Value entry(std::size_t index);
  static Value dtype(DType dtype);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items, std::string type_name = {});
  static Value dict(std::vector<Item> items, std::string type_name = {});
  /// A dict with string keys.
  static Value dict(std::vector<std::pair<std::string, Value>> items, std::string type_name = {});
  static Value dict(std::initializer_list<std::pair<std::string, Value>> items, std::string type_name = {}) {
    return dict(std::vector<std::pair<std::string, Value>>(items), std::move(type_name));
  }
  static Value set(std::vector<Value> items, std::string type_name = {});
  static Value object(std::string type_name, std::vector<Value> arguments, std::optional<Value> state = {});
  static Value global(std::string name);

  Kind kind() const noexcept;
  bool is(Kind wanted) const noexcept { return kind() == wanted; }
  /// "OrderedDict", "torch.Size", "mypkg.Config"; empty for the plain kinds.
  const std::string& type_name() const noexcept;

  /// The scalar of that kind; kDTypeMismatch for another kind. as_float also takes kInt.
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_float() const;
  std::complex<double> as_complex() const;
  /// The text of kString, kBytes and kBigInt. Valid while any handle on the value that holds it lives.
  const std::string& as_string() const;
  const DType& as_dtype() const;
  /// The loaded tensor; kInvalidArgument for an entry that is not loaded.
  const Tensor& as_tensor() const&;
  Tensor as_tensor() const&& { return as_tensor(); }
  /// The entry's position in its archive, when this is a tensor that is not loaded.
  std::optional<std::size_t> entry_index() const noexcept;

  /// Elements of list, tuple, set; arguments of an object; number of pairs of a dict.
  std::size_t size() const noexcept;
  Value operator[](std::size_t index) const;  ///< kIndexOutOfRange
  Value operator[](int index) const { return (*this)[static_cast<std::size_t>(index)]; }
  /// Dict look-up by string key; kKeyNotFound lists near keys.
  Value operator[](std::string_view key) const;
  Value operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  std::optional<Value> find(std::string_view key) const;
  /// The i-th pair of a dict.
  Item item(std::size_t index) const;
  /// For range-for: the elements that operator[](index) gives; kDTypeMismatch for other kinds. The pairs of a dict are
  /// `for (const auto& [key, item] : value.items())`.
  using Iterator = detail::IndexIterator<Value>;
  Iterator begin() const;
  Iterator end() const;
  class Items;
  /// kDTypeMismatch for other kinds than a dict.
  Items items() const;
  /// The state that the pickle gave an object or an OrderedDict (`_metadata`), if any.
  std::optional<Value> state() const;

  /// This value with every tensor on `device`. All are moved in one batch; memory that tensors share is moved once and
  /// stays shared. Returns this value itself when all are there already. kInvalidArgument for tensors that are not
  /// loaded.
  Value to(Device device, TransferOptions options = {}) const;

  /// True when both are the same node (Python's `is`).
  bool same_node(const Value& other) const noexcept { return node_ == other.node_; }
  const void* node_id() const noexcept { return node_.get(); }

  /// A readable text of at most a few hundred characters; cycles are shown as "...".
  std::string to_string() const;

 private:
  friend struct detail::ValueNode;
  friend class ValueGraph;
  explicit Value(std::shared_ptr<const detail::ValueNode> node) : node_(std::move(node)) {}
  template <detail::Number T>
  static Value from_integer(T value) {
    if constexpr (std::unsigned_integral<T>) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return big_integer(std::to_string(value));
      }
    }
    return integer(static_cast<std::int64_t>(value));
  }
  [[noreturn]] void throw_not_iterable() const;
  /// A child handle that keeps this value's graph alive.
  Value adopt(const Value& child) const;

  std::shared_ptr<const detail::ValueNode> node_;
};

/// The pairs of a dict, in their order. Keeps the dict.
class Value::Items {
 public:
  struct Pair {
    Item operator()(const Value& dict, std::size_t index) const { return dict.item(index); }
  };
  using Iterator = detail::IndexIterator<Value, Pair>;

  explicit Items(Value dict) : dict_(std::move(dict)) {}
  Iterator begin() const { return {dict_, 0}; }
  Iterator end() const { return {dict_, dict_.size()}; }
  std::size_t size() const noexcept { return dict_.size(); }

 private:
  Value dict_;
};

inline Value::Iterator Value::begin() const {
  if (!is(Kind::kList) && !is(Kind::kTuple) && !is(Kind::kSet) && !is(Kind::kObject)) throw_not_iterable();
  return {*this, 0};
}
inline Value::Iterator Value::end() const { return {*this, size()}; }

}  // namespace penstock
