#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bindings.h"
#include "convert.h"
#include "core/format.h"
#include "data.h"
#include "gil.h"
#include "interrupt.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

/// One reading of a Python sampler, which may be long or endless: answers
/// signals, and ends when nobody waits for it any more.
class Reading {
 public:
  explicit Reading(const std::atomic<bool>& stopped) : stopped_(stopped) {}

  void append(nb::handle iterable, std::size_t most, std::vector<std::int64_t>& out) {
    const std::size_t end = most > out.max_size() - out.size() ? out.max_size() : out.size() + most;
    if (out.size() == end) return;
    for (const nb::handle item : nb::iter(iterable)) {
      out.push_back(integer_from(item));
      count();
      if (out.size() == end) return;
    }
  }

  void count() {
    if (stopped_) throw Error(ErrorCode::kCancelled, "the loader was stopped");
    yield_at(++count_);
  }

 private:
  const std::atomic<bool>& stopped_;
  std::size_t count_ = 0;
};

/// Goes through a Python iterable once for each epoch and remembers the last:
/// an epoch that is begun again, as after a resume, has the same order.
template <class Content>
class IterableOrder {
 public:
  /// Reads `most` indices or batches, or fewer where there are not as many.
  using Read = Content (*)(nb::handle iterable, std::size_t most, Reading reading);

  /// `unit`: what it gives.
  IterableOrder(nb::handle iterable, std::shared_ptr<Raised> raised, Read read, const char* unit)
      : iterable_(iterable), raised_(std::move(raised)), read_(read), unit_(unit), size_(measure()) {}

  /// Its length, or how many it gave in epoch 0 where it has none.
  std::int64_t size() const noexcept { return size_; }
  /// From any thread, with or without the GIL. As many as size() says.
  Content at(std::uint64_t epoch) const {
    const AcquiredGil gil;
    // One more than it should have, to see that there is none.
    const Content& content = order_of(epoch, static_cast<std::size_t>(size_) + 1);
    if (content.size() == size_) return content;
    const std::string found = content.size() > size_ ? "more" : core::format("{} {}", content.size(), unit_);
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("the sampler gave {}, expected {} {} as its length or its first epoch says", found, size_, unit_));
  }

 private:
  const Content& order_of(std::uint64_t epoch, std::size_t most) const {
    if (epoch_ == epoch) return *content_;
    try {
      const nb::object set_epoch = nb::getattr(iterable_, "set_epoch", nb::none());
      if (!set_epoch.is_none()) set_epoch(epoch);
      content_ = read_(iterable_, most, Reading(raised_->stopped));
    } catch (const nb::python_error&) {
      raised_->exception = std::current_exception();
      throw Error(ErrorCode::kCancelled, "the sampler raised an exception");
    }
    epoch_ = epoch;
    return *content_;
  }

  std::int64_t measure() const {
    if (nb::hasattr(iterable_, "__len__")) return static_cast<std::int64_t>(nb::len(iterable_));
    const std::int64_t size = order_of(0, kMostUncounted + 1).size();
    if (size <= static_cast<std::int64_t>(kMostUncounted)) return size;
    throw Error(ErrorCode::kLimit,
                core::format("the sampler has no length and gave more than {} {}; give it a __len__, or use "
                             "penstock.torch.DataLoader, which draws from endless samplers as it goes",
                             kMostUncounted, unit_));
  }

  nb::handle iterable_;
  std::shared_ptr<Raised> raised_;
  Read read_;
  const char* unit_;
  mutable std::optional<std::uint64_t> epoch_;
  mutable std::optional<Content> content_;
  std::int64_t size_;  // measured by way of the members before it
};

/// A class of torch's, if the program has imported it.
nb::object torchs(const char* module, const char* name) {
  const nb::object found = nb::module_::import_("sys").attr("modules").attr("get")(module);
  return found.is_none() ? nb::none() : nb::getattr(found, name, nb::none());
}

/// The ranks among which torch's DistributedSampler deals its order out in turn; 1 for every other sampler, also for
/// those derived from it that make an order of their own.
std::int64_t replicas_of(nb::handle sampler) {
  const nb::object kind = torchs("torch.utils.data.distributed", "DistributedSampler");
  if (kind.is_none() || !nb::isinstance(sampler, kind)) return 1;
  if (!nb::getattr(sampler.type(), "__iter__").is(nb::getattr(kind, "__iter__"))) return 1;
  return integer_from(nb::getattr(sampler, "num_replicas"));
}

/// The same of the sampler whose indices torch's BatchSampler has.
std::int64_t replicas_of_batches(nb::handle batch_sampler) {
  const bool equal = batch_sampler.type().is(torchs("torch.utils.data.sampler", "BatchSampler"));
  return equal ? replicas_of(nb::getattr(batch_sampler, "sampler")) : 1;
}

Order order_in(nb::handle iterable, std::size_t most, Reading reading) {
  std::vector<std::int64_t> out;
  reading.append(iterable, most, out);
  return out;
}

class IterableSampler final : public Sampler {
 public:
  IterableSampler(nb::handle iterable, std::shared_ptr<Raised> raised)
      : order_(iterable, std::move(raised), order_in, "indices"), replicas_(replicas_of(iterable)) {}

  std::int64_t size() const noexcept override { return order_.size(); }
  std::int64_t replicas() const noexcept override { return replicas_; }
  Order order(std::uint64_t, std::uint64_t epoch) const override { return order_.at(epoch); }

 private:
  IterableOrder<Order> order_;
  std::int64_t replicas_;
};

BatchSampler::Batches batches_in(nb::handle iterable, std::size_t most, Reading reading) {
  std::vector<std::int64_t> all;
  std::vector<std::int64_t> ends;
  for (const nb::handle batch : nb::iter(iterable)) {
    reading.append(batch, std::numeric_limits<std::size_t>::max(), all);
    ends.push_back(static_cast<std::int64_t>(all.size()));
    reading.count();
    if (ends.size() == most) break;
  }
  return {std::move(all), std::move(ends)};
}

class IterableBatchSampler final : public BatchSampler {
 public:
  IterableBatchSampler(nb::handle iterable, std::shared_ptr<Raised> raised)
      : order_(iterable, std::move(raised), batches_in, "batches"), replicas_(replicas_of_batches(iterable)) {}

  std::int64_t size() const noexcept override { return order_.size(); }
  std::int64_t replicas() const noexcept override { return replicas_; }
  Batches batches(std::uint64_t, std::uint64_t epoch) const override { return order_.at(epoch); }

 private:
  IterableOrder<Batches> order_;
  std::int64_t replicas_;
};

std::vector<double> weights_from(nb::handle weights) {
  std::vector<double> out;
  for (const nb::handle weight : nb::iter(weights)) {
    const double value = PyFloat_AsDouble(weight.ptr());
    if (value == -1 && PyErr_Occurred()) nb::raise_python_error();
    out.push_back(value);
  }
  return out;
}

SamplerPtr make_random(nb::handle dataset, bool replacement, std::optional<std::int64_t> num_samples) {
  return random(size_from(dataset), {.replacement = replacement, .num_samples = num_samples});
}

SamplerPtr make_distributed(nb::handle dataset, std::int64_t num_replicas, std::int64_t rank, bool shuffle,
                            bool drop_last) {
  const DistributedOptions options{.rank = rank,
                                   .num_replicas = num_replicas,
                                   .shuffle = shuffle,
                                   .remainder = drop_last ? Remainder::kDrop : Remainder::kPad};
  if (nb::isinstance<PySampler>(dataset)) return distributed(nb::cast<const PySampler&>(dataset).sampler, options);
  return distributed(size_from(dataset), options);
}

BatchSamplerPtr make_batches(nb::handle sampler, std::optional<std::int64_t> batch_size, bool drop_last) {
  if (nb::isinstance<PySampler>(sampler)) {
    if (!batch_size) throw Error(ErrorCode::kInvalidArgument, "found no batch_size, expected one beside a sampler");
    return batches(nb::cast<const PySampler&>(sampler).sampler, *batch_size, drop_last);
  }
  if (batch_size) {
    const SamplerPtr order = subset(integers_from(sampler));
    return batches(order, *batch_size, drop_last);
  }
  std::vector<std::vector<std::int64_t>> given;
  for (const nb::handle batch : nb::iter(sampler)) {
    given.push_back(integers_from(batch));
    yield_at(given.size());
  }
  return batches(std::move(given));
}

std::vector<std::int64_t> order_of(const PySampler& sampler, std::uint64_t seed, std::uint64_t epoch) {
  const ReleasedGil released;
  return sampler.sampler->order(seed, epoch).to_vector();
}

nb::list list_of(std::span<const std::int64_t> indices) {
  nb::list out;
  for (const std::int64_t index : indices) out.append(index);
  return out;
}

nb::list batches_of(const PyBatchSampler& sampler, std::uint64_t seed, std::uint64_t epoch) {
  const BatchSampler::Batches all = sampler.sampler->batches(seed, epoch);
  nb::list out;
  std::vector<std::int64_t> batch;
  for (std::int64_t number = 0; number < all.size(); ++number) {
    all.get(number, batch);
    out.append(list_of(batch));
  }
  return out;
}

// One type for each name, so that Python has one class for each.
struct PySequential : PySampler {};
struct PyRandom : PySampler {};
struct PySubset : PySampler {};
struct PyWeighted : PySampler {};
struct PyDistributed : PySampler {};

void bind_base(nb::module_& module) {
  nb::class_<PySampler>(module, "Sampler",
                        "The order of samples, decided by (seed, epoch) alone. "
                        "DataLoader passes its own seed and epoch; "
                        "iterating gives the order of seed 0 and epoch 0.")
      .def("__len__", [](const PySampler& s) { return s.sampler->size(); })
      .def(
          "order",
          [](const PySampler& s, std::uint64_t seed, std::uint64_t epoch) { return list_of(order_of(s, seed, epoch)); },
          nb::arg("seed") = 0, nb::arg("epoch") = 0,
          nb::sig("def order(self, seed: int = 0, epoch: int = 0) -> list[int]"), "The indices of one epoch.")
      .def(
          "__iter__", [](const PySampler& s) { return nb::iter(list_of(order_of(s, 0, 0))); },
          nb::sig("def __iter__(self) -> typing.Iterator[int]"));
}

void bind_samplers_over_sizes(nb::module_& module) {
  nb::class_<PySequential, PySampler>(module, "SequentialSampler", "0, 1, ... of a dataset or size.")
      .def(
          "__init__",
          [](PySequential* self, nb::handle dataset) { new (self) PySequential{{sequential(size_from(dataset))}}; },
          nb::arg("dataset").none(), nb::sig("def __init__(self, dataset: typing.Sized | int) -> None"));
  nb::class_<PyRandom, PySampler>(module, "RandomSampler",
                                  "A permutation for each epoch, PyTorch's for "
                                  "seed + epoch; with `replacement`, "
                                  "independent draws. `num_samples`: how many "
                                  "an epoch, the size unless given.")
      .def(
          "__init__",
          [](PyRandom* self, nb::handle dataset, bool replacement, std::optional<std::int64_t> num_samples) {
            new (self) PyRandom{{make_random(dataset, replacement, num_samples)}};
          },
          nb::arg("dataset").none(), nb::arg("replacement") = false, nb::arg("num_samples") = nb::none(),
          nb::sig("def __init__(self, dataset: typing.Sized | int, "
                  "replacement: bool = False, num_samples: int | None = "
                  "None) -> None"));
  nb::class_<PyDistributed, PySampler>(module, "DistributedSampler",
                                       "Rank `rank` of `num_replicas` takes every num_replicas-th sample of an "
                                       "order all "
                                       "ranks agree on, the same number on every rank: padded by repeating from "
                                       "the "
                                       "start, or cut with `drop_last`. Instead of a dataset or size it takes "
                                       "another "
                                       "Sampler, whose order it splits.")
      .def(
          "__init__",
          [](PyDistributed* self, nb::handle dataset, std::int64_t num_replicas, std::int64_t rank, bool shuffle,
             bool drop_last) {
            new (self) PyDistributed{{make_distributed(dataset, num_replicas, rank, shuffle, drop_last)}};
          },
          nb::arg("dataset").none(), nb::arg("num_replicas"), nb::arg("rank"), nb::arg("shuffle") = true,
          nb::arg("drop_last") = false,
          nb::sig("def __init__(self, dataset: typing.Sized | int | Sampler, "
                  "num_replicas: int, rank: int, shuffle: bool "
                  "= True, drop_last: bool = False) -> None"));
}

void bind_samplers_over_lists(nb::module_& module) {
  nb::class_<PySubset, PySampler>(module, "SubsetSampler",
                                  "The given indices: in this order, or permuted anew each epoch.")
      .def(
          "__init__",
          [](PySubset* self, nb::handle indices, bool shuffle) {
            new (self) PySubset{{subset(integers_from(indices), shuffle)}};
          },
          nb::arg("indices").none(), nb::arg("shuffle") = false,
          nb::sig("def __init__(self, indices: typing.Iterable[int], shuffle: "
                  "bool = False) -> None"));
  nb::class_<PyWeighted, PySampler>(module, "WeightedSampler",
                                    "Index i with probability proportional to "
                                    "weights[i]; any number of weights.")
      .def(
          "__init__",
          [](PyWeighted* self, nb::handle weights, std::int64_t num_samples, bool replacement) {
            new (self) PyWeighted{{weighted(weights_from(weights), num_samples, replacement)}};
          },
          nb::arg("weights").none(), nb::arg("num_samples"), nb::arg("replacement") = true,
          nb::sig("def __init__(self, weights: typing.Iterable[float], "
                  "num_samples: int, replacement: bool = True) -> "
                  "None"));
}

void bind_batch_sampler(nb::module_& module) {
  nb::class_<PyBatchSampler>(module, "BatchSampler",
                             "An epoch as batches: `batch_size` indices of a "
                             "sampler at a time, the last, smaller batch "
                             "left out with `drop_last`; or, without "
                             "batch_size, the given lists of indices.")
      .def(
          "__init__",
          [](PyBatchSampler* self, nb::handle sampler, std::optional<std::int64_t> batch_size, bool drop_last) {
            new (self) PyBatchSampler{make_batches(sampler, batch_size, drop_last)};
          },
          nb::arg("sampler").none(), nb::arg("batch_size") = nb::none(), nb::arg("drop_last") = false,
          nb::sig("def __init__(self, sampler: Sampler | "
                  "typing.Iterable[typing.Any], batch_size: int | None = None, "
                  "drop_last: bool = False) -> None"))
      .def("__len__", [](const PyBatchSampler& s) { return s.sampler->size(); })
      .def("batches", batches_of, nb::arg("seed") = 0, nb::arg("epoch") = 0,
           nb::sig("def batches(self, seed: int = 0, epoch: int = 0) -> "
                   "list[list[int]]"),
           "All batches of one epoch.")
      .def(
          "__iter__", [](const PyBatchSampler& s) { return nb::iter(batches_of(s, 0, 0)); },
          nb::sig("def __iter__(self) -> typing.Iterator[list[int]]"));
}

}  // namespace

std::int64_t size_from(nb::handle dataset) {
  if (PyIndex_Check(dataset.ptr()) && !nb::hasattr(dataset, "__len__"))
    return integers_from(nb::make_tuple(dataset))[0];
  return static_cast<std::int64_t>(nb::len(dataset));
}

SamplerPtr sampler_from(nb::handle sampler, const std::shared_ptr<Raised>& raised) {
  if (nb::isinstance<PySampler>(sampler)) return nb::cast<const PySampler&>(sampler).sampler;
  return std::make_shared<IterableSampler>(sampler, raised);
}

BatchSamplerPtr batch_sampler_from(nb::handle sampler, const std::shared_ptr<Raised>& raised) {
  if (nb::isinstance<PyBatchSampler>(sampler)) return nb::cast<const PyBatchSampler&>(sampler).sampler;
  return std::make_shared<IterableBatchSampler>(sampler, raised);
}

void bind_samplers(nb::module_& module) {
  bind_base(module);
  bind_samplers_over_sizes(module);
  bind_samplers_over_lists(module);
  bind_batch_sampler(module);
}

}  // namespace penstock::python
