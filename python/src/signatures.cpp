// What `inspect.signature` and `help` find out about our functions. nanobind knows each one's signature and docstring,
// but tells both only as one text in `__doc__`, whose first line is as long as the signature.

#include <string_view>

#include "bindings.h"
#include "convert.h"

namespace penstock::python {
namespace {

/// How nanobind looks attributes up: one function for functions and methods, one for bound methods. Set once, while the
/// module is made.
struct Lookups {
  getattrofunc function = nullptr;
  getattrofunc bound = nullptr;
};
Lookups& nanobinds() noexcept {
  static Lookups lookups;
  return lookups;
}

/// The docstrings of all overloads, without their signatures.
nb::object docstring_of(nb::handle function) {
  nb::list texts;
  for (const nb::handle overload : nb::iter(function.attr("__nb_signature__"))) {
    const nb::object text = overload[1];
    if (!text.is_none() && !nb::cast<bool>(texts.attr("__contains__")(text))) texts.append(text);
  }
  return nb::len(texts) == 0 ? nb::none() : nb::str("\n\n").attr("join")(texts);
}

PyObject* attribute_of(PyObject* self, PyObject* name, getattrofunc otherwise, bool is_bound) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  const std::string_view wanted = text;
  if (wanted != "__doc__" && wanted != "__signature__") return otherwise(self, name);
  try {
    if (wanted == "__doc__") return docstring_of(self).release().ptr();
    const nb::object signature = nb::module_::import_("penstock._signature").attr("signature_of");
    return signature(nb::handle(self).attr("__nb_signature__"), is_bound).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
}

PyObject* attribute_of_function(PyObject* self, PyObject* name) {
  return attribute_of(self, name, nanobinds().function, false);
}

PyObject* attribute_of_bound(PyObject* self, PyObject* name) {
  return attribute_of(self, name, nanobinds().bound, true);
}

getattrofunc replace_lookup(nb::handle object, getattrofunc lookup) {
  PyTypeObject* type = Py_TYPE(object.ptr());
  const getattrofunc before = type->tp_getattro;
  type->tp_getattro = lookup;
  PyType_Modified(type);
  return before;
}

}  // namespace

void bind_signatures(nb::module_& module) {
  const nb::object method = module.attr("Device").attr("__getstate__");
  const nb::object bound = nb::cast(Device()).attr("__getstate__");
  nanobinds().function = replace_lookup(module.attr("load"), attribute_of_function);
  replace_lookup(method, attribute_of_function);
  nanobinds().bound = replace_lookup(bound, attribute_of_bound);
}

}  // namespace penstock::python
