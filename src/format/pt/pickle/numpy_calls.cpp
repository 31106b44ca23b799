// NumPy's dtypes, scalars and arrays as they are pickled (numpy/_core/src/multiarray: descriptor.c, methods.c).

#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "format/pt/pickle/calls.h"
#include "format/pt/pickle/scalars.h"
#include "format/text/npy_dtype.h"
#include "format/text/utf8.h"
#include "penstock/error.h"
#include "penstock/half.h"

namespace penstock::format::pickle {

namespace {

using Kind = Value::Kind;
using enum DType::Code;

using core::corrupt;

/// A dtype that elements in a file have: what it is here, and whether their bytes are the other way round.
struct FileDType {
  DType dtype;
  bool swapped = false;
};

/// Text of either kind: Python 2 made no difference, and ASCII bytes became strings.
std::optional<std::string_view> text_of(const Cell& cell) {
  if (cell.is(Kind::kString) || cell.is(Kind::kBytes)) return cell.text;
  return std::nullopt;
}

/// The unit of a datetime64, which lies at the end of its state: ({...}, (b'ns', 1, 1, 1)).
std::optional<std::string> unit_of(const Cell* state) {
  if (state == nullptr || state->items.size() < 9) return std::string();
  const Cell& metadata = *state->items[8];
  if (!metadata.is(Kind::kTuple) || metadata.items.size() != 2) return std::nullopt;
  const Cell& unit = *metadata.items[1];
  if (!unit.is(Kind::kTuple) || unit.items.size() < 2 || !unit.items[1]->is(Kind::kInt)) return std::nullopt;
  const auto name = text_of(*unit.items[0]);
  const std::int64_t count = unit.items[1]->integer;
  if (!name || name->size() > 7 || count < 1) return std::nullopt;
  if (*name == "generic") return std::string();
  return count == 1 ? core::format("[{}]", *name) : core::format("[{}{}]", count, *name);
}

/// "f8", "i4", "?", "U5", "M8": the text in numpy.dtype(text, align, copy), and the state that BUILD gave. Nothing for
/// kinds whose elements Penstock cannot carry: objects, structures, user types.
std::optional<FileDType> file_dtype(const Cell& cell) {
  if (cell.role != Role::kNumpyDType || cell.items.empty()) return std::nullopt;
  const auto text = text_of(*cell.items[0]);
  if (!text || text->empty()) return std::nullopt;
  std::string descr(*text == "?" ? "b1" : *text);
  if (descr == "M8" || descr == "m8") {
    const auto unit = unit_of(cell.state);
    if (!unit) return std::nullopt;
    descr += *unit;
  }
  if (cell.state != nullptr) {
    const auto& state = cell.state->items;
    const auto order = cell.state->is(Kind::kTuple) && state.size() >= 5 ? text_of(*state[1]) : std::nullopt;
    if (!order || !state[2]->is(Kind::kNone) || !state[3]->is(Kind::kNone)) return std::nullopt;
    if (*order == ">") descr.insert(0, ">");
  }
  try {
    const NpyType type = npy_type_from_string(descr);
    if (type.has_objects || type.dtype.code() == kOpaque) return std::nullopt;
    return FileDType{type.dtype, type.byte_swapped};
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The bytes of an array or scalar; a Python 2 string that happens to be UTF-8 is bytes as well.
std::string_view require_bytes(const Cell& cell, std::string_view what) {
  const auto bytes = text_of(cell);
  if (!bytes) corrupt(core::format("the data of {} is neither bytes nor a string", what));
  return *bytes;
}

/// A storage in memory with these bytes. Arrays made of one bytes object share it.
std::uint32_t inline_storage(World& world, const Cell& cell, std::string_view bytes) {
  const auto [known, fresh] = world.inline_storages().try_emplace(&cell, 0U);
  if (!fresh) return known->second;
  StorageEntry storage{.name = "inline",
                       .stored_bytes = bytes.size(),
                       .nbytes = bytes.size(),
                       .resident = Buffer::allocate(bytes.size())};
  if (!bytes.empty()) std::memcpy(storage.resident.data(), bytes.data(), bytes.size());
  known->second = static_cast<std::uint32_t>(world.index().storages.size());
  world.index().storages.push_back(std::move(storage));
  return known->second;
}

Cell* make_array(World& world, const Cell& data, const FileDType& type, const Shape& shape, bool fortran) {
  const std::string_view bytes = require_bytes(data, "an array");
  for (const std::int64_t size : shape) {
    if (size < 0) corrupt(core::format("an array of shape {}", shape.to_string()));
  }
  const std::int64_t wanted =
      core::checked_mul(shape.numel(), static_cast<std::int64_t>(type.dtype.itemsize()), "the size of an array");
  if (static_cast<std::uint64_t>(wanted) != bytes.size()) {
    corrupt(core::format("an array {} of shape {} takes {}, but {} are there", type.dtype.name(), shape.to_string(),
                         core::counted(wanted, "byte"), bytes.size()));
  }
  TensorEntry tensor{.dtype = type.dtype,
                     .shape = shape,
                     .strides = fortran ? shape.fortran_strides() : shape.contiguous_strides(),
                     .storage = inline_storage(world, data, bytes)};
  Cell* cell = world.make_tensor(std::move(tensor));
  // An array has its own byte order, whatever that of the archive.
  world.tensor_of(*cell).encoding.swapped = type.swapped;
  return cell;
}

template <class T>
T element(std::string_view bytes, bool swapped) {
  char copy[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i) copy[i] = bytes[swapped ? sizeof(T) - 1 - i : i];
  return std::bit_cast<T>(copy);
}

/// NaN with this sign and fraction. Arithmetic conversions make one NaN of another.
double wide_nan(bool negative, std::uint64_t fraction, int fraction_bits) {
  const std::uint64_t sign = negative ? std::uint64_t{1} << 63U : 0;
  return std::bit_cast<double>(sign | std::uint64_t{0x7FF} << 52U | fraction << (52 - fraction_bits));
}

double half_to_double(std::uint16_t bits) {
  const bool is_nan = (bits & 0x7C00) == 0x7C00 && (bits & 0x3FF) != 0;
  if (is_nan) return wide_nan(bits >> 15 != 0, bits & 0x3FFU, 10);
  return static_cast<double>(float16::from_bits(bits));
}

double float_to_double(std::uint32_t bits) {
  const std::uint32_t fraction = bits & 0x7FFFFF;
  const bool is_nan = (bits >> 23 & 0xFF) == 0xFF && fraction != 0;
  if (is_nan) return wide_nan(bits >> 31 != 0, fraction, 23);
  return static_cast<double>(std::bit_cast<float>(bits));
}

Cell* make_int(World& world, std::int64_t value) {
  Cell* cell = world.make(Kind::kInt);
  cell->integer = value;
  return cell;
}

/// Whether it is the dtype of Python objects, and of nothing else.
bool is_object_dtype(const Cell& cell) {
  if (cell.role != Role::kNumpyDType || cell.items.empty()) return false;
  const auto text = text_of(*cell.items[0]);
  return text && (*text == "O" || *text == "O8" || *text == "O4");
}

/// The items in lists of lists, as the dimensions say.
std::vector<Cell*> nested(World& world, std::span<Cell* const> items, const Shape& shape) {
  std::vector<Cell*> level(items.begin(), items.end());
  for (std::size_t dim = shape.rank(); dim-- > 1;) {
    const auto length = static_cast<std::size_t>(shape[dim]);
    std::int64_t count = 1;
    for (std::size_t outer = 0; outer < dim; ++outer) {
      count = core::checked_mul(count, shape[outer], "the size of an array");
    }
    std::vector<Cell*> lists;
    for (std::int64_t i = 0; i < count; ++i) {
      lists.push_back(world.make(Kind::kList));
      const auto first = level.begin() + static_cast<std::ptrdiff_t>(length * static_cast<std::size_t>(i));
      lists.back()->items.assign(first, first + static_cast<std::ptrdiff_t>(length));
    }
    level = std::move(lists);
  }
  return level;
}

/// Makes the array a list of the objects of `list`, which are in C order whatever that of the array.
void build_object_list(World& world, Cell* array, const Cell& list, const Shape& shape) {
  for (const std::int64_t size : shape) {
    if (size < 0) corrupt(core::format("an array of shape {}", shape.to_string()));
  }
  if (!list.is(Kind::kList) || static_cast<std::uint64_t>(shape.numel()) != list.items.size()) {
    corrupt(core::format("an array of shape {} has {}", shape.to_string(), core::counted(list.items.size(), "object")));
  }
  world.arena().charge(list.items.size());
  const std::vector<Cell*> items = nested(world, {list.items.begin(), list.items.size()}, shape);
  array->kind = Kind::kList;
  array->role = Role::kPlain;
  array->type_name = kObjectsName;
  array->items.assign(items.begin(), items.end());
  array->state = world.make(Kind::kTuple);
  for (const std::int64_t size : shape) array->state->items.push_back(make_int(world, size));
}

Cell* make_real(World& world, double value) {
  Cell* cell = world.make(Kind::kFloat);
  cell->real = value;
  return cell;
}

Cell* make_complex(World& world, double real, double imaginary) {
  Cell* cell = world.make(Kind::kComplex);
  cell->parts[0] = real;
  cell->parts[1] = imaginary;
  return cell;
}

Cell* make_unsigned(World& world, std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return make_int(world, static_cast<std::int64_t>(value));
  }
  Cell* cell = world.make(Kind::kBigInt);
  cell->text = world.arena().keep(std::to_string(value));
  return cell;
}

/// Text of four bytes a code point as UTF-8, without the padding; nothing for what is no Unicode.
std::optional<std::string> utf8_of(std::string_view bytes, bool swapped) {
  std::string out;
  std::size_t padding = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    const auto point = element<std::uint32_t>(bytes.substr(at), swapped);
    if (point == 0) {
      ++padding;
      continue;
    }
    if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return std::nullopt;
    out.append(std::exchange(padding, 0), '\0');
    append_utf8(out, point);
  }
  return out;
}

/// The plain value of one element, or null for kinds that have none.
Cell* make_value(World& world, const FileDType& type, std::string_view bytes) {
  const bool swapped = type.swapped;
  switch (type.dtype.code()) {
    case kBool: {
      Cell* cell = world.make(Kind::kBool);
      cell->boolean = bytes[0] != '\0';
      return cell;
    }
    case kInt8:
      return make_int(world, element<std::int8_t>(bytes, swapped));
    case kInt16:
      return make_int(world, element<std::int16_t>(bytes, swapped));
    case kInt32:
      return make_int(world, element<std::int32_t>(bytes, swapped));
    case kInt64:
      return make_int(world, element<std::int64_t>(bytes, swapped));
    case kUInt8:
      return make_unsigned(world, element<std::uint8_t>(bytes, swapped));
    case kUInt16:
      return make_unsigned(world, element<std::uint16_t>(bytes, swapped));
    case kUInt32:
      return make_unsigned(world, element<std::uint32_t>(bytes, swapped));
    case kUInt64:
      return make_unsigned(world, element<std::uint64_t>(bytes, swapped));
    case kFloat16:
      return make_real(world, half_to_double(element<std::uint16_t>(bytes, swapped)));
    case kFloat32:
      return make_real(world, float_to_double(element<std::uint32_t>(bytes, swapped)));
    case kFloat64:
      return make_real(world, element<double>(bytes, swapped));
    case kComplex64:
      return make_complex(world, float_to_double(element<std::uint32_t>(bytes, swapped)),
                          float_to_double(element<std::uint32_t>(bytes.substr(4), swapped)));
    case kComplex128:
      return make_complex(world, element<double>(bytes, swapped), element<double>(bytes.substr(8), swapped));
    case kBytes: {
      Cell* cell = world.make(Kind::kBytes);
      cell->text = bytes.substr(0, bytes.find_last_not_of('\0') + 1);  // NumPy drops the padding
      return cell;
    }
    case kText: {
      const auto text = utf8_of(bytes, swapped);
      if (!text) return nullptr;
      Cell* cell = world.make(Kind::kString);
      cell->text = world.arena().keep(*text);
      return cell;
    }
    default:
      return nullptr;
  }
}

/// The same with the name of NumPy's type.
Cell* make_scalar(World& world, const FileDType& type, std::string_view bytes) {
  Cell* cell = make_value(world, type, bytes);
  if (cell == nullptr) return nullptr;
  switch (type.dtype.code()) {
    case kBytes:
      cell->type_name = "numpy.bytes_";
      break;
    case kText:
      cell->type_name = "numpy.str_";
      break;
    default:
      cell->type_name = world.arena().keep(core::format("numpy.{}", type.dtype.name()));
  }
  return cell;
}

}  // namespace

/// (text, align, copy); BUILD brings (version, byte order, subtype, names, fields, size, alignment, flags[, metadata]).
Cell* call_numpy_dtype(const Call& call) {
  require_count(call, 1, 4);
  Cell* dtype = call.world.make_object(call.name(), call.arguments);
  dtype->role = Role::kNumpyDType;
  return dtype;
}

/// (dtype, bytes)
Cell* call_numpy_scalar(const Call& call) {
  require_count(call, 1, 2);
  const auto type = file_dtype(*call.arguments[0]);
  if (call.arguments.size() == 2 && type) {
    const std::string_view bytes = require_bytes(*call.arguments[1], "a NumPy scalar");
    if (bytes.size() != type->dtype.itemsize()) {
      corrupt(core::format("a NumPy scalar {} has {}", type->dtype.name(), core::counted(bytes.size(), "byte")));
    }
    if (Cell* scalar = make_scalar(call.world, *type, bytes)) return scalar;
  }
  return call.world.make_object(call.name(), call.arguments);
}

/// (class, (0,), b'b'): an empty array that BUILD fills.
Cell* call_numpy_reconstruct(const Call& call) {
  require_count(call, 3, 3);
  const Cell& type = require(call, 0, Kind::kGlobal, "class");
  Cell* array = call.world.make(Kind::kObject, type.type_name);
  array->role = Role::kNumpyArray;
  return array;
}

/// (bytes, dtype, shape, order[, axis order]), of protocol 5.
Cell* call_numpy_frombuffer(const Call& call) {
  require_count(call, 4, 5);
  const auto type = file_dtype(*call.arguments[1]);
  const std::string_view order = require(call, 3, Kind::kString, "order").text;
  const bool plain = call.arguments.size() == 4 || call.arguments[4]->is(Kind::kNone);
  if (!type || !plain || (order != "C" && order != "F")) return call.world.make_object(call.name(), call.arguments);
  Cell* array = make_array(call.world, *call.arguments[0], *type, require_shape(call, 2, "shape"), order == "F");
  array->type_name = kArrayInFileOrderName;
  return array;
}

/// (version, shape, dtype, Fortran order, bytes); version is missing in the oldest.
void build_numpy_array(World& world, Cell* array, Cell* state) {
  const auto& all = state->items;
  if (!state->is(Kind::kTuple) || (all.size() != 5 && all.size() != 4)) {
    array->role = Role::kPlain;
    array->state = state;
    return;
  }
  const auto items = std::span<Cell* const>(all).last(4);
  const auto shape = shape_of(*items[0]);
  if (world.object_lists() && shape && is_object_dtype(*items[1])) {
    return build_object_list(world, array, *items[3], *shape);
  }
  const auto type = file_dtype(*items[1]);
  // Arrays of objects are lists of pickled things, structures have a dtype of many parts: both stay as they are.
  if (!type || items[3]->is(Kind::kList)) {
    array->role = Role::kPlain;
    array->state = state;
    return;
  }
  const bool flag = items[2]->is(Kind::kBool) || items[2]->is(Kind::kInt);
  if (!shape || !flag) corrupt("shape or order of a NumPy array is of the wrong kind");
  const bool fortran = items[2]->is(Kind::kBool) ? items[2]->boolean : items[2]->integer != 0;
  const Cell* made = make_array(world, *items[3], *type, *shape, fortran);
  array->kind = Kind::kTensor;
  array->role = Role::kTensor;
  array->ref = made->ref;
}

}  // namespace penstock::format::pickle
