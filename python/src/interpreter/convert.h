#pragma once

// Arguments from Python, and small values to it. Everything here needs the GIL.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interpreter/typed.h"
#include "penstock/device.h"
#include "penstock/dtype.h"
#include "penstock/shape.h"

namespace penstock::python {

/// The bytes of a path: str, bytes or os.PathLike; TypeError otherwise.
std::string path_from(nb::handle path);
/// The same of an index that is kept: empty where True or False says only whether one is. kInvalidArgument for no name.
std::string index_path_from(nb::handle index);
/// Whether it is one of these.
bool is_path(nb::handle object);
/// A Device, its text, or another library's device that prints as such.
Device device_from(nb::handle device);
/// The same, or the index of a CUDA device.
Device numbered_device_from(nb::handle device);
/// A DType, a name or descr, a Python number type, or another library's dtype. kInvalidArgument names what was given
/// for `argument`.
DType dtype_from(nb::handle dtype, const char* argument = "dtype");
/// The same; nothing for what names no type.
std::optional<DType> try_dtype_from(nb::handle dtype);
/// A count given as the argument `name`; kInvalidArgument below 0.
std::size_t not_negative(std::int64_t value, const char* name);
/// An int, or what has an __index__; kInvalidArgument beyond 64 bits.
std::int64_t integer_from(nb::handle object);
/// The same of numbers from 0 to 2^64 - 1.
std::uint64_t unsigned_from(nb::handle object);
/// Integers in a range or a list of Python's own ints, for which none of the program's code runs; nothing otherwise.
std::optional<std::vector<std::int64_t>> plain_integers_from(nb::handle sequence);
/// Integers in an iterable; answers signals.
std::vector<std::int64_t> integers_from(nb::handle sequence);
/// A shape in a sequence of integers, as other libraries' arrays have it. Of arguments: shape_argument.
Shape shape_from(nb::handle shape);

/// UTF-8 of a str, TypeError for other objects; and back. Bytes that are no UTF-8 travel as lone surrogates, so that
/// any name in a file can be given back to find it.
std::string name_from(nb::handle text);
nb::str text_from(std::string_view utf8);
/// A file name or path as Python spells it.
Typed<nb::str> path_text(std::string_view path);
Sizes tuple_of(const Shape& shape);

/// A list of what `each` makes of the items.
template <class Items, class Each>
auto list_of(const Items& items, Each each) {
  ListOf<std::decay_t<decltype(each(*std::begin(items)))>> out;
  for (const auto& item : items) out.append(each(item));
  return out;
}
/// A list of numbers.
template <class Items>
auto list_of(const Items& items) {
  return list_of(items, [](const auto& item) { return item; });
}

/// What a function of Python's gave, which is owned from here on; the exception that it set where that is null.
nb::object checked(PyObject* object);

/// What `__reduce__` gives of an object with `__getstate__` and `__setstate__`, under every protocol; without it
/// pickles of protocols 0 and 1 refuse classes that are not Python's own.
nb::object reduced_by_state(nb::handle self);

/// An attribute of an object of another library; `otherwise` where there is none, or the object raises an Exception
/// when it is asked. What is none (KeyboardInterrupt, SystemExit) is raised: Python runs signal handlers in such code.
nb::object attribute_or(nb::handle object, const char* name, nb::object otherwise = nb::none());
bool has_attribute(nb::handle object, const char* name);

/// Keeps a Python object alive from C++, whatever thread lets go of it last; after the interpreter's end it is left.
std::shared_ptr<const void> keep_alive(nb::object object);

/// An argument as messages show it: its repr in one line, cut where it is long.
std::string shown(nb::handle object);
/// Module and name of an object's type: "numpy.ndarray".
std::string object_type(nb::handle object);
/// The module of an object's type begins with `library` ("torch").
bool comes_from(nb::handle object, std::string_view library);

}  // namespace penstock::python
