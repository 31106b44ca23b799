#pragma once

// The pickle machine, protocols 0 to 5, without any way to run something: it builds cells, and a Resolver says what
// names mean. Opcodes as in CPython's Lib/pickletools.py.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/cursor.h"
#include "format/pt/pickle/cell.h"

namespace penstock::format::pickle {

/// Budgets against hostile pickles; exceeding one is kLimit. They grow with the size of the pickle, because an honest
/// pickle has bytes for each of its values.
struct Limits {
  /// What even the smallest pickle may use. Beyond that a pickler writes at least two bytes for each object, and one
  /// byte for each place in the memo or on the stack.
  static constexpr std::size_t kAlways = 250'000;

  /// The budgets of a pickle of that many bytes.
  static Limits of(std::uint64_t bytes) noexcept {
    return {.cells = kAlways + bytes / 2, .memo = kAlways + bytes, .stack = kAlways + bytes};
  }

  std::size_t cells = kAlways;
  std::size_t memo = kAlways;
  std::size_t stack = kAlways;
  /// How many bytes of text decoding may make beyond eight times the size of the pickle.
  std::size_t text_slack = std::size_t{64} << 20;
};

/// The type name of the lists and dicts that APPENDS and SETITEMS made for an object of an unknown class.
inline constexpr std::string_view kItemsName = "items";

/// Says what a pickle's names stand for. Nothing is ever run: the answers are cells. Errors may leave path and offset
/// open; the machine fills them in.
class Resolver {
 public:
  virtual ~Resolver() = default;
  /// GLOBAL: a kGlobal cell with that (canonical) name, or what the name is.
  virtual Cell* global(std::string_view module, std::string_view name) = 0;
  /// REDUCE, NEWOBJ, OBJ, INST: the result of the call; an inert kObject for what is not known. `callable` is kGlobal
  /// or kObject.
  virtual Cell* call(Cell* callable, std::span<Cell* const> arguments) = 0;
  /// What such a call gives where nothing is known of the name, or with keywords, which come last: an inert kObject.
  virtual Cell* inert(Cell* callable, std::span<Cell* const> arguments) = 0;
  /// BUILD: gives `object` its state.
  virtual void build(Cell* object, Cell* state) = 0;
  /// BINPERSID, PERSID: what lies outside the pickle.
  virtual Cell* persistent(Cell* id) = 0;
};

/// What keeps its place in the memo, by index: dense as long as indices come in order, a map for the others.
class Memo {
 public:
  Memo() { dense_.reserve(64); }
  void put(std::uint64_t index, Cell* cell);
  Cell* get(std::uint64_t index) const noexcept;
  std::size_t size() const noexcept { return dense_.size() + sparse_.size(); }

 private:
  std::vector<Cell*> dense_;
  std::unordered_map<std::uint64_t, Cell*> sparse_;
};

/// One cell for each integer from 0 to 65535, made when first met: lists of labels and of tokens are millions of these.
class IntegerCells {
 public:
  /// Where the cell of `value` is kept, null at first; no place for other integers, nor for the first few of two bytes,
  /// which are all that a small file has: tables would cost more than they save.
  Cell** place(std::int64_t value) {
    if (value < 0 || value >= kPageSize * kPages) return nullptr;
    if (value < kPageSize) return &first_[static_cast<std::size_t>(value)];
    if (pages_.empty()) {
      if (++met_ < kFew) return nullptr;
      pages_.resize(kPages);
    }
    auto& page = pages_[static_cast<std::size_t>(value / kPageSize)];
    if (!page) page = std::make_unique<Page>();
    return &(*page)[static_cast<std::size_t>(value % kPageSize)];
  }

 private:
  static constexpr std::int64_t kPageSize = 256;
  static constexpr std::int64_t kPages = 256;
  static constexpr std::size_t kFew = 1000;
  using Page = std::array<Cell*, kPageSize>;

  Page first_{};
  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t met_ = 0;  ///< integers of two bytes, while there are no pages
};

/// Reads one pickle. `bytes` must outlive the arena's cells, which view it.
class Machine {
 public:
  /// `base`: the absolute offset of bytes[0], for errors.
  Machine(std::span<const std::byte> bytes, std::uint64_t base, CellArena& arena, Resolver& resolver,
          const Limits& limits = {});

  /// Runs to STOP and gives the result. kTruncated where the bytes end before it; kCorrupt, kUnsafe, kUnsupported and
  /// kLimit with the opcode's name and offset.
  Cell* run();
  /// Bytes taken by `run`, STOP included.
  std::size_t consumed() const noexcept { return in_.position(); }

 private:
  struct Opcode {
    const char* name = nullptr;
    void (*act)(Machine&) = nullptr;  ///< null: known but refused
  };
  using Kind = Value::Kind;
  static const std::array<Opcode, 256>& opcodes() noexcept;

  void step();
  [[noreturn]] void refuse(std::uint8_t code) const;

  // Stack.
  std::size_t floor() const noexcept { return marks_.empty() ? 0 : marks_.back(); }
  void push(Cell* cell);
  Cell* pop();
  Cell* top();
  std::span<Cell* const> above_mark();
  void push_mark();
  void drop_mark();

  // Making cells.
  Cell* make(Kind kind) { return arena_->add(kind); }
  void push_bool(bool value) { push(value ? true_ : false_); }
  void push_int(std::int64_t value);
  void push_long(std::span<const std::byte> little_endian);
  void push_decimal(std::string_view text);
  void push_text(Kind kind, std::string_view text);
  void push_unicode(std::string_view utf8);
  void push_python2_string(std::string_view bytes);
  /// A list or tuple of what lies above the mark, which goes.
  void push_from_mark(Kind kind);
  void push_small_tuple(std::size_t count);

  // Changing cells.
  using Take = void (Machine::*)(Cell* target, std::span<Cell* const> items);
  /// Gives what lies above the mark, which goes, to what lies below it.
  void take_items(Take take);
  void append_to(Cell* target, std::span<Cell* const> items);
  void set_items(Cell* target, std::span<Cell* const> pairs);
  void add_items(Cell* target, std::span<Cell* const> items);
  Cell* collector(Cell* object, Role role);
  void require_hashable(Cell* key);
  void require_callable(const Cell* callable) const;
  void call(Cell* callable, std::span<Cell* const> arguments);
  static std::span<Cell* const> arguments_of(Cell* tuple);
  void put(std::uint64_t index);
  void get(std::uint64_t index);
  std::uint64_t line_index();
  std::string_view take_sized(std::uint64_t length);

  // One for each opcode that is more than a line.
  void op_proto();
  void op_frame();
  void op_pop();
  void op_int();
  void op_long();
  void op_float();
  void op_binfloat();
  void op_string();
  void op_unicode();
  void op_bytearray8();
  void op_global();
  void op_stack_global();
  void op_inst();
  void op_obj();
  void op_reduce();
  void op_newobj_ex();
  void op_build();
  void op_dict();
  void op_frozenset();

  core::Cursor in_;
  CellArena* arena_;
  Resolver* resolver_;
  Limits limits_;
  std::vector<Cell*> stack_;
  std::vector<std::size_t> marks_;
  Memo memo_;
  bool stopped_ = false;
  const char* opcode_ = "";  ///< name of the current one, for errors
  std::uint64_t at_ = 0;     ///< its absolute offset
  Cell *none_, *true_, *false_, *empty_;
  IntegerCells integers_;
  std::unordered_set<const Cell*> hashable_;  ///< tuples that were looked at
};

}  // namespace penstock::format::pickle
