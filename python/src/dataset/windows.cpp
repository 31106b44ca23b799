// Parts of one long array as samples. A dataset of slices pickles as the table of where they lie, which it shares with
// its pickle's arguments, so that the numbers are in memory once.

#include "penstock/windows.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "call/arguments.h"
#include "core/format.h"
#include "data/dataset/slices.h"
#include "data/dataset_impl.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"
#include "penstock/tensor.h"

namespace penstock::python {
namespace {

nb::object with_table(nb::handle rows, Dataset made) {
  const std::shared_ptr<const data::SlicedArrays> sliced = made.impl().slices();
  const data::SliceTable& table = sliced->table;
  const nb::object lengths = table.lengths().defined() ? nb::cast(table.lengths()) : nb::none();
  const nb::tuple arguments = nb::make_tuple(rows, "_sliced", nb::make_tuple(nb::cast(table.starts()), lengths));
  return with_recipe("transformed", arguments, nb::cast(std::move(made)));
}

Typed<Dataset> slices_of(nb::handle self, nb::handle starts, nb::handle lengths) {
  if (lengths.is_none()) {
    throw Error(ErrorCode::kInvalidArgument, "found no lengths, expected how many rows each slice has");
  }
  const auto& rows = nb::cast<const Dataset&>(self);
  const std::vector<std::int64_t> counts = indices_from(lengths, "lengths");
  if (starts.is_none()) return with_table(self, slices(rows, counts));
  return with_table(self, slices(rows, indices_from(starts, "starts"), counts));
}

/// Of the table that a pickle has.
Typed<Dataset> sliced_by(nb::handle self, nb::handle starts, nb::handle lengths) {
  const Tensor counts = lengths.is_none() ? Tensor() : nb::cast<Tensor>(lengths);
  return with_table(self, data::sliced(nb::cast<const Dataset&>(self), nb::cast<Tensor>(starts), counts));
}

JoinSlices join_from(nb::handle join) {
  if (join.is_none()) return JoinSlices::kNot;
  const bool is_text = PyUnicode_Check(join.ptr()) != 0;
  if (is_text && name_from(join) == "ordered") return JoinSlices::kInOrder;
  if (is_text && name_from(join) == "shuffled") return JoinSlices::kShuffled;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("found join={}, expected None, \"ordered\" or \"shuffled\"", shown(join)));
}

Typed<Dataset> windows_of(nb::handle self, nb::handle length, nb::handle stride, nb::handle shift, nb::handle join) {
  WindowsOptions options{.shift = integer_argument(shift, "shift"), .join = join_from(join)};
  const std::int64_t rows = integer_argument(length, "length");
  if (!stride.is_none()) options.stride = integer_argument(stride, "stride");
  const nb::object step = options.stride ? nb::cast(*options.stride) : nb::none();
  Dataset made = interruptible(
      true, [of = nb::cast<Dataset>(self), rows, options](std::stop_token) { return windows(of, rows, options); });
  return with_recipe("transformed",
                     nb::make_tuple(self, "windows", nb::make_tuple(rows, step, options.shift, nb::borrow(join))),
                     nb::cast(std::move(made)));
}

Typed<Dataset> random_windows_of(nb::handle self, nb::handle length, nb::handle count, nb::handle shift) {
  const std::int64_t rows = integer_argument(length, "length");
  const std::int64_t samples = integer_argument(count, "count");
  const std::int64_t by = integer_argument(shift, "shift");
  Dataset made = interruptible(true, [of = nb::cast<Dataset>(self), rows, samples, by](std::stop_token) {
    return random_windows(of, rows, samples, by);
  });
  return with_recipe("transformed", nb::make_tuple(self, "random_windows", nb::make_tuple(rows, samples, by)),
                     nb::cast(std::move(made)));
}

}  // namespace

void bind_windows(nb::class_<Dataset>& dataset) {
  dataset.def("_slices", slices_of, nb::arg("starts").none(), nb::arg("lengths").none())
      .def("_sliced", sliced_by, nb::arg("starts"), nb::arg("lengths").none())
      .def("_windows", windows_of, nb::arg("length").none(), nb::arg("stride").none(), nb::arg("shift").none(),
           nb::arg("join").none())
      .def("_random_windows", random_windows_of, nb::arg("length").none(), nb::arg("count").none(),
           nb::arg("shift").none());
}

}  // namespace penstock::python
