// Writes pickles as Python's own pickler does, so that equal content gives equal bytes. A value that was written before
// is fetched from the memo. The depth of what is written is counted as readers count it, because they refuse what nests
// too deep.

#include "format/pt/pickle/pickle_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "format/pt/pickle/scalars.h"
#include "format/pt/pickle/structure.h"
#include "format/pt/pickle/written_keys.h"
#include "format/text/utf8.h"
#include "penstock/error.h"

namespace penstock::format::pickle {

namespace {

using Kind = Value::Kind;

/// As many items as Python's pickler hands over at once.
constexpr std::size_t kBatch = 1000;
std::string place_of(const Value& key) {
  if (key.is(Kind::kString)) return key.as_string();
  return key.is(Kind::kInt) ? std::to_string(key.as_int()) : "key";
}

bool has_parts(Kind kind) {
  return kind == Kind::kList || kind == Kind::kTuple || kind == Kind::kDict || kind == Kind::kSet ||
         kind == Kind::kObject;
}

[[noreturn]] void throw_too_deep_to_write() {
  throw Error(ErrorCode::kLimit,
              core::format("the value is nested more than {} levels deep, which a .pt cannot be", kMaxDepth));
}

}  // namespace

std::string PickleWriter::write(const Value& root) {
  value(root);
  return take();
}

void PickleWriter::unsupported(std::string message) const {
  throw Error(ErrorCode::kUnsupported, std::move(message), {.tensor = place_});
}

void PickleWriter::refuse(const std::string& message) const {
  throw Error(ErrorCode::kUnsupported,
              place_.empty() ? message : core::format("at {}: {}", core::quoted(place_), message));
}

std::int64_t PickleWriter::integer_of(const Value& value) const {
  if (!value.is(Kind::kInt)) unsupported("a size is not an integer of 64 bits");
  return value.as_int();
}

bool PickleWriter::again(const Value& value) {
  const auto found = nodes_.find(value.node_id());
  if (found == nodes_.end()) return false;
  get(found->second.memo);
  height_again_ = found->second.height;
  return true;
}

void PickleWriter::remember(const Value& value) { nodes_[value.node_id()].memo = last_memo(); }

void PickleWriter::value(const Value& value) {
  if (++depth_ > kMaxDepth) throw_too_deep_to_write();
  const std::uint32_t before = std::exchange(height_, 0);
  write_value(value);
  height_ = std::max(before, height_of(value));
  if (height_ > kMaxDepth) throw_too_deep_to_write();
  --depth_;
}

std::uint32_t PickleWriter::height_of(const Value& value) {
  if (const auto again = std::exchange(height_again_, std::nullopt)) return *again;
  if (!has_parts(value.kind())) return 0;
  if (const auto found = nodes_.find(value.node_id()); found != nodes_.end()) found->second.height = height_ + 1;
  return height_ + 1;
}

void PickleWriter::write_child(const Value& child_value, std::string_view place) {
  const std::size_t length = place_.size();
  if (!place_.empty()) place_ += '.';
  place_ += place;
  value(child_value);
  place_.resize(length);
}

void PickleWriter::write_child(const Value& child_value, std::size_t place) {
  write_child(child_value, std::to_string(place));
}

void PickleWriter::write_value(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone:
      return push_none();
    case Kind::kBool:
      return push_boolean(value.as_bool());
    case Kind::kInt:
      return push_integer(value.as_int());
    case Kind::kBigInt:
      return write_big_integer(value.as_string());
    case Kind::kFloat:
      return push_real(value.as_float());
    case Kind::kComplex:
      return write_complex(value.as_complex());
    case Kind::kString:
      return write_python_text(value.as_string());
    case Kind::kBytes:
      return write_bytes(value);
    case Kind::kDType: {
      const std::string name = value.as_dtype().name();
      if (!torch_dtype(name)) refuse(core::format("torch has no dtype {}", name));
      return push_global("torch", name);
    }
    case Kind::kTensor:
      if (again(value)) return;
      tensor_hook_(*this, value);
      return remember(value);
    case Kind::kList:
      return write_list(value);
    case Kind::kTuple:
      return value.type_name() == "torch.Size" ? write_size(value) : write_tuple(value);
    case Kind::kDict:
      return write_dict(value);
    case Kind::kSet:
      return write_set(value);
    case Kind::kObject:
    case Kind::kGlobal:
      if (value.is(Kind::kObject) && again(value)) return;
      wants_proof_ = true;
      if (!object_hook_(*this, value)) {
        refuse(core::format("the value is an object {} that Penstock does not know and so cannot write; leave it out",
                            core::quoted(value.type_name())));
      }
      if (value.is(Kind::kObject)) remember(value);
  }
}

void PickleWriter::write_big_integer(std::string_view decimal) {
  const auto normal = normal_decimal(decimal);
  if (!normal) refuse("the integer is not the decimal text of a number");
  if (normal->size() > kMaxLongDigits) {
    refuse(
        core::format("the integer has {}, where torch reads up to 255 bytes", core::counted(normal->size(), "digit")));
  }
  const std::string bytes = bytes_of_decimal(*normal);
  if (bytes.size() > 0xFF)
    refuse(core::format("the integer takes {}, where torch reads up to 255", core::counted(bytes.size(), "byte")));
  push_long_integer(bytes);
}

/// Which may have lone surrogates.
void PickleWriter::write_python_text(std::string_view utf8) {
  if (!is_utf8_with_surrogates(utf8)) refuse("the text is not UTF-8; save it as bytes");
  if (utf8.size() > std::numeric_limits<std::uint32_t>::max()) refuse("the text has 4 GiB or more");
  push_text(utf8);
}

void PickleWriter::write_bytes(const Value& value) {
  if (value.type_name() == "str") return write_python_text(value.as_string());
  if (again(value)) return;
  const bool is_array = value.type_name() == "bytearray";
  if (is_array) {
    push_global("__builtin__", "bytearray");
  } else {
    push_global("_codecs", "encode");
  }
  push_text(from_latin1(value.as_string()));
  push_text(is_array ? "latin-1" : "latin1");
  push_tuple(2);
  reduce();
  remember(value);
}

void PickleWriter::write_complex(std::complex<double> value) {
  push_global("__builtin__", "complex");
  push_real(value.real());
  push_real(value.imag());
  push_tuple(2);
  reduce();
}

void PickleWriter::write_list(const Value& value) {
  if (again(value)) return;
  push_empty_list();
  remember(value);
  const std::size_t size = value.size();
  if (size == 1) {
    write_child(value[0], std::size_t{0});
    return append();
  }
  for (std::size_t first = 0; first < size; first += kBatch) {
    mark();
    for (std::size_t i = first; i < std::min(size, first + kBatch); ++i) write_child(value[i], i);
    extend();
  }
}

void PickleWriter::push_empty_ordered_dict() {
  push_global("collections", "OrderedDict");
  push_tuple(0);
  reduce();
}

void PickleWriter::write_tuple(const Value& value) {
  if (!value.type_name().empty()) {
    refuse(core::format("the tuple is a {}, which torch does not load safely", core::quoted(value.type_name())));
  }
  if (value.size() == 0) return push_tuple(0);
  if (again(value)) return;
  if (!open_tuples_.insert(value.node_id()).second) refuse("the tuple holds itself, which torch does not load safely");
  if (value.size() > 3) mark();
  for (std::size_t i = 0; i < value.size(); ++i) write_child(value[i], i);
  push_tuple(value.size());
  open_tuples_.erase(value.node_id());
  remember(value);
}

void PickleWriter::write_size(const Value& value) {
  if (again(value)) return;
  push_global("torch", "Size");
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < value.size(); ++i) sizes.push_back(integer_of(value[i]));
  push_integers(sizes);
  push_tuple(1);
  reduce();
  remember(value);
}

void PickleWriter::write_dict(const Value& value) {
  if (again(value)) return;
  const std::string_view type = value.type_name();
  if (type.empty() || type == "dict") {
    push_empty_dict();
    remember(value);
    write_dict_items(value);
  } else if (type == "collections.OrderedDict" || type == "OrderedDict") {
    push_empty_ordered_dict();
    remember(value);
    write_dict_items(value);
    if (const auto state = value.state()) {
      write_child(*state, "state");
      build();
    }
  } else if (type == "collections.Counter") {
    push_global("collections", "Counter");
    push_empty_dict();
    write_dict_items(value);
    push_tuple(1);
    reduce();
    remember(value);
  } else {
    refuse(
        core::format("the dict is a {}, which torch does not load safely; make it a plain dict", core::quoted(type)));
  }
}

void PickleWriter::require_readable_key(const Value& key) const {
  if (auto why = why_no_key(key)) refuse(std::move(*why));
}

void PickleWriter::write_dict_items(const Value& value) {
  const std::size_t size = value.size();
  if (const auto twin = twin_key(value)) {
    refuse(core::format("the dict has the key {} twice", core::quoted(place_of(*twin))));
  }
  for (std::size_t first = 0; first < size; first += kBatch) {
    if (size > 1) mark();
    for (std::size_t i = first; i < std::min(size, first + kBatch); ++i) {
      const Value::Item item = value.item(i);
      require_readable_key(item.first);
      write_child(item.first, "key");
      write_child(item.second, place_of(item.first));
    }
    size > 1 ? set_items() : set_item();
  }
}

void PickleWriter::write_set(const Value& value) {
  if (again(value)) return;
  if (!value.type_name().empty() && value.type_name() != "set") {
    refuse(core::format("the set is a {}, which torch does not load safely", core::quoted(value.type_name())));
  }
  push_global("__builtin__", "set");
  push_empty_list();
  for (std::size_t first = 0; first < value.size(); first += kBatch) {
    mark();
    for (std::size_t i = first; i < std::min(value.size(), first + kBatch); ++i) {
      require_readable_key(value[i]);
      write_child(value[i], i);
    }
    extend();
  }
  push_tuple(1);
  reduce();
  remember(value);
}

}  // namespace penstock::format::pickle
