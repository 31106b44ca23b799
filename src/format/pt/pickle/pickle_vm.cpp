// The machine that runs a pickle's opcodes: a stack, marks on it, and a memo of objects that are used again
// (Lib/pickletools.py describes them). It builds inert cells and calls nothing; the Resolver decides what names and
// calls mean. Cells, items and text are charged against limits, because a few bytes can ask for much memory.

#include "format/pt/pickle/pickle_vm.h"

#include <bit>
#include <charconv>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "format/pt/pickle/scalars.h"
#include "format/text/utf8.h"
#include "penstock/error.h"

namespace penstock::format::pickle {

namespace {

using core::corrupt;

[[noreturn]] void throw_stack_too_large() {
  throw Error(ErrorCode::kLimit, "the pickle's stack is larger than any real file needs");
}

std::string_view kind_name(Value::Kind kind) {
  static constexpr std::string_view kNames[] = {"None",   "a bool", "an int",    "an int",  "a float", "a complex",
                                                "a str",  "bytes",  "a tensor",  "a dtype", "a list",  "a tuple",
                                                "a dict", "a set",  "an object", "a name"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// An object whose class is not known may be a subclass of list or dict, so that it takes items.
bool is_unknown_object(const Cell* cell) { return cell->is(Value::Kind::kObject) && cell->role == Role::kPlain; }

}  // namespace

void Memo::put(std::uint64_t index, Cell* cell) {
  if (index < dense_.size()) {
    dense_[index] = cell;
  } else if (index == dense_.size()) {
    dense_.push_back(cell);
    if (!sparse_.empty()) sparse_.erase(index);
  } else {
    sparse_[index] = cell;
  }
}

Cell* Memo::get(std::uint64_t index) const noexcept {
  if (index < dense_.size()) return dense_[index];
  const auto found = sparse_.find(index);
  return found == sparse_.end() ? nullptr : found->second;
}

Machine::Machine(std::span<const std::byte> bytes, std::uint64_t base, CellArena& arena, Resolver& resolver,
                 const Limits& limits)
    : in_(bytes, base), arena_(&arena), resolver_(&resolver), limits_(limits) {
  none_ = make(Kind::kNone);
  true_ = make(Kind::kBool);
  true_->boolean = true;
  false_ = make(Kind::kBool);
  false_->boolean = false;
  empty_ = make(Kind::kTuple);
  stack_.reserve(64);
  marks_.reserve(16);
}

Cell* Machine::run() {
  try {
    while (!stopped_) step();
    if (stack_.size() != 1 || !marks_.empty()) {
      corrupt(core::format("the pickle stops with {} and {} on its stack, where one object was expected",
                           core::counted(stack_.size(), "object"), core::counted(marks_.size(), "mark")));
    }
    return stack_.front();
  } catch (const Error& error) {
    throw error.within({.offset = at_});
  }
}

void Machine::step() {
  at_ = in_.offset();
  const std::uint8_t code = in_.u8();
  const Opcode& opcode = opcodes()[code];
  if (opcode.act == nullptr) refuse(code);
  opcode_ = opcode.name;
  opcode.act(*this);
}

void Machine::refuse(std::uint8_t code) const {
  const char* name = opcodes()[code].name;
  if (name == nullptr) corrupt(core::format("the byte 0x{:02x} is not a pickle opcode", code));
  throw Error(
      ErrorCode::kUnsafe,
      core::format("the pickle has the opcode {}, which takes objects from outside the file; Penstock refuses it",
                   name));
}

void Machine::push(Cell* cell) {
  if (stack_.size() >= limits_.stack) throw_stack_too_large();
  stack_.push_back(cell);
}

Cell* Machine::top() {
  if (stack_.size() <= floor()) corrupt(core::format("{} finds nothing on the pickle's stack", opcode_));
  return stack_.back();
}

Cell* Machine::pop() {
  Cell* cell = top();
  stack_.pop_back();
  return cell;
}

std::span<Cell* const> Machine::above_mark() {
  if (marks_.empty()) corrupt(core::format("{} finds no mark on the pickle's stack", opcode_));
  return std::span<Cell* const>(stack_).subspan(marks_.back());
}

void Machine::push_mark() {
  if (marks_.size() >= limits_.stack) throw_stack_too_large();
  marks_.push_back(stack_.size());
}

void Machine::drop_mark() {
  stack_.resize(marks_.back());
  marks_.pop_back();
}

void Machine::push_int(std::int64_t value) {
  Cell** const place = integers_.place(value);
  if (place != nullptr && *place != nullptr) return push(*place);
  Cell* cell = make(Kind::kInt);
  cell->integer = value;
  if (place != nullptr) *place = cell;
  push(cell);
}

void Machine::push_long(std::span<const std::byte> little_endian) {
  if (little_endian.size() > sizeof(std::int64_t)) {
    if (little_endian.size() > kMaxLongBytes) {
      throw Error(ErrorCode::kLimit, core::format("an integer of {}; Penstock reads up to {}",
                                                  core::counted(little_endian.size(), "byte"), kMaxLongBytes));
    }
    return push_decimal(decimal_of_bytes(little_endian));
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < little_endian.size(); ++i) {
    value |= std::to_integer<std::uint64_t>(little_endian[i]) << (8 * i);
  }
  if (!little_endian.empty()) {
    const auto unused = static_cast<int>(64 - 8 * little_endian.size());
    return push_int(static_cast<std::int64_t>(value << unused) >> unused);  // extends the sign
  }
  push_int(0);
}

void Machine::push_decimal(std::string_view text) {
  if (const auto value = parse_int64(text)) return push_int(*value);
  if (text.size() > kMaxLongDigits + 1) {
    throw Error(ErrorCode::kLimit, core::format("an integer of {}; Penstock reads up to {}",
                                                core::counted(text.size(), "digit"), kMaxLongDigits));
  }
  const auto normal = normal_decimal(text);
  if (!normal) corrupt(core::format("{} has {}, which is not an integer", opcode_, core::quoted(text)));
  if (const auto value = parse_int64(*normal)) return push_int(*value);
  push_text(Kind::kBigInt, arena_->keep(*normal));
}

void Machine::push_text(Kind kind, std::string_view text) {
  Cell* cell = make(kind);
  cell->text = text;
  push(cell);
}

void Machine::push_unicode(std::string_view utf8) {
  if (is_utf8(utf8)) return push_text(Kind::kString, utf8);
  if (!is_utf8_with_surrogates(utf8)) corrupt(core::format("{} has text that is not UTF-8", opcode_));
  // Python writes text with lone surrogates (odd file names) as if they were characters: kept as its bytes.
  push_text(Kind::kBytes, utf8);
  stack_.back()->type_name = "str";
}

void Machine::push_python2_string(std::string_view bytes) {
  push_text(is_utf8(bytes) ? Kind::kString : Kind::kBytes, bytes);
  stack_.back()->byte_string = true;
}

void Machine::push_from_mark(Kind kind) {
  Cell* cell = make(kind);
  const auto items = above_mark();
  cell->items.assign(items.begin(), items.end());
  drop_mark();
  push(cell);
}

void Machine::push_small_tuple(std::size_t count) {
  if (stack_.size() - floor() < count) {
    corrupt(
        core::format("{} finds {} on the pickle's stack", opcode_, core::counted(stack_.size() - floor(), "object")));
  }
  Cell* cell = make(Kind::kTuple);
  const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
  cell->items.assign(first, stack_.end());
  stack_.resize(stack_.size() - count);
  push(cell);
}

void Machine::take_items(Take take) {
  // The items stay where they are while they are taken; the target lies right below the mark.
  const auto items = above_mark();
  const std::size_t mark = marks_.back();
  marks_.pop_back();
  if (mark <= floor()) corrupt(core::format("{} finds nothing below its mark", opcode_));
  (this->*take)(stack_[mark - 1], items);
  stack_.resize(mark);
}

void Machine::append_to(Cell* target, std::span<Cell* const> items) {
  if (is_unknown_object(target)) target = collector(target, Role::kListItems);
  if (!target->is(Kind::kList)) {
    corrupt(core::format("{} is applied to {}, where a list was expected", opcode_, kind_name(target->kind)));
  }
  target->items.append(items.begin(), items.end());
}

void Machine::set_items(Cell* target, std::span<Cell* const> pairs) {
  if (is_unknown_object(target)) target = collector(target, Role::kDictItems);
  if (!target->is(Kind::kDict)) {
    corrupt(core::format("{} is applied to {}, where a dict was expected", opcode_, kind_name(target->kind)));
  }
  if (pairs.size() % 2 != 0) corrupt(core::format("{} has a key without a value", opcode_));
  for (std::size_t i = 0; i < pairs.size(); i += 2) require_hashable(pairs[i]);
  target->items.append(pairs.begin(), pairs.end());
}

void Machine::add_items(Cell* target, std::span<Cell* const> items) {
  if (is_unknown_object(target)) return append_to(target, items);
  if (!target->is(Kind::kSet)) {
    corrupt(core::format("{} is applied to {}, where a set was expected", opcode_, kind_name(target->kind)));
  }
  for (Cell* item : items) require_hashable(item);
  target->items.append(items.begin(), items.end());
}

Cell* Machine::collector(Cell* object, Role role) {
  // A class may have both, lists first, as pickle writes them.
  for (std::size_t i = object->items.size(); i-- > 0;) {
    Cell* const item = object->items[i];
    if (item->role == role) return item;
    if (item->role != Role::kListItems && item->role != Role::kDictItems) break;
  }
  Cell* items = make(role == Role::kListItems ? Kind::kList : Kind::kDict);
  items->role = role;
  items->type_name = kItemsName;
  object->items.push_back(items);
  return items;
}

void Machine::require_hashable(Cell* key) {
  if (!is_hashable(*key)) {
    corrupt(core::format("{} has {} as a key, which Python cannot hash", opcode_, kind_name(key->kind)));
  }
  if (!key->is(Kind::kTuple)) return;
  // Each tuple is looked at once however often it is shared; a tuple that is being looked at can contain
  // itself only through a list.
  std::vector<const Cell*> open{key};
  while (!open.empty()) {
    const Cell* tuple = open.back();
    open.pop_back();
    if (!hashable_.insert(tuple).second) continue;
    for (const Cell* item : tuple->items) {
      if (!is_hashable(*item)) {
        corrupt(core::format("{} has a tuple with {} in it as a key, which Python cannot hash", opcode_,
                             kind_name(item->kind)));
      }
      if (item->is(Kind::kTuple)) open.push_back(item);
    }
  }
}

void Machine::require_callable(const Cell* callable) const {
  if (callable->is(Kind::kGlobal) || callable->is(Kind::kObject)) return;
  corrupt(core::format("{} calls {}, where the name of a function or class was expected", opcode_,
                       kind_name(callable->kind)));
}

void Machine::call(Cell* callable, std::span<Cell* const> arguments) {
  require_callable(callable);
  push(resolver_->call(callable, arguments));
}

std::span<Cell* const> Machine::arguments_of(Cell* tuple) {
  if (!tuple->is(Kind::kTuple)) {
    corrupt(core::format("the arguments of a call are {}, where a tuple was expected", kind_name(tuple->kind)));
  }
  return tuple->items;
}

void Machine::put(std::uint64_t index) {
  if (memo_.size() >= limits_.memo)
    throw Error(ErrorCode::kLimit, "the pickle's memo is larger than any real file needs");
  memo_.put(index, top());
}

void Machine::get(std::uint64_t index) {
  Cell* cell = memo_.get(index);
  if (cell == nullptr)
    corrupt(core::format("{} asks for object {}, which the pickle has not put in its memo", opcode_, index));
  push(cell);
}

std::uint64_t Machine::line_index() {
  const std::string_view line = in_.take_line();
  const auto index = parse_int64(line);
  if (!index || *index < 0) corrupt(core::format("{} has the index {}", opcode_, core::quoted(line)));
  return static_cast<std::uint64_t>(*index);
}

std::string_view Machine::take_sized(std::uint64_t length) {
  if (length > in_.remaining()) {
    throw Error(ErrorCode::kTruncated, core::format("{} declares {}, where {} are left", opcode_,
                                                    core::counted(length, "byte"), in_.remaining()));
  }
  return in_.take_text(static_cast<std::size_t>(length));
}

void Machine::op_proto() {
  const unsigned protocol = in_.u8();
  if (protocol > 5) {
    throw Error(ErrorCode::kUnsupported, core::format("pickle protocol {}; Penstock reads 0 to 5", protocol));
  }
}

void Machine::op_frame() {
  const std::uint64_t length = in_.u64();
  if (length > in_.remaining()) {
    throw Error(ErrorCode::kTruncated,
                core::format("a frame of {}, where {} are left", core::counted(length, "byte"), in_.remaining()));
  }
}

void Machine::op_pop() {
  if (!marks_.empty() && stack_.size() == marks_.back()) {
    marks_.pop_back();
  } else {
    pop();
  }
}

void Machine::op_int() {
  const std::string_view line = in_.take_line();
  if (line == "00" || line == "01") return push_bool(line == "01");
  push_decimal(line);
}

void Machine::op_long() {
  std::string_view line = in_.take_line();
  if (line.ends_with('L')) line.remove_suffix(1);
  push_decimal(line);
}

void Machine::op_float() {
  const std::string_view line = in_.take_line();
  std::string_view digits = line;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  Cell* cell = make(Kind::kFloat);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), cell->real);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) {
    corrupt(core::format("FLOAT has {}, which is not a number", core::quoted(line)));
  }
  if (error == std::errc::result_out_of_range) {
    corrupt(core::format("FLOAT has {}, which is too large for a float64", core::quoted(line)));
  }
  push(cell);
}

void Machine::op_binfloat() {
  Cell* cell = make(Kind::kFloat);
  std::uint64_t bits = 0;
  for (const std::byte byte : in_.take(8)) bits = (bits << 8) | std::to_integer<std::uint64_t>(byte);
  cell->real = std::bit_cast<double>(bits);
  push(cell);
}

void Machine::op_string() {
  const std::string_view line = in_.take_line();
  const auto text = unquote(line);
  if (!text) corrupt(core::format("STRING has {}, which is not a string literal", core::quoted(line)));
  push_python2_string(arena_->keep(*text));
}

void Machine::op_unicode() {
  const std::string_view line = in_.take_line();
  const auto text = from_raw_unicode_escape(line);
  if (!text) corrupt(core::format("UNICODE has {}, which is not escaped as Python does it", core::quoted(line)));
  push_unicode(arena_->keep(*text));
}

void Machine::op_bytearray8() {
  push_text(Kind::kBytes, take_sized(in_.u64()));
  stack_.back()->type_name = "bytearray";
}

void Machine::op_global() {
  const std::string_view module = in_.take_line();
  const std::string_view name = in_.take_line();
  if (!is_utf8(module) || !is_utf8(name)) corrupt("GLOBAL has a name that is not UTF-8");
  push(resolver_->global(module, name));
}

void Machine::op_stack_global() {
  const Cell* name = pop();
  const Cell* module = pop();
  if (!name->is(Kind::kString) || !module->is(Kind::kString)) {
    corrupt(core::format("STACK_GLOBAL has {} and {}, where two strings were expected", kind_name(module->kind),
                         kind_name(name->kind)));
  }
  push(resolver_->global(module->text, name->text));
}

void Machine::op_inst() {
  const std::string_view module = in_.take_line();
  const std::string_view name = in_.take_line();
  if (!is_utf8(module) || !is_utf8(name)) corrupt("INST has a name that is not UTF-8");
  Cell* arguments = make(Kind::kTuple);
  const auto items = above_mark();
  arguments->items.assign(items.begin(), items.end());
  drop_mark();
  Cell* callable = resolver_->global(module, name);
  call(callable, arguments->items);
}

void Machine::op_obj() {
  Cell* arguments = make(Kind::kTuple);
  const auto items = above_mark();
  if (items.empty()) corrupt("OBJ has no class");
  Cell* callable = items.front();
  arguments->items.assign(items.begin() + 1, items.end());
  drop_mark();
  call(callable, arguments->items);
}

void Machine::op_reduce() {
  Cell* arguments = pop();
  Cell* callable = pop();
  call(callable, arguments_of(arguments));
}

void Machine::op_newobj_ex() {
  Cell* keywords = pop();
  Cell* arguments = pop();
  Cell* callable = pop();
  if (!keywords->is(Kind::kDict)) {
    corrupt(core::format("NEWOBJ_EX has {}, where a dict of arguments was expected", kind_name(keywords->kind)));
  }
  if (keywords->items.empty()) return call(callable, arguments_of(arguments));
  // Nothing that Penstock knows is made so.
  require_callable(callable);
  const auto items = arguments_of(arguments);
  arena_->charge(items.size());
  std::vector<Cell*> all(items.begin(), items.end());
  all.push_back(keywords);
  push(resolver_->inert(callable, all));
}

void Machine::op_build() {
  Cell* state = pop();
  resolver_->build(top(), state);
}

void Machine::op_dict() {
  Cell* dict = make(Kind::kDict);
  set_items(dict, above_mark());
  drop_mark();
  push(dict);
}

void Machine::op_frozenset() {
  Cell* set = make(Kind::kSet);
  add_items(set, above_mark());
  set->type_name = "frozenset";
  drop_mark();
  push(set);
}

}  // namespace penstock::format::pickle
