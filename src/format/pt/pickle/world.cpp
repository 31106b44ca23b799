// Decides what names in a pickle stand for. Known names have a builder of ours, which checks its arguments. Every other
// name becomes an inert object that keeps the name and the arguments, and nothing from a file is ever run.

#include "format/pt/pickle/world.h"

#include <optional>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "format/pt/pickle/builds.h"
#include "penstock/error.h"

namespace penstock::format::pickle {

namespace {

using Kind = Value::Kind;

using core::corrupt;

/// Python 2 wrote names of storages as bytes.
std::optional<std::string_view> as_text(const Cell& cell) {
  if (cell.is(Kind::kString) || cell.is(Kind::kBytes)) return cell.text;
  return std::nullopt;
}

std::uint64_t require_size(const Cell& cell, std::string_view what) {
  if (!cell.is(Kind::kInt) || cell.integer < 0) {
    corrupt(core::format("the {} of a storage is not an integer of 0 or more", what));
  }
  return static_cast<std::uint64_t>(cell.integer);
}

}  // namespace

Cell* Outside::object(const Cell& /*id*/) { return nullptr; }

Cell* World::make(Kind kind, std::string_view type_name) {
  Cell* cell = arena_->add(kind);
  cell->type_name = type_name;
  return cell;
}

Cell* World::make_object(std::string_view type_name, std::span<Cell* const> arguments) {
  arena_->charge(arguments.size());
  Cell* object = make(Kind::kObject, type_name);
  object->items.assign(arguments.begin(), arguments.end());
  return object;
}

Cell* World::make_tensor(TensorEntry tensor) {
  arena_->charge(kCellsOfTensor);
  tensor.encoding.swapped = swapped_;
  Cell* cell = make(Kind::kTensor);
  cell->role = Role::kTensor;
  cell->ref = static_cast<std::uint32_t>(tensors_.size());
  tensors_.push_back(std::move(tensor));
  return cell;
}

Cell* World::make_storage(const StorageView& view) {
  Cell* cell = make(Kind::kObject, "torch.storage");
  cell->role = Role::kStorage;
  cell->ref = static_cast<std::uint32_t>(views_.size());
  views_.push_back(view);
  return cell;
}

Cell* World::global(std::string_view module, std::string_view name) {
  const std::string_view full = canonical_name(module, name, *arena_);
  if (const auto type = storage_type(full)) {
    Cell* cell = make(Kind::kGlobal, full);
    cell->role = Role::kStorageType;
    cell->dtype = type->dtype;
    cell->boolean = type->untyped;
    return cell;
  }
  if (module == "torch") {
    if (const auto dtype = torch_dtype(name)) {
      Cell* cell = make(Kind::kDType);
      cell->dtype = dtype->code();
      cell->text = arena_->keep(name);
      return cell;
    }
  }
  if (find_known(full) == nullptr) unknown_.emplace(full);
  return make(Kind::kGlobal, full);
}

Cell* World::call(Cell* callable, std::span<Cell* const> arguments) {
  if (callable->is(Kind::kGlobal)) {
    const KnownName* known = find_known(callable->type_name);
    if (known != nullptr && known->handler != nullptr) return known->handler({*this, callable, arguments});
  }
  return inert(callable, arguments);
}

Cell* World::inert(Cell* callable, std::span<Cell* const> arguments) {
  if (callable->is(Kind::kGlobal)) {
    const std::string_view name = callable->type_name;
    // A file may name a call like one of our own objects. "()" is added to its name, so that readers do not take it for
    // one of ours, because its parts were not checked.
    return make_object(is_own_name(name) ? arena_->keep(core::format("{}()", name)) : name, arguments);
  }
  // What an unknown object would give when called: inert like itself, the callee first.
  arena_->charge(arguments.size());
  Cell* object = make(Kind::kObject, callable->type_name);
  object->items.reserve(arguments.size() + 1);
  object->items.push_back(callable);
  object->items.append(arguments.begin(), arguments.end());
  return object;
}

void World::build(Cell* object, Cell* state) {
  switch (object->role) {
    case Role::kTensor:
      return build_tensor(*this, object, state);
    case Role::kEmptyTensor:
      return build_empty_tensor(*this, object, state);
    case Role::kNumpyArray:
      return build_numpy_array(*this, object, state);
    default:
      break;
  }
  const bool has_state = (object->is(Kind::kObject) && object->role != Role::kStorage) ||
                         ((object->is(Kind::kDict) || object->is(Kind::kSet)) && !object->type_name.empty());
  if (!has_state) corrupt("BUILD is applied to a value that has no state");
  object->state = state;
}

Cell* World::persistent(Cell* id) {
  if (!id->is(Kind::kTuple)) {
    if (Cell* found = outside_->object(*id)) return found;
    corrupt("the persistent id of a storage is not a tuple");
  }
  const std::span<Cell* const> items = id->items;
  const auto type = items.empty() ? std::nullopt : as_text(*items[0]);
  if (type == "storage") return storage(items);
  if (type == "module" && items.size() == 4) return items[1];
  if (Cell* found = outside_->object(*id)) return found;
  throw Error(ErrorCode::kUnsupported,
              core::format("the file refers to {} outside itself, where a storage was expected",
                           type ? core::quoted(*type) : "something"));
}

Cell* World::storage(std::span<Cell* const> id) {
  if (id.size() != 5 && id.size() != 6) {
    corrupt(core::format("the persistent id of a storage has {}, where 5 or 6 were expected",
                         core::counted(id.size(), "part")));
  }
  const Cell& type = *id[1];
  if (type.role != Role::kStorageType) {
    throw Error(ErrorCode::kUnsupported,
                core::format("the storage's class is {}, which is not one of torch's", core::quoted(type.type_name)));
  }
  const bool numbered = id[2]->is(Kind::kInt);  // in the oldest files
  const std::string number = numbered ? std::to_string(id[2]->integer) : std::string();
  const auto key = numbered ? std::optional<std::string_view>(number) : as_text(*id[2]);
  const auto location = as_text(*id[3]);
  if (!key) corrupt("the key of a storage is neither text nor an integer");
  if (!location) corrupt("the location of a storage is not text");
  const std::uint64_t itemsize = DType(type.dtype).itemsize();
  StorageView view{.dtype = type.dtype};
  view.nbytes = core::checked_mul(require_size(*id[4], "size"), itemsize, "the size of a storage");
  const std::size_t known = index_->storages.size();
  view.storage = outside_->storage(*key, view.nbytes, itemsize);
  if (location != "cpu" && view.storage >= known) {  // of a storage declared twice the first counts, as for torch
    arena_->charge_text(location->size());
    index_->storages[view.storage].location = *location;
  }
  if (id.size() == 6 && !id[5]->is(Kind::kNone)) {
    const Cell& part = *id[5];  // (key, offset, size) of a view on the storage, in elements
    if (!part.is(Kind::kTuple) || part.items.size() != 3) corrupt("the view of a storage is not a tuple of three");
    view.offset = core::checked_mul(require_size(*part.items[1], "offset"), itemsize, "the offset of a storage");
    const std::uint64_t size =
        core::checked_mul(require_size(*part.items[2], "size"), itemsize, "the size of a storage");
    if (!core::range_fits(view.offset, size, view.nbytes)) corrupt("the view of a storage reaches beyond its end");
    view.nbytes = size;
  }
  return make_storage(view);
}

}  // namespace penstock::format::pickle
