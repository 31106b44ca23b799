#pragma once

// What a pickle is made of while it is read (pickle_vm.h): cells in an arena, because most of them are arguments of
// calls and never become values.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string_view>

#include "penstock/value.h"

namespace penstock::format::pickle {

/// What a cell means to the code that knows the names in the file, besides its kind.
enum class Role : std::uint8_t {
  kPlain,        ///< an object of this role is of an unknown class, which may be a list or dict and take items
  kSealed,       ///< kObject of a known class: takes neither items nor state
  kTensor,       ///< kTensor: `ref` is its position in World::tensors
  kStorage,      ///< kObject: `ref` is its position in World::views
  kStorageType,  ///< kGlobal: `dtype` is its elements' type, `boolean` whether it is untyped
  kNumpyDType,   ///< kObject: items are the arguments, `state` what BUILD gave
  kNumpyArray,   ///< kObject that the coming BUILD makes a tensor
  kEmptyTensor,  ///< kObject that the coming BUILD makes a tensor
  kListItems,    ///< kList, last of an unknown object's items: what APPENDS and ADDITEMS gave it
  kDictItems,    ///< kDict, last of an unknown object's items: what SETITEMS gave it
};

struct Cell;

/// The items of a cell, in the arena. A pointer while there are none, as in most cells: hostile pickles are cheap to
/// write and made of empty lists.
class Items {
 public:
  explicit Items(std::pmr::memory_resource* memory) noexcept
      : word_(reinterpret_cast<std::uintptr_t>(memory) | kNoBlock) {}
  Items(const Items&) = delete;
  Items& operator=(const Items& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }

  std::size_t size() const noexcept { return has_block() ? block()->size : 0; }
  bool empty() const noexcept { return size() == 0; }
  Cell** begin() noexcept { return has_block() ? block()->cells() : nullptr; }
  Cell** end() noexcept { return begin() + size(); }
  Cell* const* begin() const noexcept { return has_block() ? block()->cells() : nullptr; }
  Cell* const* end() const noexcept { return begin() + size(); }
  Cell*& operator[](std::size_t i) noexcept { return begin()[i]; }
  Cell* operator[](std::size_t i) const noexcept { return begin()[i]; }

  void reserve(std::size_t count);
  void push_back(Cell* cell) { append(&cell, &cell + 1); }
  /// The new items may not lie in these.
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    const std::size_t before = size();
    const auto count = static_cast<std::size_t>(last - first);
    if (count == 0) return;
    grow(before + count);
    std::copy(first, last, begin() + before);
    block()->size = before + count;
  }
  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    if (has_block()) block()->size = 0;
    append(first, last);
  }

 private:
  static constexpr std::uintptr_t kNoBlock = 1;  ///< `word_` is the memory to take a block from

  struct Block {
    std::pmr::memory_resource* memory;
    std::size_t size;
    std::size_t capacity;
    Cell** cells() noexcept { return reinterpret_cast<Cell**>(this + 1); }
  };

  bool has_block() const noexcept { return (word_ & kNoBlock) == 0; }
  Block* block() const noexcept { return reinterpret_cast<Block*>(word_); }
  /// Room for `count` items in all, twice as much as before at least.
  void grow(std::size_t count);

  std::uintptr_t word_;
};

/// A node while a pickle is read: small, in an arena, its text a view of the pickle where possible. What is still
/// reachable in the end becomes a Value; most cells (arguments of calls) do not.
struct Cell {
  using Items = pickle::Items;

  Cell(Value::Kind k, std::pmr::memory_resource* memory) : kind(k), items(memory) {}

  Value::Kind kind;
  Role role = Role::kPlain;
  bool byte_string = false;                  ///< kString or kBytes: Python 2 wrote it, which had one type for both
  DType::Code dtype = DType::Code::kOpaque;  ///< kDType, unless opaque; see `text` then
  std::uint32_t ref = 0;
  std::uint32_t height = 0;  ///< of the tree below, known once `node` is complete
  std::string_view type_name;
  union {
    bool boolean;
    std::int64_t integer;
    double real;
    double parts[2] = {0, 0};  ///< kComplex
    std::string_view text;     ///< kString, kBytes, kBigInt, kDType
  };
  Items items;  ///< for kDict key, value, key, value ...
  Cell* state = nullptr;
  detail::ValueNode* node = nullptr;  ///< what it became

  bool is(Value::Kind wanted) const noexcept { return kind == wanted; }
};

/// Whether Python can hash it; of a tuple, whether it can but for what is in it.
bool is_hashable(const Cell& cell) noexcept;

/// Owns the cells of one pickle. Everything is released at once and flat, whatever the depth: cells have no destructor
/// that matters.
class CellArena {
 public:
  /// `max_cells` and `max_text` are budgets: what a pickle makes beyond them is kLimit.
  explicit CellArena(std::size_t max_cells, std::size_t max_text) : cells_left_(max_cells), text_left_(max_text) {}
  CellArena(const CellArena&) = delete;
  CellArena& operator=(const CellArena&) = delete;

  Cell* add(Value::Kind kind) {
    charge(1);
    return std::pmr::polymorphic_allocator<>(&memory_).new_object<Cell>(kind, &memory_);
  }
  /// Takes `count` from the budget of cells, for work that a short opcode asks for.
  void charge(std::size_t count) {
    if (count > cells_left_) throw_too_many();
    cells_left_ -= count;
  }
  /// Takes `bytes` from the budget of text.
  void charge_text(std::size_t bytes) {
    if (bytes > text_left_) throw_too_much_text();
    text_left_ -= bytes;
  }
  std::size_t text_left() const noexcept { return text_left_; }
  /// `bytes` uninitialised bytes for made text, from the budget of text.
  char* allocate_text(std::size_t bytes);
  /// A copy of `text` in the arena.
  std::string_view keep(std::string_view text);

 private:
  [[noreturn]] static void throw_too_many();
  [[noreturn]] static void throw_too_much_text();

  std::array<std::byte, 12 * 1024> first_;
  std::pmr::monotonic_buffer_resource memory_{first_.data(), first_.size()};
  std::size_t cells_left_;
  std::size_t text_left_;
};

}  // namespace penstock::format::pickle
