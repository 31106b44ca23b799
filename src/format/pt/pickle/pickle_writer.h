#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "penstock/value.h"

namespace penstock::format::pickle {

/// Writes values as a pickle of protocol 2, with the opcodes that torch.load(weights_only=True) reads and in the order
/// in which Python's pickler writes them. Equal strings and names, and values that are one node, are written once.
class PickleWriter {
 public:
  /// Writes a tensor: pushes one object, by reduce().
  using TensorHook = std::function<void(PickleWriter&, const Value&)>;
  /// Writes an object that is none of Python's types, by reduce(), or a name, by global(); false for those it does not
  /// know.
  using ObjectHook = std::function<bool(PickleWriter&, const Value&)>;

  PickleWriter(TensorHook tensor, ObjectHook object)
      : tensor_hook_(std::move(tensor)), object_hook_(std::move(object)) {}

  /// The whole pickle of `root`. kUnsupported for what no reader could get back, with the place of the value in it;
  /// kLimit for nesting beyond kMaxDepth by any way to a part, as readers count it.
  std::string write(const Value& root);

  /// Whether objects were written, of which a reader looks at the parts.
  bool wants_proof() const noexcept { return wants_proof_; }

  // For the hooks; each pushes one object.
  void value(const Value& value);
  void none() { op('N'); }
  void boolean(bool value) { op(value ? '\x88' : '\x89'); }
  void integer(std::int64_t value);
  void real(double value);
  void text(std::string_view utf8);
  void global(std::string_view module, std::string_view name);
  /// A tuple of integers; not shared.
  void integers(std::span<const std::int64_t> values);
  /// An empty collections.OrderedDict, a new one.
  void empty_ordered_dict();

  // Composing: mark(), then the items, then tuple(). reduce() calls the last but one with the last.
  void mark() { op('('); }
  void tuple(std::size_t count);
  void reduce();
  void persistent_id() { op('Q'); }
  /// After persistent_id(), which leaves it out: what is pushed can be had again.
  void memoize() { put(); }

  [[noreturn]] void unsupported(std::string message) const;
  /// One of a tensor's sizes.
  std::int64_t integer_of(const Value& value) const;

 private:
  void op(char code) { out_ += code; }
  template <class T>
  void little_endian(T value);
  void put() { put_at(next_memo_++); }
  void put_at(std::uint32_t index);
  void get(std::uint32_t index);
  /// Levels below `value`, which was written just now, with its own.
  std::uint32_t height_of(const Value& value);
  /// Whether it was written before, and then that.
  bool again(const Value& value);
  /// What was put last is `value`.
  void remember(const Value& value);

  void write_value(const Value& value);
  void big_integer(std::string_view decimal);
  void python_text(std::string_view utf8);
  void bytes(const Value& value);
  void complex(std::complex<double> value);
  void list(const Value& value);
  void tuple_value(const Value& value);
  void size_value(const Value& value);
  void dict(const Value& value);
  void dict_items(const Value& value);
  /// What is read back is hashed within bounds.
  void require_readable_key(const Value& key) const;
  void set(const Value& value);
  /// `value` in a place of its own, for errors.
  void child(const Value& value, std::string_view place);
  void child(const Value& value, std::size_t place);

  TensorHook tensor_hook_;
  ObjectHook object_hook_;
  std::string out_;
  std::string place_;
  std::size_t depth_ = 0;
  bool wants_proof_ = false;
  std::uint32_t next_memo_ = 0;
  struct Written {
    std::uint32_t memo;
    std::uint32_t height = 0;  ///< known when all of it is written
  };
  std::unordered_map<const void*, Written> nodes_;
  std::uint32_t height_ = 0;  ///< of the tallest part so far of what is being written
  std::optional<std::uint32_t>
      height_again_;  ///< of what was written just now, where that was by its place in the memo
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::unordered_set<const void*> open_tuples_;
};

}  // namespace penstock::format::pickle
