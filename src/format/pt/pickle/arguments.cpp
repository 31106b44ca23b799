// Checks of arguments that the callables share.

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "format/pt/pickle/calls.h"
#include "penstock/error.h"

namespace penstock::format::pickle {

using Kind = Value::Kind;

void bad_argument(const Call& call, std::string_view what, std::string_view expected) {
  throw Error(ErrorCode::kCorrupt,
              core::format("the {} given to {} is not {}", what, core::quoted(call.name()), expected));
}

void require_count(const Call& call, std::size_t least, std::size_t most) {
  const std::size_t count = call.arguments.size();
  if (count >= least && count <= most) return;
  throw Error(ErrorCode::kCorrupt, core::format("{} has {}, where {} to {} were expected", core::quoted(call.name()),
                                                core::counted(count, "argument"), least, most));
}

const Cell& require(const Call& call, std::size_t index, Kind kind, std::string_view what) {
  const Cell& cell = *call.arguments[index];
  if (cell.is(kind)) return cell;
  bad_argument(call, what,
               kind == Kind::kTensor   ? "a tensor"
               : kind == Kind::kDType  ? "a dtype"
               : kind == Kind::kTuple  ? "a tuple"
               : kind == Kind::kString ? "a string"
               : kind == Kind::kGlobal ? "a name"
                                       : "of the kind expected");
}

std::int64_t require_int(const Call& call, std::size_t index, std::string_view what) {
  const Cell& cell = *call.arguments[index];
  if (!cell.is(Kind::kInt)) bad_argument(call, what, "an integer of 64 bits");
  return cell.integer;
}

bool require_flag(const Call& call, std::size_t index, std::string_view what) {
  const Cell& cell = *call.arguments[index];
  if (cell.is(Kind::kBool)) return cell.boolean;
  if (cell.is(Kind::kInt) && (cell.integer == 0 || cell.integer == 1)) return cell.integer == 1;  // protocol 1
  bad_argument(call, what, "True or False");
}

std::optional<Shape> shape_of(const Cell& cell) {
  if (!cell.is(Kind::kTuple) && !cell.is(Kind::kList)) return std::nullopt;
  if (cell.items.size() > Shape::kMaxRank) {
    throw Error(ErrorCode::kLimit, core::format("a tensor of {}; Penstock reads up to {}",
                                                core::counted(cell.items.size(), "dimension"), Shape::kMaxRank));
  }
  Shape shape;
  for (const Cell* item : cell.items) {
    if (!item->is(Kind::kInt)) return std::nullopt;
    shape.push_back(item->integer);
  }
  return shape;
}

Shape require_shape(const Call& call, std::size_t index, std::string_view what) {
  auto shape = shape_of(*call.arguments[index]);
  if (!shape) bad_argument(call, what, "a tuple of integers");
  return *std::move(shape);
}

const StorageView& require_storage(const Call& call, std::size_t index) {
  const Cell& cell = *call.arguments[index];
  if (cell.role != Role::kStorage) bad_argument(call, "storage", "a storage");
  return call.world.views()[cell.ref];
}

void require_hooks(const Call& call, std::size_t index) {
  const Cell& cell = *call.arguments[index];
  if (!cell.is(Kind::kDict) && !cell.is(Kind::kNone)) bad_argument(call, "hooks", "a dict");
}

}  // namespace penstock::format::pickle
