// Python's own types as they are pickled.

#include <algorithm>

#include "format/pt/pickle/calls.h"
#include "format/pt/pickle/scalars.h"
#include "penstock/error.h"

namespace penstock::format::pickle {

namespace {

using Kind = Value::Kind;

bool is_sequence(const Cell& cell) { return cell.is(Kind::kList) || cell.is(Kind::kTuple); }

/// The only argument, a list, tuple or set of items; nothing when there is no argument.
std::span<Cell* const> items_argument(const Call& call) {
  require_count(call, 0, 1);
  if (call.arguments.empty()) return {};
  const Cell& items = *call.arguments[0];
  if (!is_sequence(items) && !items.is(Kind::kSet)) bad_argument(call, "argument", "a list or tuple");
  return items.items;
}

Cell* make_with(const Call& call, Kind kind, std::string_view type_name, std::span<Cell* const> items) {
  call.world.arena().charge(items.size());
  Cell* cell = call.world.make(kind, type_name);
  cell->items.assign(items.begin(), items.end());
  return cell;
}

/// A dict of nothing, of another dict's items, or of a list of pairs.
Cell* make_dict(const Call& call, std::string_view type_name, std::span<Cell* const> arguments) {
  if (arguments.empty()) return call.world.make(Kind::kDict, type_name);
  const Cell& from = *arguments[0];
  if (from.is(Kind::kDict)) return make_with(call, Kind::kDict, type_name, from.items);
  if (!is_sequence(from)) bad_argument(call, "argument", "a dict or a list of pairs");
  call.world.arena().charge(2 * from.items.size());
  Cell* dict = call.world.make(Kind::kDict, type_name);
  dict->items.reserve(2 * from.items.size());
  for (const Cell* pair : from.items) {
    if (!is_sequence(*pair) || pair->items.size() != 2) bad_argument(call, "argument", "a list of pairs");
    if (!is_hashable(*pair->items[0])) bad_argument(call, "key", "one that Python can hash");
    dict->items.append(pair->items.begin(), pair->items.end());
  }
  return dict;
}

Cell* make_set(const Call& call, std::string_view type_name) {
  const auto items = items_argument(call);
  if (!std::all_of(items.begin(), items.end(), [](const Cell* item) { return is_hashable(*item); })) {
    bad_argument(call, "item", "one that Python can hash");
  }
  return make_with(call, Kind::kSet, type_name, items);
}

/// `text`'s code points as bytes, which Python 3 writes bytes as up to protocol 2.
Cell* latin1(const Call& call, const Cell& text, std::string_view type_name) {
  CellArena& arena = call.world.arena();
  char* const bytes = arena.allocate_text(text.text.size());
  const auto count = to_latin1(text.text, bytes);
  if (!count) bad_argument(call, "text", "made of characters below U+0100");
  Cell* cell = call.world.make(Kind::kBytes, type_name);
  cell->text = {bytes, *count};
  return cell;
}

bool is_latin1(const Cell& encoding) {
  return encoding.is(Kind::kString) && (encoding.text == "latin1" || encoding.text == "latin-1");
}

}  // namespace

bool makes_calls(const Cell& callable) {
  const KnownName* known = find_known(callable.type_name);
  return known != nullptr && (known->handler == call_newobj || known->handler == call_rebuild_from_type);
}

Cell* call_ordered_dict(const Call& call) {
  require_count(call, 0, 1);
  return make_dict(call, "collections.OrderedDict", call.arguments);
}

Cell* call_defaultdict(const Call& call) {
  require_count(call, 0, 2);
  Cell* dict =
      make_dict(call, "collections.defaultdict", call.arguments.empty() ? call.arguments : call.arguments.subspan(1));
  if (!call.arguments.empty()) dict->state = call.arguments[0];  // the factory, inert
  return dict;
}

Cell* call_counter(const Call& call) {
  require_count(call, 0, 1);
  return make_dict(call, "collections.Counter", call.arguments);
}

Cell* call_dict(const Call& call) {
  require_count(call, 0, 1);
  return make_dict(call, {}, call.arguments);
}

Cell* call_set(const Call& call) { return make_set(call, {}); }
Cell* call_frozenset(const Call& call) { return make_set(call, "frozenset"); }
Cell* call_list(const Call& call) { return make_with(call, Kind::kList, {}, items_argument(call)); }
Cell* call_tuple(const Call& call) { return make_with(call, Kind::kTuple, {}, items_argument(call)); }

Cell* call_complex(const Call& call) {
  require_count(call, 0, 2);
  Cell* cell = call.world.make(Kind::kComplex);
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const Cell& part = *call.arguments[i];
    if (!part.is(Kind::kFloat) && !part.is(Kind::kInt)) bad_argument(call, "argument", "a number");
    cell->parts[i] = part.is(Kind::kFloat) ? part.real : static_cast<double>(part.integer);
  }
  return cell;
}

Cell* call_bytes(const Call& call) {
  if (call.arguments.empty()) return call.world.make(Kind::kBytes);
  return call.world.make_object(call.name(), call.arguments);
}

Cell* call_bytearray(const Call& call) {
  constexpr std::string_view kName = "bytearray";
  if (call.arguments.empty()) return call.world.make(Kind::kBytes, kName);
  const Cell& from = *call.arguments[0];
  if (from.is(Kind::kString) && call.arguments.size() == 2 && is_latin1(*call.arguments[1])) {
    return latin1(call, from, kName);
  }
  // A Python 2 string that happened to be UTF-8 is bytes all the same.
  if ((from.is(Kind::kBytes) || from.is(Kind::kString)) && call.arguments.size() == 1) {
    Cell* cell = call.world.make(Kind::kBytes, kName);
    cell->text = from.text;
    return cell;
  }
  return call.world.make_object(call.name(), call.arguments);
}

Cell* call_encode(const Call& call) {
  if (call.arguments.size() == 2 && call.arguments[0]->is(Kind::kString) && is_latin1(*call.arguments[1])) {
    return latin1(call, *call.arguments[0], {});
  }
  return call.world.make_object(call.name(), call.arguments);
}

/// How protocols 0 and 1 make an object: (class, base class, the base's value).
Cell* call_reconstructor(const Call& call) {
  require_count(call, 3, 3);
  Cell* type = call.arguments[0];
  const Cell& base = require(call, 1, Kind::kGlobal, "base class");
  if (!type->is(Kind::kGlobal)) bad_argument(call, "class", "a name");
  const bool plain = base.type_name == "builtins.object";
  return call.world.inert(type, plain ? std::span<Cell* const>() : call.arguments.subspan(2));
}

Cell* call_newobj(const Call& call) {
  if (call.arguments.empty() || !call.arguments[0]->is(Kind::kGlobal)) bad_argument(call, "class", "a name");
  if (makes_calls(*call.arguments[0])) bad_argument(call, "class", "a class");
  return call.world.call(call.arguments[0], call.arguments.subspan(1));
}

Cell* call_first_argument(const Call& call) {
  if (call.arguments.empty()) bad_argument(call, "argument", "there");
  return call.arguments[0];
}

}  // namespace penstock::format::pickle
