#pragma once

// Arguments of Python calls whose errors say which one it was.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "interpreter/nanobind.h"
#include "penstock/shape.h"

namespace penstock::python {

/// A whole number, as anything with __index__. kDTypeMismatch for what is none, kInvalidArgument beyond 64 bits.
std::int64_t integer_argument(nb::handle value, const char* name);
/// The same, which must not be negative.
std::uint64_t count_argument(nb::handle value, const char* name);
/// A number with a fraction, as anything with __float__ or __index__. kDTypeMismatch for what is none, kInvalidArgument
/// beyond a float64.
double number_argument(nb::handle value, const char* name);
/// The same, of which no digit may be lost: a whole number that no float64 is, is refused too.
double exact_number_argument(nb::handle value, const char* name);

[[noreturn]] void refuse_choice(nb::handle value, const char* name, const std::vector<const char*>& choices);
/// Where an item lies, as errors say it: "lengths[3]", and "batch_sampler[1][3]" in a list of lists.
struct ItemName {
  const char* list;
  std::size_t position;
  std::optional<std::size_t> outer = {};
};
/// A whole number of a list. A bool is none: lists of them are masks, which nothing here takes.
std::int64_t integer_item(nb::handle item, const ItemName& name);
/// The elements of an array of whole numbers of any library (one dimension), for which no Python object is made;
/// nothing for everything else, whose items say what is wrong with them.
std::optional<std::vector<std::int64_t>> integers_in_array(nb::handle values);
/// All items of an iterable as such numbers.
std::vector<std::int64_t> integers_argument(nb::handle values, const char* name);
std::vector<double> numbers_argument(nb::handle values, const char* name);
/// A shape in a sequence of whole numbers, or one of them.
Shape shape_argument(nb::handle shape);
/// What a text stands for among `choices`; kInvalidArgument names them for what is none.
template <class Choice>
Choice choice_argument(nb::handle value, const char* name,
                       std::initializer_list<std::pair<const char*, Choice>> choices) {
  std::vector<const char*> texts;
  for (const auto& [text, choice] : choices) {
    if (PyUnicode_Check(value.ptr()) != 0 && PyUnicode_CompareWithASCIIString(value.ptr(), text) == 0) return choice;
    texts.push_back(text);
  }
  refuse_choice(value, name, texts);
}
/// True or False, also NumPy's and as 0 and 1. kDTypeMismatch for what is neither.
bool flag_argument(nb::handle value, const char* name);

}  // namespace penstock::python
