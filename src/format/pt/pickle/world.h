#pragma once

// What the names in a `.pt` stand for, as inert values: a table of the callables that torch, NumPy and Python's own
// types are pickled with, and for every other name an opaque object.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/format.h"
#include "format/pt/pickle/cell.h"
#include "format/pt/pickle/pickle_vm.h"
#include "penstock/dtype.h"
#include "penstock/entry.h"

namespace penstock::format::pickle {

/// Where storages and, in the oldest files, whole objects come from that lie outside the pickle.
class Outside {
 public:
  virtual ~Outside() = default;
  /// The position in Index::storages of the storage `key`, which the pickle declares with `nbytes` bytes, that is with
  /// elements of `itemsize` bytes. kCorrupt when there is none or it has another size.
  virtual std::uint32_t storage(std::string_view key, std::uint64_t nbytes, std::uint64_t itemsize) = 0;
  /// The object behind a persistent id that is no tuple of torch's, or null.
  virtual Cell* object(const Cell& id);
};

/// A typed part of a storage, as a pickle refers to it.
struct StorageView {
  std::uint32_t storage = 0;
  DType::Code dtype = DType::Code::kUInt8;
  std::uint64_t offset = 0;  ///< in bytes
  std::uint64_t nbytes = 0;
};

class World final : public Resolver {
 public:
  /// What a tensor takes from the budget of cells: it costs far more memory than the few bytes of pickle that make it.
  static constexpr std::size_t kCellsOfTensor = 4;

  /// Inline storages (NumPy arrays) are added to `index.storages`. `swapped`: storages have the other byte order.
  /// `object_lists`: NumPy's arrays of objects become lists of the type name kObjectsName; otherwise they are objects.
  World(CellArena& arena, Index& index, Outside& outside, bool swapped = false, bool object_lists = false)
      : arena_(&arena), index_(&index), outside_(&outside), swapped_(swapped), object_lists_(object_lists) {}

  Cell* global(std::string_view module, std::string_view name) override;
  Cell* call(Cell* callable, std::span<Cell* const> arguments) override;
  Cell* inert(Cell* callable, std::span<Cell* const> arguments) override;
  void build(Cell* object, Cell* state) override;
  Cell* persistent(Cell* id) override;

  bool object_lists() const noexcept { return object_lists_; }
  CellArena& arena() noexcept { return *arena_; }
  Index& index() noexcept { return *index_; }
  std::vector<StorageView>& views() noexcept { return views_; }
  /// Which storage holds the bytes of an inline array's data cell.
  std::unordered_map<const Cell*, std::uint32_t>& inline_storages() noexcept { return inline_; }
  /// Names that are in no table.
  const std::set<std::string, std::less<>>& unknown() const noexcept { return unknown_; }

  // For the callables.
  Cell* make(Value::Kind kind, std::string_view type_name = {});
  /// An inert object of class or function `type_name`.
  Cell* make_object(std::string_view type_name, std::span<Cell* const> arguments);
  Cell* make_tensor(TensorEntry tensor);
  Cell* make_storage(const StorageView& view);
  TensorEntry& tensor_of(const Cell& cell) { return tensors_[cell.ref]; }

 private:
  Cell* storage(std::span<Cell* const> id);

  CellArena* arena_;
  Index* index_;
  Outside* outside_;
  bool swapped_;
  bool object_lists_;
  std::vector<TensorEntry> tensors_;
  std::vector<StorageView> views_;
  std::unordered_map<const Cell*, std::uint32_t> inline_;
  std::set<std::string, std::less<>> unknown_;
};

/// `module.name` as Python 3, torch and NumPy say it today: Python 2's modules, torch.tensor, numpy._core mapped. In
/// the arena.
std::string_view canonical_name(std::string_view module, std::string_view name, CellArena& arena);

/// A call that is to be made a value.
struct Call {
  World& world;
  Cell* callable;  ///< kGlobal
  std::span<Cell* const> arguments;

  std::string_view name() const noexcept { return callable->type_name; }
};
using Handler = Cell* (*)(const Call& call);

/// A row of the table: a name that a file may have without being listed as unknown.
struct KnownName {
  std::string_view name;
  Handler handler;  ///< null: an inert name or class
};
/// The row for a canonical name, or null.
const KnownName* find_known(std::string_view name) noexcept;
/// Whether objects of that name are made here, of checked parts, and of nothing that a file gives the name to.
bool is_own_name(std::string_view name) noexcept;

/// The element type of a storage class ("torch.FloatStorage", "torch.cuda.HalfStorage"); UntypedStorage counts bytes.
struct StorageType {
  DType::Code dtype = DType::Code::kUInt8;
  bool untyped = false;
};
std::optional<StorageType> storage_type(std::string_view name) noexcept;
/// torch's dtype of that name ("float32"), opaque ones included; names as in torch/__init__.py.
std::optional<DType> torch_dtype(std::string_view name);
/// The type_name of tensors that are all of a storage that is saved by itself.
inline constexpr std::string_view kStorageName = "torch.storage.TypedStorage";
/// The type_name of tensors that are NumPy's arrays and have the file's byte order in NumPy. Others, which NumPy makes
/// native, have that of their class ("numpy.ndarray").
inline constexpr std::string_view kArrayInFileOrderName = "numpy.core.numeric._frombuffer";
/// The type name of lists that are arrays of objects, nested as the array's dimensions say; their state is its shape.
/// One without dimensions is a list of its only object.
inline constexpr std::string_view kObjectsName = "numpy.objects";
/// The type_name of tensors that are parameters.
inline constexpr std::string_view kParameterName = "torch.nn.parameter.Parameter";
/// The name of objects (data, class) that are composite tensors of a class of their own.
inline constexpr std::string_view kSubclassName = "torch.tensor_subclass";
/// The dtype that a kDType cell holds.
DType dtype_of(const Cell& cell);

}  // namespace penstock::format::pickle
