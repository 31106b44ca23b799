#include <nanobind/stl/string.h>

#include "bindings.h"
#include "convert.h"
#include "core/format.h"
#include "penstock/collate.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

PadMode mode_from(const std::string& mode) {
  if (mode == "zero" || mode == "constant") return PadMode::kConstant;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "replicate") return PadMode::kReplicate;
  throw Error(ErrorCode::kInvalidArgument, core::format("found mode {}, expected \"zero\", \"constant\", "
                                                        "\"reflect\" or \"replicate\"",
                                                        nb::repr(text_from(mode)).c_str()));
}

/// A float64, which whole numbers have to be as they are.
double value_from(nb::handle value) {
  const double out = PyFloat_AsDouble(value.ptr());
  if (out == -1.0 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  if (PyLong_Check(value.ptr()) && !nb::object(nb::steal(PyLong_FromDouble(out))).equal(value)) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found the padding value {}, which no float64 is; choose one of up to 2**53",
                             nb::repr(value).c_str()));
  }
  return out;
}

PadOptions options_from(std::int64_t dim, const std::string& mode, nb::handle given, bool lengths, bool mask,
                        nb::handle keys) {
  const double value = value_from(given);
  PadOptions options;
  options.dim = dim;
  options.mode = mode_from(mode);
  if (mode != "constant" && value != 0) {
    throw Error(ErrorCode::kInvalidArgument, core::format("found value={} with mode \"{}\", expected it with "
                                                          "mode \"constant\"",
                                                          value, mode));
  }
  options.value = value;
  options.lengths = lengths;
  options.mask = mask;
  if (PyUnicode_Check(keys.ptr())) {
    options.keys.push_back(name_from(keys));
  } else if (!keys.is_none()) {
    for (const nb::handle key : nb::iter(keys)) options.keys.push_back(name_from(key));
  }
  return options;
}

Collate pad_longest(std::int64_t dim, const std::string& mode, nb::handle value, bool lengths, bool mask,
                    nb::handle keys) {
  return pad(options_from(dim, mode, value, lengths, mask, keys));
}

Collate pad_length(std::int64_t length, std::int64_t dim, const std::string& mode, nb::handle value, bool lengths,
                   bool mask, nb::handle keys) {
  return pad_to(length, options_from(dim, mode, value, lengths, mask, keys));
}

constexpr const char* kPad =
    "Pads dimension `dim` of each sample at its end to the longest of the "
    "batch, then stacks. `mode` "
    "is \"zero\", \"constant\" (`value`), \"reflect\" or \"replicate\". With "
    "`lengths` or `mask` each "
    "padded tensor becomes a dict of `values`, `lengths` (int64) and `mask` "
    "(bool). `keys`: only these "
    "keys of a dict are padded, the others stacked.";
constexpr const char* kPadTo =
    "Pads or cuts dimension `dim` of each sample at its end to `length`, then "
    "stacks; what lies "
    "beyond the cut is not read. Otherwise as `pad`.";

}  // namespace

void bind_collates(nb::module_& module) {
  // NOLINTNEXTLINE(bugprone-unused-raii): its constructor registers the class
  nb::class_<Collate>(module, "Collate",
                      "How the samples of a batch become one: stack(), pad(), "
                      "pad_to(), ragged() or samples().");
  module.def("stack", stack, "Tensors of equal dtype and shape become one with a new dimension 0.");
  module.def("ragged", ragged, "Tensors stay apart: each becomes a list of tensors.");
  module.def("samples", samples, "Samples stay apart: the batch is a list of them as they are.");
  module.def("pad", pad_longest, nb::arg("dim") = 0, nb::arg("mode") = "zero", nb::arg("value") = 0.0,
             nb::arg("lengths") = false, nb::arg("mask") = false, nb::arg("keys") = nb::none(),
             nb::sig("def pad(dim: int = 0, mode: str = 'zero', value: float = 0.0, "
                     "lengths: bool = False, mask: bool = "
                     "False, keys: str | typing.Iterable[str] | None = None) -> Collate"),
             kPad);
  module.def("pad_to", pad_length, nb::arg("length"), nb::arg("dim") = 0, nb::arg("mode") = "zero",
             nb::arg("value") = 0.0, nb::arg("lengths") = false, nb::arg("mask") = false, nb::arg("keys") = nb::none(),
             nb::sig("def pad_to(length: int, dim: int = 0, mode: str = "
                     "'zero', value: float = 0.0, lengths: bool = False, "
                     "mask: bool = False, keys: str | typing.Iterable[str] | "
                     "None = None) -> Collate"),
             kPadTo);
}

}  // namespace penstock::python
