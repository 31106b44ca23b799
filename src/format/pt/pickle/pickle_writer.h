#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "format/pt/pickle/pickle_stream.h"
#include "penstock/value.h"

namespace penstock::format::pickle {

/// Writes values as a pickle of protocol 2, with the opcodes that torch.load(weights_only=True) reads and in the order
/// in which Python's pickler writes them. Equal strings and names, and values that are one node, are written once.
class PickleWriter : public PickleStream {
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

  // For the hooks, beside what a PickleStream has; each pushes one object.
  void value(const Value& value);
  /// An empty collections.OrderedDict, a new one.
  void push_empty_ordered_dict();

  /// About the tensor that is being written.
  [[noreturn]] void unsupported(std::string message) const;
  /// About a value that is no tensor.
  [[noreturn]] void refuse(const std::string& message) const;
  /// One of a tensor's sizes.
  std::int64_t integer_of(const Value& value) const;

 private:
  /// Levels below `value`, which was written just now, with its own.
  std::uint32_t height_of(const Value& value);
  /// Whether it was written before, and then that.
  bool again(const Value& value);
  /// What was put last is `value`.
  void remember(const Value& value);

  void write_value(const Value& value);
  void write_big_integer(std::string_view decimal);
  void write_python_text(std::string_view utf8);
  void write_bytes(const Value& value);
  void write_complex(std::complex<double> value);
  void write_list(const Value& value);
  void write_tuple(const Value& value);
  void write_size(const Value& value);
  void write_dict(const Value& value);
  void write_dict_items(const Value& value);
  /// What is read back is hashed within bounds.
  void require_readable_key(const Value& key) const;
  void write_set(const Value& value);
  /// `value` in a place of its own, for errors.
  void write_child(const Value& value, std::string_view place);
  void write_child(const Value& value, std::size_t place);

  TensorHook tensor_hook_;
  ObjectHook object_hook_;
  std::string place_;
  std::size_t depth_ = 0;
  bool wants_proof_ = false;
  struct Written {
    std::uint32_t memo;
    std::uint32_t height = 0;  ///< known when all of it is written
  };
  std::unordered_map<const void*, Written> nodes_;
  std::uint32_t height_ = 0;  ///< of the tallest part so far of what is being written
  std::optional<std::uint32_t>
      height_again_;  ///< of what was written just now, where that was by its place in the memo
  std::unordered_set<const void*> open_tuples_;
};

}  // namespace penstock::format::pickle
