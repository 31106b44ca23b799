#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace penstock::format::pickle {

/// The opcodes of a pickle of protocol 2, one behind the other. Whoever writes them says what they amount to. Texts and
/// names that come again are fetched from the memo.
class PickleStream {
 public:
  /// Ends the pickle and gives it. The stream is not used any more.
  std::string take();

  // Each pushes one object.
  void push_none() { op('N'); }
  void push_boolean(bool value) { op(value ? '\x88' : '\x89'); }
  void push_integer(std::int64_t value);
  /// The bytes of an integer in two's complement, the lowest first; 255 at most.
  void push_long_integer(std::string_view bytes);
  void push_real(double value);
  /// kUnsupported from 4 GiB on.
  void push_text(std::string_view utf8);
  void push_global(std::string_view module, std::string_view name);
  void push_empty_list();
  void push_empty_dict();
  /// A tuple of integers; not shared.
  void push_integers(std::span<const std::int64_t> values);

  // Composing: mark(), then the items, then one of those that take what is behind the mark.
  void mark() { op('('); }
  /// No mark is needed before 3 items or less.
  void push_tuple(std::size_t count);
  void extend() { op('e'); }     ///< the list below the mark gets the items
  void set_items() { op('u'); }  ///< the dict below the mark gets keys and values
  void append() { op('a'); }     ///< the list gets the one item above it
  void set_item() { op('s'); }   ///< the dict gets the key and the value above it
  void reduce();                 ///< calls the last but one with the last, a tuple
  void make_object();            ///< of the class that is the last, made without arguments
  void build() { op('b'); }      ///< the object gets the state above it
  void push_persistent() { op('Q'); }
  /// After persistent_id(), which leaves it out: what is pushed can be had again.
  void memoize() { put(); }

 protected:
  /// Where the last object that was put into the memo lies there.
  std::uint32_t last_memo() const noexcept { return next_memo_ - 1; }
  void get(std::uint32_t index);

 private:
  void op(char code) { out_ += code; }
  template <class T>
  void little_endian(T value);
  void put();
  /// An opcode with a place in the memo, which is one byte of the first and four of the second.
  void at_memo(char narrow, char wide, std::uint32_t index);

  std::string out_ = "\x80\x02";
  std::uint32_t next_memo_ = 0;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::unordered_map<std::string, std::uint32_t> names_;
};

}  // namespace penstock::format::pickle
