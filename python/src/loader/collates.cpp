#include <nanobind/stl/string.h>

#include "bindings.h"
#include "call/arguments.h"
#include "core/format.h"
#include "data/collate/rule.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "penstock/collate.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

PadMode mode_from(const std::string& mode) {
  return choice_argument<PadMode>(text_from(mode), "mode",
                                  {{"zero", PadMode::kConstant},
                                   {"constant", PadMode::kConstant},
                                   {"reflect", PadMode::kReflect},
                                   {"replicate", PadMode::kReplicate}});
}

std::vector<std::int64_t> dims_from(nb::handle dims) {
  std::vector<std::int64_t> out = integers_argument(dims, "dims");
  if (out.empty()) throw Error(ErrorCode::kInvalidArgument, "found no dimension in dims, expected one or more");
  return out;
}

PadOptions options_from(std::int64_t dim, const std::string& mode, nb::handle given, bool lengths, bool mask,
                        nb::handle keys, nb::handle dims) {
  const double value = exact_number_argument(given, "value");
  PadOptions options;
  options.dim = dim;
  if (!dims.is_none()) options.dims = dims_from(dims);
  options.mode = mode_from(mode);
  if (mode != "constant" && value != 0) {
    throw Error(ErrorCode::kInvalidArgument, core::format("found value={} with mode \"{}\", expected it with "
                                                          "mode \"constant\"",
                                                          value, mode));
  }
  options.value = value;
  options.lengths = lengths;
  options.mask = mask;
  options.keys = keys_from(keys);
  return options;
}

/// Names, dimensions or sizes, or one.
nb::object kept(nb::handle items) {
  return kept_list(items, items.is_none() || PyUnicode_Check(items.ptr()) || PyIndex_Check(items.ptr()));
}

template <class Rule>
Typed<Collate> plain(const char* name, Rule rule) {
  return made_by(name, nb::tuple(), nb::cast(rule()));
}

Typed<Collate> ragged_of(nb::handle cu_seqlens, nb::handle keys) {
  const nb::object names = kept(keys);
  const bool joins = flag_argument(cu_seqlens, "cu_seqlens");
  return made_by("ragged", nb::make_tuple(joins, names),
                 nb::cast(collate::ragged({.cu_seqlens = joins, .keys = keys_from(names)})));
}

Typed<Collate> pad_longest(std::int64_t dim, const std::string& mode, nb::handle value, bool lengths, bool mask,
                           nb::handle keys, nb::handle dims) {
  const nb::object names = kept(keys);
  const nb::object several = kept(dims);
  return made_by("pad", nb::make_tuple(dim, mode, value, lengths, mask, names, several),
                 nb::cast(collate::pad(options_from(dim, mode, value, lengths, mask, names, several))));
}

Typed<Collate> pad_length(nb::handle length, std::int64_t dim, const std::string& mode, nb::handle value, bool lengths,
                          bool mask, nb::handle keys, nb::handle dims) {
  const nb::object names = kept(keys);
  const nb::object several = kept(dims);
  const nb::object size = kept(length);
  const PadOptions options = options_from(dim, mode, value, lengths, mask, names, several);
  const Collate rule = PyIndex_Check(size.ptr()) != 0 ? collate::pad_to(integer_argument(size, "length"), options)
                                                      : collate::pad_to(integers_argument(size, "length"), options);
  return made_by("pad_to", nb::make_tuple(size, dim, mode, value, lengths, mask, names, several), nb::cast(rule));
}

}  // namespace

void bind_collates(nb::module_& module) {
  nb::class_<Collate>(
      module, "Collate", nb::dynamic_attr(),
      "Collate()\n--\n\nHow the samples of a batch become one: stack(), pad(), pad_to(), ragged() or samples().")
      .def("__reduce__", [](nb::handle self) { return nb::object(self.attr("_recipe")); })
      .def("__copy__", itself<Collate>)
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return itself<Collate>(self); }, nb::arg("memo"));
  module.def("stack", [] { return plain("stack", [] { return collate::stack(); }); });
  // For penstock.torch, which makes them where it needs them: they have no recipe for a pickle.
  module.def("_stack_in_order", data::stack_in_order);
  module.def("_samples_in_order", data::samples_in_order);
  module.def("_stack_of_rows", data::stack_of_rows);
  module.def("ragged", ragged_of, nb::arg("cu_seqlens"), nb::arg("keys").none());
  module.def("samples", [] { return plain("samples", collate::samples); });
  module.def("pad", pad_longest, nb::arg("dim"), nb::arg("mode"), nb::arg("value"), nb::arg("lengths"), nb::arg("mask"),
             nb::arg("keys").none(), nb::arg("dims").none());
  module.def("pad_to", pad_length, nb::arg("length").none(), nb::arg("dim"), nb::arg("mode"), nb::arg("value"),
             nb::arg("lengths"), nb::arg("mask"), nb::arg("keys").none(), nb::arg("dims").none());
}

}  // namespace penstock::python
