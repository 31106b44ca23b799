#pragma once

/// The nested content of a file or batch: dicts, lists, tensors, numbers, text. `load` returns one. Start at
/// operator[], as_tensor() and the other as_ functions.

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/dtype.h"
#include "penstock/flag.h"
#include "penstock/integer.h"
#include "penstock/iterate.h"
#include "penstock/tensor.h"
#include "penstock/text_view.h"

namespace penstock {

namespace detail {
struct ValueNode;
template <class T>
struct VectorOf : std::false_type {};
template <class T>
struct VectorOf<std::vector<T>> : std::true_type {};
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
  Value(const Value&) = default;
  Value(Value&&) noexcept = default;
  /// Names another value by this handle, and changes none; so a temporary refuses it: `v["epoch"] = 4` does not
  /// compile, `v = v.with("epoch", 4)` is what it means.
  Value& operator=(const Value&) & = default;
  Value& operator=(Value&&) & noexcept = default;
  ~Value() = default;

  // NOLINTBEGIN(google-explicit-constructor): so that content is written as it looks, {{"weight", tensor}, {"epoch",
  // 3}}
  /// What C++ has for it: a bool, number, text (UTF-8) or tensor, and no character. kInvalidArgument for an undefined
  /// tensor and a null pointer.
  template <std::same_as<bool> T>
  Value(T value) : Value(boolean(value)) {}
  template <detail::Number T>
  Value(T value) : Value(from_integer(value)) {}
  /// An option as it stands there: {{"batch_size", options.batch_size}, {"shuffle", options.shuffle}}.
  template <std::same_as<Integer> T>
  Value(T value) : Value(integer(value)) {}
  template <std::same_as<Flag> T>
  Value(T value) : Value(boolean(value)) {}
  template <std::floating_point T>
  Value(T value) : Value(real(static_cast<double>(value))) {}
  template <std::floating_point T>
  Value(std::complex<T> value) : Value(complex(std::complex<double>(value))) {}
  Value(std::string utf8) : Value(string(std::move(utf8))) {}
  Value(std::string_view utf8) : Value(string(std::string(utf8))) {}
  Value(const char* utf8) : Value(from_text(utf8)) {}
  Value(std::nullptr_t) = delete;
  Value(Tensor value) : Value(tensor(std::move(value))) {}
  /// A list.
  template <std::same_as<std::vector<std::string>> T>
  Value(T texts)
      : Value(list(std::vector<Value>(std::move_iterator(texts.begin()), std::move_iterator(texts.end())))) {}
  template <std::same_as<std::vector<Value>> T>
  Value(T items) : Value(list(std::move(items))) {}
  /// A dict with string keys, in the order of the map.
  template <class Mapped>
  Value(const std::map<std::string, Mapped>& items)
      : Value(dict(std::vector<std::pair<std::string, Value>>(items.begin(), items.end()))) {}
  /// A dict with string keys.
  Value(std::initializer_list<std::pair<std::string, Value>> items) : Value(dict(items)) {}
  // NOLINTEND(google-explicit-constructor)

  static Value boolean(Flag value);
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
  const std::string& type_name() const& noexcept;
  const std::string type_name() const&& { return type_name(); }

  /// The scalar of that kind; kDTypeMismatch for another kind. as_float also takes kInt.
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_float() const;
  const std::complex<double> as_complex() const;
  /// The text of kString, kBytes and kBigInt. Valid while any handle on the value that holds it lives.
  const std::string& as_string() const&;
  const std::string as_string() const&& { return as_string(); }
  const DType& as_dtype() const&;
  DType as_dtype() const&& { return as_dtype(); }
  /// The loaded tensor; kInvalidArgument for an entry that is not loaded.
  const Tensor& as_tensor() const&;
  Tensor as_tensor() const&& { return as_tensor(); }
  /// The content as a C++ type: bool, an integer, a floating-point number (also of kInt), std::complex<double>,
  /// std::string, Tensor, DType, Value itself, or std::vector of one of these, of a list or tuple. kDTypeMismatch for
  /// another kind, kInvalidArgument for a number that T does not hold.
  template <class T>
  detail::Given<T> get() const {
    return content<T>();
  }
  /// What a dict has under `key`, or `fallback` where it has no such key; kDTypeMismatch for other kinds than a dict.
  template <class T>
  detail::Given<T> value_or(TextView key, T fallback) const {
    const std::optional<Value> found = find_in_dict(key);
    return found ? found->template content<T>() : std::move(fallback);
  }
  const std::string value_or(TextView key, const char* fallback) const {
    return value_or(key, std::string(std::string_view(TextView(fallback))));
  }
  /// The entry's position in its archive, when this is a tensor that is not loaded.
  const std::optional<std::size_t> entry_index() const noexcept;

  /// Elements of list, tuple, set; arguments of an object; number of pairs of a dict.
  std::size_t size() const noexcept;
  template <detail::IndexLike T>
  Value operator[](T index) const {  ///< kIndexOutOfRange
    return at_place(index);
  }
  /// Dict look-up by string key; kKeyNotFound lists near keys.
  Value operator[](TextView key) const;
  const std::optional<Value> find(TextView key) const;
  bool contains(TextView key) const { return find(key).has_value(); }
  /// This dict with `item` under `key`, in the place of what is there, or behind the others. The dict itself stays as
  /// it is. kDTypeMismatch for other kinds.
  Value with(TextView key, Value item) const;
  /// This list, tuple, set or object with `item` at `index`. kIndexOutOfRange, kDTypeMismatch.
  template <detail::IndexLike T>
  Value with(T index, Value item) const {
    return with_at(index, std::move(item));
  }
  /// The i-th pair of a dict.
  const Item item(Integer index) const;
  /// For range-for: the elements that operator[](index) gives; kDTypeMismatch for other kinds. The pairs of a dict are
  /// `for (const auto& [key, item] : value.items())`.
  using Iterator = detail::IndexIterator<Value>;
  Iterator begin() const;
  Iterator end() const;
  class Items;
  /// kDTypeMismatch for other kinds than a dict.
  const Items items() const;
  /// The state that the pickle gave an object or an OrderedDict (`_metadata`), if any.
  const std::optional<Value> state() const;

  /// This value with every tensor on `device`. All are moved in one batch; memory that tensors share is moved once and
  /// stays shared. Returns this value itself when all are there already. kInvalidArgument for tensors that are not
  /// loaded.
  Value to(Device device, TransferOptions options = {}) const;

  /// True when both are the same node (Python's `is`).
  bool same_node(const Value& other) const noexcept { return node_ == other.node_; }
  const void* node_id() const noexcept { return node_.get(); }
  /// True when kinds, type names and contents are equal: numbers by value (NaN equals no number), tensors by
  /// Tensor::identical, dicts and sets in any order. An int equals no float, and a list no tuple.
  friend bool operator==(const Value& a, const Value& b) { return equal(a, b); }

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
  static bool equal(const Value& a, const Value& b);
  std::optional<Value> find_in_dict(TextView key) const;
  static Value from_text(const char* utf8);
  Value at_place(Integer index) const;
  Value with_at(Integer index, Value item) const;
  template <class T>
  T content() const;
  /// The integer, as the bits of an std::int64_t or std::uint64_t; kInvalidArgument outside of [low, high].
  std::uint64_t integer_within(std::int64_t low, std::uint64_t high) const;
  double real_within(double greatest) const;
  /// A child handle that keeps this value's graph alive.
  Value adopt(const Value& child) const;

  std::shared_ptr<const detail::ValueNode> node_;
};

/// The pairs of a dict, in their order. Keeps the dict, and is a view, so that `value.items() | adaptor` compiles.
class Value::Items : public std::ranges::view_base {
 public:
  struct Pair {
    const Item operator()(const Value& dict, std::size_t index) const { return dict.item(index); }
  };
  using Iterator = detail::IndexIterator<Value, Pair>;

  explicit Items(Value dict) : dict_(std::move(dict)) {}
  Iterator begin() const { return {dict_, 0}; }
  Iterator end() const { return {dict_, dict_.size()}; }
  std::size_t size() const noexcept { return dict_.size(); }

 private:
  Value dict_;
};

template <class T>
T Value::content() const {
  if constexpr (std::same_as<T, bool>) {
    return as_bool();
  } else if constexpr (detail::Number<T>) {
    using Limits = std::numeric_limits<T>;
    return static_cast<T>(
        integer_within(static_cast<std::int64_t>(Limits::min()), static_cast<std::uint64_t>(Limits::max())));
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(real_within(static_cast<double>(std::numeric_limits<T>::max())));
  } else if constexpr (std::same_as<T, std::complex<double>>) {
    return as_complex();
  } else if constexpr (std::same_as<T, std::string>) {
    return as_string();
  } else if constexpr (std::same_as<T, Tensor>) {
    return as_tensor();
  } else if constexpr (std::same_as<T, DType>) {
    return as_dtype();
  } else if constexpr (std::same_as<T, Value>) {
    return *this;
  } else {
    static_assert(detail::VectorOf<T>::value, "a Value holds nothing of this C++ type");
    T out;
    for (const Value& item : *this) out.push_back(item.template content<typename T::value_type>());
    return out;
  }
}

inline Value::Iterator Value::begin() const {
  if (!is(Kind::kList) && !is(Kind::kTuple) && !is(Kind::kSet) && !is(Kind::kObject)) throw_not_iterable();
  return {*this, 0};
}
inline Value::Iterator Value::end() const { return {*this, size()}; }

/// value.to_string(). A template, so that nothing is made a Value in order to be printed.
template <std::same_as<Value> T>
std::ostream& operator<<(std::ostream& out, const T& value) {
  return out << value.to_string();
}

}  // namespace penstock
