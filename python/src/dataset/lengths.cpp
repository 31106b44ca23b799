// Lengths from headers, and what is made by them.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "core/format.h"
#include "core/text.h"
#include "data/sampler/length_buckets.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"
#include "penstock/tensor.h"

namespace penstock::python {
namespace {

/// A batch sampler by length, whose pickle has the lengths.
struct PyLengthBuckets : PyBatchSampler {};

LengthsOptions lengths_options(nb::handle dim, nb::handle key) {
  return {.dim = integer_argument(dim, "dim"), .key = key.is_none() ? "" : name_from(key)};
}

std::vector<std::int64_t> read_lengths(nb::handle dataset, LengthsOptions options) {
  return interruptible(true, [of = nb::cast<Dataset>(held_dataset(dataset)), options](std::stop_token stop) mutable {
    options.stop = std::move(stop);
    return lengths(of, options);
  });
}

std::vector<std::int64_t> lengths_of(nb::handle dataset, nb::handle dim, nb::handle key) {
  return read_lengths(dataset, lengths_options(dim, key));
}

std::optional<std::int64_t> optional_integer(nb::handle value, const char* name) {
  return value.is_none() ? std::nullopt : std::optional(integer_argument(value, name));
}

LengthBucketOptions bucket_options(nb::handle boundaries, nb::handle max_tokens, nb::handle batch_size,
                                   nb::handle shuffle, nb::handle drop_last, nb::handle num_replicas, nb::handle rank,
                                   nb::handle too_long) {
  LengthBucketOptions out;
  if (!boundaries.is_none()) {
    out.boundaries = indices_from(boundaries, "boundaries");
    if (out.boundaries.empty()) {
      throw Error(ErrorCode::kInvalidArgument, "found no boundary in boundaries, expected one or more");
    }
  }
  out.max_tokens = optional_integer(max_tokens, "max_tokens");
  out.batch_size = optional_integer(batch_size, "batch_size");
  out.shuffle = flag_argument(shuffle, "shuffle");
  out.drop_last = flag_argument(drop_last, "drop_last");
  out.num_replicas = integer_argument(num_replicas, "num_replicas");
  out.rank = integer_argument(rank, "rank");
  out.too_long = choice_argument<TooLong>(
      too_long, "too_long", {{"raise", TooLong::kRaise}, {"alone", TooLong::kAlone}, {"skip", TooLong::kSkip}});
  return out;
}

void make_buckets(nb::pointer_and_handle<PyLengthBuckets> self, nb::handle given, nb::handle boundaries,
                  nb::handle max_tokens, nb::handle batch_size, nb::handle dim, nb::handle key, nb::handle shuffle,
                  nb::handle drop_last, nb::handle num_replicas, nb::handle rank, nb::handle too_long) {
  const LengthBucketOptions options =
      bucket_options(boundaries, max_tokens, batch_size, shuffle, drop_last, num_replicas, rank, too_long);
  if (!has_dataset(given) && (integer_argument(dim, "dim") != 0 || !key.is_none())) {
    throw Error(ErrorCode::kInvalidArgument, "found dim= or key= beside lengths, expected them beside a dataset");
  }
  const std::vector<std::int64_t> found =
      has_dataset(given) ? read_lengths(given, lengths_options(dim, key)) : indices_from(given, "lengths");
  const auto name = [&](std::int64_t i) {
    if (!has_dataset(given)) return core::format("sample {}", i);
    return core::format("sample {} ({})", i, core::escaped(nb::cast<Dataset>(held_dataset(given)).describe(i)));
  };
  const nb::object kept = nb::cast(Tensor::of(std::span<const std::int64_t>(found)));
  const nb::object bounds = boundaries.is_none() ? nb::none() : nb::cast(options.boundaries);
  make_sampler(self, data::length_buckets(found, options, name),
               nb::make_tuple(kept, bounds, max_tokens, batch_size, 0, nb::none(), shuffle, drop_last, num_replicas,
                              rank, too_long));
}

Typed<Dataset> pack(nb::handle given, nb::handle length, nb::handle too_long, nb::handle value, nb::handle key,
                    nb::handle cu_seqlens) {
  const nb::object dataset = held_dataset(given);
  const std::int64_t row = integer_argument(length, "length");
  const LongSequence how = choice_argument<LongSequence>(
      too_long, "too_long",
      {{"raise", LongSequence::kRaise}, {"cut", LongSequence::kCut}, {"split", LongSequence::kSplit}});
  PackSequencesOptions options{.too_long = how,
                               .value = exact_number_argument(value, "value"),
                               .cu_seqlens = flag_argument(cu_seqlens, "cu_seqlens"),
                               .key = key.is_none() ? "" : name_from(key)};
  Dataset rows = interruptible(true, [of = nb::cast<Dataset>(dataset), row, options](std::stop_token stop) mutable {
    options.stop = std::move(stop);
    return pack_sequences(of, row, options);
  });
  return made_by("pack_sequences", nb::make_tuple(dataset, row, too_long, value, key, bool{options.cu_seqlens}),
                 nb::cast(std::move(rows)));
}

}  // namespace

void bind_lengths(nb::module_& module) {
  nb::class_<PyLengthBuckets, PyBatchSampler>(module, "_LengthBuckets")
      .def("__init__", make_buckets, nb::arg("lengths").none(), nb::arg("boundaries").none(),
           nb::arg("max_tokens").none(), nb::arg("batch_size").none(), nb::arg("dim"), nb::arg("key").none(),
           nb::arg("shuffle"), nb::arg("drop_last"), nb::arg("num_replicas"), nb::arg("rank"), nb::arg("too_long"));
  module.def("lengths", lengths_of, nb::arg("dataset").none(), nb::arg("dim"), nb::arg("key").none());
  module.def("pack_sequences", pack, nb::arg("dataset").none(), nb::arg("length").none(), nb::arg("too_long"),
             nb::arg("value"), nb::arg("key").none(), nb::arg("cu_seqlens"));
}

}  // namespace penstock::python
