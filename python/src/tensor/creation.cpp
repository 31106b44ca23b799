// Functions that make tensors: of sizes alone, ranges, random numbers. They work without the GIL. What a call takes of
// a generator is taken before that, so that threads that share a generator never draw the same numbers.

#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "bindings.h"
#include "call/arguments.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/typed.h"
#include "penstock/error.h"
#include "penstock/ops.h"
#include "penstock/random.h"
#include "tensor/operands.h"

namespace penstock::python {
namespace {

DType dtype_or(nb::handle dtype, const DType& otherwise) { return dtype.is_none() ? otherwise : dtype_from(dtype); }

Device device_or_cpu(nb::handle device) { return device.is_none() ? Device{} : device_from(device); }

std::optional<DType> optional_dtype(nb::handle dtype) {
  return dtype.is_none() ? std::nullopt : std::optional(dtype_from(dtype));
}

Shape sizes_from(nb::handle sizes) {
  Shape out = shape_argument(sizes);
  if (std::ranges::all_of(out, [](std::int64_t size) { return size >= 0; })) return out;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("found the shape {}, expected sizes of 0 or more", out.to_string()));
}

/// Sizes as separate arguments or as one sequence.
Shape shape_of(const nb::tuple& sizes) {
  const bool nested = sizes.size() == 1 && !PyIndex_Check(sizes[0].ptr());
  return sizes_from(nested ? nb::handle(nb::object(sizes[0])) : nb::handle(sizes));
}

Scalar number_from(nb::handle object) {
  if (const std::optional<Scalar> number = scalar_from(object)) return *number;
  throw nb::type_error(("found a " + object_type(object) + " where a number was expected").c_str());
}

/// How much work it is to fill so many elements; the first on a device may be preceded by seconds of preparing it.
std::size_t bytes_of(const Shape& shape, const DType& dtype, Device where) {
  if (where.type != DeviceType::kCpu) return std::numeric_limits<std::size_t>::max();
  // Saturated: what cannot be had is refused where memory is asked for.
  const double bytes = static_cast<double>(shape.numel()) * static_cast<double>(dtype.itemsize());
  return bytes < 0x1p62 ? static_cast<std::size_t>(bytes) : std::numeric_limits<std::size_t>::max();
}

/// The generator given, or a new one that is seeded by the operating system.
class Draws {
 public:
  explicit Draws(nb::handle generator)
      : own_(generator.is_none() ? Generator::from_entropy() : Generator(0)),
        given_(generator.is_none() ? nullptr : nb::cast<Generator*>(generator)),
        object_(generator) {}
  /// make(generator) of so many values of type `drawn`, without the GIL. What it takes of the given one is taken
  /// before.
  template <class Make>
  Tensor draw(const Shape& shape, const DType& drawn, Device where, Make make) {
    if (given_ != nullptr) {
      const nb::ft_object_guard alone(object_);
      own_ = *given_;
      given_->take(blocks_taken(shape.numel(), drawn));
    }
    return computed(bytes_of(shape, drawn, where),
                    [make = std::move(make), generator = own_]() mutable { return make(generator); });
  }

 private:
  Generator own_;
  Generator* given_;
  nb::handle object_;  ///< the given one's
};

using Maker = Tensor (*)(const Shape&, DType, Device);

/// Functions of sizes alone.
void bind_filled(nb::module_& module, const char* name, Maker make) {
  module.def(
      name,
      [make](const nb::tuple& size, nb::handle dtype, nb::handle device) {
        const Shape shape = shape_of(size);
        const DType type = dtype_or(dtype, DType::float32);
        const Device where = device_or_cpu(device);
        return computed(bytes_of(shape, type, where), [=] { return make(shape, type, where); });
      },
      nb::arg("size"), nb::arg("dtype").none(), nb::arg("device").none());
}

using Drawer = Tensor (*)(const Shape&, Generator&, const DType&, Device);

void bind_drawn(nb::module_& module, const char* name, Drawer draw) {
  module.def(
      name,
      [draw](const nb::tuple& size, nb::handle generator, nb::handle dtype, nb::handle device) {
        const Shape shape = shape_of(size);
        const DType type = dtype_or(dtype, DType::float32);
        const Device where = device_or_cpu(device);
        return Draws(generator).draw(shape, type, where,
                                     [=](Generator& source) { return draw(shape, source, type, where); });
      },
      nb::arg("size"), nb::arg("generator").none(), nb::arg("dtype").none(), nb::arg("device").none());
}

/// randint(high, size) and randint(low, high, size).
Tensor random_integers(const nb::tuple& args, nb::handle generator, nb::handle dtype, nb::handle device) {
  if (args.size() < 2 || args.size() > 3) throw nb::type_error("randint() takes (high, size) or (low, high, size)");
  const std::int64_t low = args.size() == 3 ? integer_from(args[0]) : 0;
  const std::int64_t high = integer_from(args[args.size() - 2]);
  const Shape shape = sizes_from(args[args.size() - 1]);
  const DType type = dtype_or(dtype, DType::int64);
  const Device where = device_or_cpu(device);
  return Draws(generator).draw(shape, DType::int64, where,
                               [=](Generator& source) { return randint(low, high, shape, source, type, where); });
}

/// arange(end), arange(start, end) and arange(start, end, step).
Tensor range(const nb::tuple& args, nb::handle dtype, nb::handle device) {
  const std::size_t given = args.size();
  if (given < 1 || given > 3) throw nb::type_error("arange() takes (end), (start, end) or (start, end, step)");
  const Scalar start = given == 1 ? Scalar(0) : number_from(args[0]);
  const Scalar stop = number_from(args[given == 1 ? 0 : 1]);
  const Scalar step = given == 3 ? number_from(args[2]) : Scalar(1);
  const double count = (stop.to_double() - start.to_double()) / step.to_double();
  const double bytes = std::clamp(count * 8, 0.0, 0x1p62);
  return computed(std::isnan(bytes) ? 0 : static_cast<std::size_t>(bytes),
                  [=, type = optional_dtype(dtype), where = device_or_cpu(device)] {
                    return arange(start, stop, step, type, where);
                  });
}

/// The low 64 bits of an integer, so that -1 and 2**64 - 1 are one seed.
std::uint64_t seed_from(nb::handle seed) {
  if (PyIndex_Check(seed.ptr()) == 0) {
    throw Error(ErrorCode::kDTypeMismatch, core::format("found seed={}, expected a whole number", shown(seed)));
  }
  const unsigned long long value = PyLong_AsUnsignedLongLongMask(seed.ptr());
  if (PyErr_Occurred()) nb::raise_python_error();
  return value;
}

Generator make_generator(nb::handle seed) {
  return seed.is_none() ? Generator::from_entropy() : Generator(seed_from(seed));
}

void bind_generator(nb::module_& module) {
  nb::class_<Generator>(module, "Generator", nb::sig("class Generator(GeneratorMethods)"),
                        "Generator(seed=None)\n--\n\n")
      .def(
          "__init__", [](Generator* self, nb::handle seed) { new (self) Generator(make_generator(seed)); },
          nb::arg("seed") = nb::none(), nb::sig("def __init__(self, seed: int | None = None) -> None"))
      .def(
          "_manual_seed",
          [](nb::handle self, nb::handle seed) -> Typed<Generator> {
            nb::cast<Generator&>(self).manual_seed(seed_from(seed));
            return nb::borrow(self);
          },
          nb::arg("seed"), nb::lock_self())
      .def("_initial_seed", &Generator::seed, nb::lock_self())
      .def(
          "_get_state", [](const Generator& g) { return nb::make_tuple(g.seed(), g.offset()); }, nb::lock_self())
      .def(
          "_set_state",
          [](nb::handle self, std::pair<std::uint64_t, std::uint64_t> state) -> Typed<Generator> {
            auto& generator = nb::cast<Generator&>(self);
            generator.manual_seed(state.first);
            generator.set_offset(state.second);
            return nb::borrow(self);
          },
          nb::arg("state"), nb::lock_self())
      .def("__reduce__", reduced_by_state)
      .def(
          "__getstate__", [](const Generator& g) { return std::pair(g.seed(), g.offset()); }, nb::lock_self())
      .def("__setstate__", [](Generator& self, std::pair<std::uint64_t, std::uint64_t> state) {
        new (&self) Generator(state.first);
        self.set_offset(state.second);
      });
}

}  // namespace

void bind_creation(nb::module_& module) {
  bind_generator(module);
  bind_filled(module, "empty", [](const Shape& s, DType t, Device d) { return Tensor::empty(s, std::move(t), d); });
  bind_filled(module, "zeros", [](const Shape& s, DType t, Device d) { return Tensor::zeros(s, std::move(t), d); });
  bind_filled(module, "ones", [](const Shape& s, DType t, Device d) { return ones(s, std::move(t), d); });
  bind_drawn(module, "rand", rand);
  bind_drawn(module, "randn", randn);
  module.def("randint", random_integers, nb::arg("args"), nb::arg("generator").none(), nb::arg("dtype").none(),
             nb::arg("device").none());
  module.def("arange", range, nb::arg("args"), nb::arg("dtype").none(), nb::arg("device").none());
  module.def(
      "full",
      [](nb::handle size, nb::handle value, nb::handle dtype, nb::handle device) {
        const Shape shape = sizes_from(size);
        const std::optional<DType> type = optional_dtype(dtype);
        const Device where = device_or_cpu(device);
        return computed(bytes_of(shape, type.value_or(DType::int64), where),
                        [=, number = number_from(value)] { return full(shape, number, type, where); });
      },
      nb::arg("size"), nb::arg("fill_value"), nb::arg("dtype").none(), nb::arg("device").none());
}

}  // namespace penstock::python
