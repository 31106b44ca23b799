// The transforms of penstock.Dataset. A transformed dataset pickles as the call that made it and the dataset below it,
// because its own state lives in C++.

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "call/arguments.h"
#include "data/transform/transformed.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "penstock/dataset.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

using Integers = std::vector<std::int64_t>;

/// Integers, or one.
Integers sizes_from(nb::handle value, const char* name) {
  if (value.is_none()) return {};
  if (PyIndex_Check(value.ptr()) != 0) return {integer_argument(value, name)};
  return integers_argument(value, name);
}

/// Numbers, or one.
std::vector<double> numbers_from(nb::handle value, const char* name) {
  const bool is_one = PyFloat_Check(value.ptr()) != 0 || PyLong_Check(value.ptr()) != 0 ||
                      !has_attribute(value, "__iter__") || PyUnicode_Check(value.ptr()) != 0;
  return is_one ? std::vector<double>{number_argument(value, name)} : numbers_argument(value, name);
}

nb::object as_list(const std::vector<std::string>& keys) {
  if (keys.empty()) return nb::none();
  return list_of(keys, text_from);
}

template <class Item>
nb::object as_list(const std::vector<Item>& items) {
  return list_of(items);
}

/// The result, which pickles as `below.name(*arguments)`.
nb::object of(nb::handle below, const char* name, const nb::tuple& arguments, Dataset made) {
  return with_recipe("transformed", nb::make_tuple(below, name, arguments), nb::cast(std::move(made)));
}

/// By cast(), or as an option `dtype=` does (`_typed`), whose `keys` name more than it converts by itself.
template <bool kByOption>
nb::object cast_to(nb::handle self, nb::handle dtype, nb::handle strict, nb::handle keys) {
  const auto names = keys_from(keys);
  const DType type = dtype_from(dtype);
  const bool exact = flag_argument(strict, "strict");
  const auto& given = nb::cast<const Dataset&>(self);
  return of(self, kByOption ? "_typed" : "cast", nb::make_tuple(type.name().c_str(), exact, as_list(names)),
            kByOption ? data::typed(given, type, exact, names) : given.cast(type, exact, names));
}

nb::object scaled(nb::handle self, nb::handle factor, nb::handle keys) {
  const auto names = keys_from(keys);
  const double by = number_argument(factor, "factor");
  return of(self, "scale", nb::make_tuple(by, as_list(names)), nb::cast<const Dataset&>(self).scale(by, names));
}

nb::object normalized(nb::handle self, nb::handle mean, nb::handle std, nb::handle dim, nb::handle keys) {
  const auto names = keys_from(keys);
  const std::vector<double> means = numbers_from(mean, "mean");
  const std::vector<double> deviations = numbers_from(std, "std");
  const std::int64_t along = integer_argument(dim, "dim");
  return of(self, "normalize", nb::make_tuple(as_list(means), as_list(deviations), along, as_list(names)),
            nb::cast<const Dataset&>(self).normalize(means, deviations, along, names));
}

nb::object clamped(nb::handle self, nb::handle min, nb::handle max, nb::handle keys) {
  const auto names = keys_from(keys);
  const double low = exact_number_argument(min, "min");
  const double high = exact_number_argument(max, "max");
  return of(self, "clamp", nb::make_tuple(low, high, as_list(names)),
            nb::cast<const Dataset&>(self).clamp(low, high, names));
}

nb::object permuted(nb::handle self, nb::handle dims, nb::handle keys) {
  const auto names = keys_from(keys);
  const Integers order = sizes_from(dims, "dims");
  return of(self, "permute", nb::make_tuple(as_list(order), as_list(names)),
            nb::cast<const Dataset&>(self).permute(order, names));
}

nb::object cropped(nb::handle self, nb::handle begin, nb::handle size, nb::handle dims, nb::handle keys) {
  const auto names = keys_from(keys);
  const Integers first = sizes_from(begin, "begin");
  const Integers sizes = sizes_from(size, "size");
  const Integers along = sizes_from(dims, "dims");
  return of(self, "crop", nb::make_tuple(as_list(first), as_list(sizes), as_list(along), as_list(names)),
            nb::cast<const Dataset&>(self).crop(first, sizes, along, names));
}

nb::object cropped_to_center(nb::handle self, nb::handle size, nb::handle dims, nb::handle keys) {
  const auto names = keys_from(keys);
  const Integers sizes = sizes_from(size, "size");
  const Integers along = sizes_from(dims, "dims");
  return of(self, "center_crop", nb::make_tuple(as_list(sizes), as_list(along), as_list(names)),
            nb::cast<const Dataset&>(self).center_crop(sizes, along, names));
}

/// A dict by key, or a list by the places in a tuple.
Scales scales_from(nb::handle scales) {
  Scales out;
  if (scales.is_none()) return out;
  if (PyDict_Check(scales.ptr()) == 0) {
    const Integers numbers = integers_argument(scales, "scales");
    for (std::size_t i = 0; i < numbers.size(); ++i) out.emplace_back(std::to_string(i), numbers[i]);
  } else {
    for (const auto& [key, scale] : nb::borrow<nb::dict>(scales)) {
      out.emplace_back(keys_from(key).at(0), integer_argument(scale, "scales"));
    }
  }
  if (out.empty()) throw Error(ErrorCode::kInvalidArgument, "found no scales, expected one for each part or None");
  return out;
}

nb::object cropped_at_random(nb::handle self, nb::handle size, nb::handle dims, nb::handle keys, nb::handle scales) {
  const auto names = keys_from(keys);
  const Integers sizes = sizes_from(size, "size");
  const Integers along = sizes_from(dims, "dims");
  const Scales factors = scales_from(scales);
  nb::object kept = nb::none();
  if (!factors.empty()) {
    nb::dict by_name;
    for (const auto& [name, scale] : factors) by_name[text_from(name)] = scale;
    kept = by_name;
  }
  return of(self, "random_crop", nb::make_tuple(as_list(sizes), as_list(along), as_list(names), kept),
            nb::cast<const Dataset&>(self).random_crop(sizes, along, names, factors));
}

nb::object flipped(nb::handle self, nb::handle dims, nb::handle keys) {
  const auto names = keys_from(keys);
  const Integers along = sizes_from(dims, "dims");
  return of(self, "flip", nb::make_tuple(as_list(along), as_list(names)),
            nb::cast<const Dataset&>(self).flip(along, names));
}

nb::object flipped_at_random(nb::handle self, nb::handle dims, nb::handle p, nb::handle keys) {
  const auto names = keys_from(keys);
  const Integers along = sizes_from(dims, "dims");
  const double probability = number_argument(p, "p");
  return of(self, "random_flip", nb::make_tuple(as_list(along), probability, as_list(names)),
            nb::cast<const Dataset&>(self).random_flip(along, probability, names));
}

nb::object padded(nb::handle self, nb::handle before, nb::handle after, nb::handle value, nb::handle dims,
                  nb::handle keys) {
  const auto names = keys_from(keys);
  const Integers front = sizes_from(before, "before");
  const Integers behind = sizes_from(after, "after");
  const double with = exact_number_argument(value, "value");
  const Integers along = sizes_from(dims, "dims");
  return of(self, "pad", nb::make_tuple(as_list(front), as_list(behind), with, as_list(along), as_list(names)),
            nb::cast<const Dataset&>(self).pad(front, behind, with, along, names));
}

nb::object one_hot(nb::handle self, nb::handle classes, nb::handle keys) {
  const auto names = keys_from(keys);
  const std::int64_t count = integer_argument(classes, "classes");
  return of(self, "one_hot", nb::make_tuple(count, as_list(names)),
            nb::cast<const Dataset&>(self).one_hot(count, names));
}

/// Calls a function with as many arguments as it takes.
template <auto kFunction>
struct Call;
template <class... Given, nb::object (*kFunction)(nb::handle, Given...)>
struct Call<kFunction> {
  static nb::object with(nb::handle self, const nb::args& arguments) {
    if (arguments.size() != sizeof...(Given)) throw nb::type_error("found another number of arguments");
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return kFunction(self, nb::handle(arguments[I])...); }
    (std::index_sequence_for<Given...>());
  }
};

struct Transform {
  std::string_view name;
  nb::object (*make)(nb::handle self, const nb::args& arguments);
};

/// By the names of the methods in python/penstock/_api/transforms.py, which say what their arguments are.
constexpr Transform kTransforms[] = {
    {"_typed", Call<cast_to<true>>::with},
    {"cast", Call<cast_to<false>>::with},
    {"scale", Call<scaled>::with},
    {"normalize", Call<normalized>::with},
    {"clamp", Call<clamped>::with},
    {"permute", Call<permuted>::with},
    {"crop", Call<cropped>::with},
    {"center_crop", Call<cropped_to_center>::with},
    {"random_crop", Call<cropped_at_random>::with},
    {"flip", Call<flipped>::with},
    {"random_flip", Call<flipped_at_random>::with},
    {"pad", Call<padded>::with},
    {"one_hot", Call<one_hot>::with},
};

Typed<Dataset> transformed(nb::handle self, const std::string& name, const nb::args& arguments) {
  const auto* const found = std::ranges::find(kTransforms, name, &Transform::name);
  if (found == std::end(kTransforms)) throw nb::attribute_error(name.c_str());
  return found->make(self, arguments);
}

}  // namespace

void bind_transforms(nb::class_<Dataset>& dataset) { dataset.def("_transformed", transformed); }

}  // namespace penstock::python
