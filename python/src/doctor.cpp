#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>
#include <variant>
#include <vector>

#include "bindings.h"
#include "doctor/diagnosis.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"

namespace penstock::python {
namespace {

nb::object fact_value(const doctor::Fact::Value& value) {
  if (const auto* yes = std::get_if<bool>(&value)) return nb::bool_(*yes);
  if (const auto* count = std::get_if<std::uint64_t>(&value)) return nb::int_(*count);
  if (const auto* number = std::get_if<double>(&value)) return nb::float_(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return text_from(*text);
  return nb::none();
}

nb::dict advice_of(const doctor::Section& section, const doctor::Fact& fact) {
  nb::dict out;
  out["about"] = text_from(section.name + "." + fact.name);
  out["weight"] = fact.weight == doctor::Fact::Weight::kProblem ? "problem" : "note";
  out["text"] = text_from(fact.advice);
  return out;
}

nb::dict doctor(nb::handle path) {
  const std::string where = path.is_none() ? std::string() : path_from(path);
  const std::vector<doctor::Section> sections =
      interruptible(true, [where](std::stop_token) { return doctor::diagnose({.path = where}); });
  nb::dict out;
  nb::list advice;
  for (const doctor::Section& section : sections) {
    nb::dict facts;
    for (const doctor::Fact& fact : section.facts) {
      facts[text_from(fact.name)] = fact_value(fact.value);
      if (fact.weight != doctor::Fact::Weight::kFine) advice.append(advice_of(section, fact));
    }
    out[text_from(section.name)] = facts;
  }
  out["advice"] = advice;
  return out;
}

}  // namespace

void bind_doctor(nb::module_& module) { module.def("doctor", doctor, nb::arg("path").none()); }

}  // namespace penstock::python
