#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string_view>
#include <vector>

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

/// A node while a pickle is read: small, in an arena, its text a view of the pickle where possible. What is still
/// reachable in the end becomes a Value; most cells (arguments of calls) do not.
struct Cell {
  using Items = std::pmr::vector<Cell*>;

  Cell(Value::Kind k, std::pmr::memory_resource* memory) : kind(k), items(memory) {}

  Value::Kind kind;
  Role role = Role::kPlain;
  bool byte_string = false;  ///< kString or kBytes: Python 2 wrote it, which had one type for both
  std::uint32_t ref = 0;
  std::uint32_t height = 0;  ///< of the tree below, known once `node` is complete
  std::string_view text;     ///< kString, kBytes, kBigInt
  std::string_view type_name;
  union {
    bool boolean;
    std::int64_t integer;
    double real;
    double parts[2] = {0, 0};  ///< kComplex
  };
  DType::Code dtype = DType::Code::kOpaque;  ///< kDType, unless opaque; see `text` then
  Items items;                               ///< for kDict key, value, key, value ...
  Cell* state = nullptr;
  detail::ValueNode* node = nullptr;  ///< what it became

  bool is(Value::Kind wanted) const noexcept { return kind == wanted; }
};

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
