// The table of opcodes, as CPython's Lib/pickletools.py lists them.

#include "format/pt/pickle/pickle_vm.h"

namespace penstock::format::pickle {

const std::array<Machine::Opcode, 256>& Machine::opcodes() noexcept {
  static constexpr std::array<Opcode, 256> kTable = [] {
    using M = Machine;
    std::array<Opcode, 256> t{};
    const auto set = [&t](unsigned code, const char* name, void (*act)(M&)) { t[code] = {name, act}; };
    // Protocols 0 and 1.
    set('(', "MARK", [](M& m) { m.push_mark(); });
    set('.', "STOP", [](M& m) { m.top(), m.stopped_ = true; });
    set('0', "POP", [](M& m) { m.op_pop(); });
    set('1', "POP_MARK", [](M& m) { m.above_mark(), m.drop_mark(); });
    set('2', "DUP", [](M& m) { m.push(m.top()); });
    set('F', "FLOAT", [](M& m) { m.op_float(); });
    set('I', "INT", [](M& m) { m.op_int(); });
    set('J', "BININT", [](M& m) { m.push_int(m.in_.i32()); });
    set('K', "BININT1", [](M& m) { m.push_int(m.in_.u8()); });
    set('L', "LONG", [](M& m) { m.op_long(); });
    set('M', "BININT2", [](M& m) { m.push_int(m.in_.u16()); });
    set('N', "NONE", [](M& m) { m.push(m.none_); });
    set('P', "PERSID", [](M& m) {
      m.push_text(Kind::kString, m.in_.take_line());
      m.push(m.resolver_->persistent(m.pop()));
    });
    set('Q', "BINPERSID", [](M& m) { m.push(m.resolver_->persistent(m.pop())); });
    set('R', "REDUCE", [](M& m) { m.op_reduce(); });
    set('S', "STRING", [](M& m) { m.op_string(); });
    set('T', "BINSTRING", [](M& m) { m.push_python2_string(m.take_sized(m.in_.u32())); });
    set('U', "SHORT_BINSTRING", [](M& m) { m.push_python2_string(m.take_sized(m.in_.u8())); });
    set('V', "UNICODE", [](M& m) { m.op_unicode(); });
    set('X', "BINUNICODE", [](M& m) { m.push_unicode(m.take_sized(m.in_.u32())); });
    set('a', "APPEND", [](M& m) {
      Cell* const item = m.pop();
      m.append_to(m.top(), {&item, 1});
    });
    set('b', "BUILD", [](M& m) { m.op_build(); });
    set('c', "GLOBAL", [](M& m) { m.op_global(); });
    set('d', "DICT", [](M& m) { m.op_dict(); });
    set('e', "APPENDS", [](M& m) { m.take_items(&M::append_to); });
    set('g', "GET", [](M& m) { m.get(m.line_index()); });
    set('h', "BINGET", [](M& m) { m.get(m.in_.u8()); });
    set('i', "INST", [](M& m) { m.op_inst(); });
    set('j', "LONG_BINGET", [](M& m) { m.get(m.in_.u32()); });
    set('l', "LIST", [](M& m) { m.push_from_mark(Kind::kList); });
    set('o', "OBJ", [](M& m) { m.op_obj(); });
    set('p', "PUT", [](M& m) { m.put(m.line_index()); });
    set('q', "BINPUT", [](M& m) { m.put(m.in_.u8()); });
    set('r', "LONG_BINPUT", [](M& m) { m.put(m.in_.u32()); });
    set('s', "SETITEM", [](M& m) {
      Cell* const value = m.pop();
      Cell* const pair[] = {m.pop(), value};
      m.set_items(m.top(), pair);
    });
    set('t', "TUPLE", [](M& m) { m.push_from_mark(Kind::kTuple); });
    set('u', "SETITEMS", [](M& m) { m.take_items(&M::set_items); });
    set('G', "BINFLOAT", [](M& m) { m.op_binfloat(); });
    set(')', "EMPTY_TUPLE", [](M& m) { m.push(m.empty_); });
    set(']', "EMPTY_LIST", [](M& m) { m.push(m.make(Kind::kList)); });
    set('}', "EMPTY_DICT", [](M& m) { m.push(m.make(Kind::kDict)); });
    // Protocol 2.
    set(0x80, "PROTO", [](M& m) { m.op_proto(); });
    set(0x81, "NEWOBJ", [](M& m) { m.op_reduce(); });
    set(0x82, "EXT1", nullptr);
    set(0x83, "EXT2", nullptr);
    set(0x84, "EXT4", nullptr);
    set(0x85, "TUPLE1", [](M& m) { m.push_small_tuple(1); });
    set(0x86, "TUPLE2", [](M& m) { m.push_small_tuple(2); });
    set(0x87, "TUPLE3", [](M& m) { m.push_small_tuple(3); });
    set(0x88, "NEWTRUE", [](M& m) { m.push(m.true_); });
    set(0x89, "NEWFALSE", [](M& m) { m.push(m.false_); });
    set(0x8a, "LONG1", [](M& m) { m.push_long(m.in_.take(m.in_.u8())); });
    set(0x8b, "LONG4", [](M& m) { m.push_long(m.in_.take(m.in_.u32())); });
    // Protocols 3 and 4.
    set('B', "BINBYTES", [](M& m) { m.push_text(Kind::kBytes, m.take_sized(m.in_.u32())); });
    set('C', "SHORT_BINBYTES", [](M& m) { m.push_text(Kind::kBytes, m.take_sized(m.in_.u8())); });
    set(0x8c, "SHORT_BINUNICODE", [](M& m) { m.push_unicode(m.take_sized(m.in_.u8())); });
    set(0x8d, "BINUNICODE8", [](M& m) { m.push_unicode(m.take_sized(m.in_.u64())); });
    set(0x8e, "BINBYTES8", [](M& m) { m.push_text(Kind::kBytes, m.take_sized(m.in_.u64())); });
    set(0x8f, "EMPTY_SET", [](M& m) { m.push(m.make(Kind::kSet)); });
    set(0x90, "ADDITEMS", [](M& m) { m.take_items(&M::add_items); });
    set(0x91, "FROZENSET", [](M& m) { m.op_frozenset(); });
    set(0x92, "NEWOBJ_EX", [](M& m) { m.op_newobj_ex(); });
    set(0x93, "STACK_GLOBAL", [](M& m) { m.op_stack_global(); });
    set(0x94, "MEMOIZE", [](M& m) { m.put(m.memo_.size()); });
    set(0x95, "FRAME", [](M& m) { m.op_frame(); });
    // Protocol 5.
    set(0x96, "BYTEARRAY8", [](M& m) { m.op_bytearray8(); });
    set(0x97, "NEXT_BUFFER", nullptr);
    set(0x98, "READONLY_BUFFER", nullptr);
    return t;
  }();
  return kTable;
}

}  // namespace penstock::format::pickle
