// What penstock.to is made of.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/tensor.h"
#include "penstock/value.h"
#include "tensor/transfer_warnings.h"

namespace penstock::python {
namespace {

using Items = std::vector<std::pair<std::string, Value>>;

nb::list move(std::vector<std::string> names, const nb::list& tensors, nb::handle target, bool non_blocking,
              bool copy) {
  Items items;
  items.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    items.emplace_back(std::move(names[i]), Value::tensor(nb::cast<Tensor>(tensors[i])));
  }
  const TransferOptions options{.non_blocking = non_blocking, .copy = copy};
  const auto work = [all = Value::dict(std::move(items)), device = device_from(target), options](std::stop_token) {
    CollectedWarnings collected;
    Value moved = all.to(device, options);
    return std::pair(std::move(moved), collected.take());
  };
  const auto [moved, warnings] = interruptible(true, work);
  issue_transfer_warnings(warnings);
  nb::list out;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const auto before = nb::cast<Tensor>(tensors[i]);
    const Tensor& now = moved.item(i).second.as_tensor();
    const bool stayed = !copy && before.device() == now.device();
    out.append(stayed ? nb::object(tensors[i]) : nb::cast(now));
  }
  return out;
}

}  // namespace

void bind_moves(nb::module_& module) {
  module.def("_move", move, nb::arg("names"), nb::arg("tensors"), nb::arg("device"), nb::arg("non_blocking"),
             nb::arg("copy"));
}

}  // namespace penstock::python
