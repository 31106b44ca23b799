// Samplers for Python: ours, torch's, classes that programs derive from them, and any iterable of indices. One that
// cannot give its order from (seed, epoch) is gone through once an epoch and remembered, so that an epoch that is begun
// again has the same order.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "core/format.h"
#include "dataset/handles.h"
#include "dataset/iterable_sampler.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"
#include "penstock/tensor.h"

namespace penstock::python {
namespace {

Sampler make_random(std::int64_t size, bool replacement, std::optional<std::int64_t> num_samples, bool compact) {
  return sampler::random(size, {.replacement = replacement, .num_samples = num_samples, .compact = compact});
}

DistributedOptions distributed_options(std::int64_t num_replicas, std::int64_t rank, bool shuffle, bool drop_last) {
  return {.rank = rank,
          .num_replicas = num_replicas,
          .shuffle = shuffle,
          .remainder = drop_last ? Remainder::kDrop : Remainder::kPad};
}

/// The size that a sampler was given, or the sampler that it was made of.
bool is_sampler(nb::handle given) { return nb::isinstance<PySampler>(given); }

template <class Make>
auto rethrowing(const std::shared_ptr<Raised>& raised, Make make) {
  try {
    return make();
  } catch (const Error&) {
    raised->rethrow();
    throw;
  }
}

[[noreturn]] void throw_without_order(const char* method) {
  PyErr_Format(PyExc_NotImplementedError, "a class derived from this one needs __iter__(), or %s", method);
  throw nb::python_error();
}

template <class Native>
std::int64_t length_of(const SamplerHandle<Native>& self) {
  if (!self.sampler) throw nb::type_error("this sampler has no len(); give its class a __len__");
  return self.sampler->size();
}

/// The indices, or batches, of one epoch.
auto entries_of(const PySampler& self, std::uint64_t seed, std::uint64_t epoch) {
  if (!self.sampler) throw_without_order("order(seed, epoch)");
  return rethrowing(self.raised, [&] {
    const ReleasedGil released;
    return self.sampler->order(seed, epoch);
  });
}
auto entries_of(const PyBatchSampler& self, std::uint64_t seed, std::uint64_t epoch) {
  if (!self.sampler) throw_without_order("batches(seed, epoch)");
  return rethrowing(self.raised, [&] { return self.sampler->batches(seed, epoch); });
}

constexpr std::int64_t kTakenAtOnce = 4096;

/// Some indices from `place` on, or one batch; `place` moves on.
nb::list take(const Order& all, std::int64_t& place) {
  std::vector<std::int64_t> some(static_cast<std::size_t>(std::min(kTakenAtOnce, all.size() - place)));
  all.copy(place, some);
  place += static_cast<std::int64_t>(some.size());
  return list_of(some);
}
nb::list take(const BatchOrder& all, std::int64_t& place) { return list_of(all[place++]); }

/// Gives lists one by one, because one of a whole compact order would take the memory that such an order does without.
template <class Entries>
struct ListIterator {
  Entries entries;
  std::int64_t place = 0;

  nb::list next() {
    if (place == entries.size()) throw nb::stop_iteration();
    return take(entries, place);
  }
};

nb::list order_of(const PySampler& self, std::uint64_t seed, std::uint64_t epoch) {
  return list_of(entries_of(self, seed, epoch).to_vector());
}

nb::list batches_of(const PyBatchSampler& self, std::uint64_t seed, std::uint64_t epoch) {
  const BatchOrder all = entries_of(self, seed, epoch);
  nb::list out;
  for (std::int64_t place = 0; place < all.size();) out.append(take(all, place));
  return out;
}

nb::object flat(const PySampler&, nb::handle lists) {
  return nb::module_::import_("itertools").attr("chain").attr("from_iterable")(lists);
}
nb::object flat(const PyBatchSampler&, nb::handle lists) { return nb::borrow(lists); }

/// What `__iter__` of a sampler gives: the order of its epoch, which is that of its own `method` where a program's
/// class has one.
template <class Handle, class Item>
Typed<IteratorOf<Item>> iterator_over(nb::handle self, const char* method) {
  const nb::object epoch = self.attr("_epoch");
  if (overrides<Handle>(self, method)) return nb::iter(self.attr(method)(0, epoch));
  const auto& handle = nb::cast<const Handle&>(self);
  auto entries = entries_of(handle, 0, nb::cast<std::uint64_t>(epoch));
  return flat(handle, nb::cast(ListIterator<decltype(entries)>{std::move(entries)}));
}

template <class Entries>
void bind_iterator(nb::module_& module, const char* name) {
  nb::class_<ListIterator<Entries>>(module, name)
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &ListIterator<Entries>::next, nb::lock_self());
}

// One type for each name, so that Python has one class for each.
struct PySequential : PySampler {};
struct PyRandom : PySampler {};
struct PySubset : PySampler {};
struct PyWeighted : PySampler {};
struct PyNodeLocal : PySampler {};
struct PyDistributed : PySampler {};

/// Rank by rank, of a size or of another sampler's order.
Sampler split(nb::handle given, const DistributedOptions& options, const std::shared_ptr<Raised>& raised) {
  if (is_sampler(given)) return sampler::distributed(sampler_from(given, raised), options);
  return sampler::distributed(nb::cast<std::int64_t>(given), options);
}

/// (sampler or list of indices, batch_size, drop_last) as batches.
BatchSampler batched(const nb::tuple& arguments, const std::shared_ptr<Raised>& raised) {
  const nb::object given = arguments[0];
  const Sampler order =
      is_sampler(given) ? sampler_from(given, raised) : sampler::subset(integers_argument(given, "sampler"));
  return sampler::batches(order, nb::cast<std::int64_t>(arguments[1]), nb::cast<bool>(arguments[2]));
}

nb::object reduced(nb::handle self) {
  return nb::module_::import_("penstock._objects.pickling").attr("reduced_sampler")(self);
}

/// What samplers of samples and of batches have alike.
template <class Handle>
void bind_common(nb::class_<Handle>& bound) {
  bound.def("__len__", length_of<std::remove_cvref_t<decltype(*Handle::sampler)>>)
      .def(
          "_set_epoch", [](Handle& self, std::uint64_t epoch) { self.epoch = epoch; }, nb::arg("epoch"),
          nb::lock_self())
      .def_prop_ro(
          "_epoch", [](const Handle& self) { return self.epoch; }, nb::lock_self())
      .def_prop_ro("_arguments", [](const Handle& self) { return self.arguments; })
      .def_prop_ro("_replicas", [](const Handle& self) { return self.sampler ? self.sampler->replicas() : 1; })
      .def("__reduce__", reduced);
}

void bind_base(nb::module_& module) {
  bind_iterator<Order>(module, "_OrderIterator");
  bind_iterator<BatchOrder>(module, "_BatchOrderIterator");
  nb::class_<PySampler> bound(module, "Sampler", nb::sig("class Sampler(SamplerMethods)"), nb::is_weak_referenceable(),
                              "Sampler()\n--\n\n");
  bind_common(bound);
  bound
      .def("__init__",
           [](nb::pointer_and_handle<PySampler> self) { make_sampler(self, std::optional<Sampler>(), nb::tuple()); })
      .def("_order", order_of, nb::arg("seed"), nb::arg("epoch"))
      .def("__iter__", [](nb::handle self) { return iterator_over<PySampler, int>(self, "order"); });
}

void bind_samplers_over_sizes(nb::module_& module) {
  nb::class_<PySequential, PySampler>(module, "SequentialSampler")
      .def(
          "__init__",
          [](nb::pointer_and_handle<PySequential> self, nb::handle dataset) {
            const std::int64_t size = size_from(dataset);
            make_sampler(self, sampler::sequential(size), nb::make_tuple(size));
          },
          nb::arg("dataset").none());
  nb::class_<PyRandom, PySampler>(module, "RandomSampler")
      .def(
          "__init__",
          [](nb::pointer_and_handle<PyRandom> self, nb::handle dataset, bool replacement,
             std::optional<std::int64_t> num_samples, bool compact) {
            const std::int64_t size = size_from(dataset);
            make_sampler(self, make_random(size, replacement, num_samples, compact),
                         nb::make_tuple(size, replacement, num_samples, compact));
          },
          nb::arg("dataset").none(), nb::arg("replacement"), nb::arg("num_samples").none(), nb::arg("compact"));
  nb::class_<PyDistributed, PySampler>(module, "DistributedSampler")
      .def(
          "__init__",
          [](nb::pointer_and_handle<PyDistributed> self, nb::handle dataset, std::int64_t num_replicas,
             std::int64_t rank, bool shuffle, bool drop_last) {
            const DistributedOptions options = distributed_options(num_replicas, rank, shuffle, drop_last);
            const auto raised = std::make_shared<Raised>();
            const nb::object given = is_sampler(dataset) ? nb::borrow(dataset) : nb::cast(size_from(dataset));
            make_sampler(self, rethrowing(raised, [&] { return split(given, options, raised); }),
                         nb::make_tuple(given, num_replicas, rank, shuffle, drop_last), raised);
          },
          nb::arg("dataset").none(), nb::arg("num_replicas"), nb::arg("rank"), nb::arg("shuffle"),
          nb::arg("drop_last"));
}

void bind_node_local_sampler(nb::module_& module) {
  nb::class_<PyNodeLocal, PySampler>(module, "NodeLocalSampler")
      .def(
          "__init__",
          [](nb::pointer_and_handle<PyNodeLocal> self, nb::handle dataset, std::int64_t nodes,
             std::int64_t ranks_per_node, bool shuffle) {
            const std::int64_t size = size_from(dataset);
            make_sampler(
                self, sampler::node_local(size, {.nodes = nodes, .ranks_per_node = ranks_per_node, .shuffle = shuffle}),
                nb::make_tuple(size, nodes, ranks_per_node, shuffle));
          },
          nb::arg("dataset").none(), nb::arg("nodes"), nb::arg("ranks_per_node"), nb::arg("shuffle"));
}

void bind_samplers_over_lists(nb::module_& module) {
  nb::class_<PySubset, PySampler>(module, "SubsetSampler")
      .def(
          "__init__",
          [](nb::pointer_and_handle<PySubset> self, nb::handle indices, bool shuffle) {
            const std::vector<std::int64_t> chosen = indices_from(indices, "indices");
            const nb::object kept = nb::cast(Tensor::of(std::span<const std::int64_t>(chosen)));
            make_sampler(self, sampler::subset(chosen, shuffle), nb::make_tuple(kept, shuffle));
          },
          nb::arg("indices").none(), nb::arg("shuffle"));
  nb::class_<PyWeighted, PySampler>(module, "WeightedSampler")
      .def(
          "__init__",
          [](nb::pointer_and_handle<PyWeighted> self, nb::handle weights, std::int64_t num_samples, bool replacement) {
            const std::vector<double> values = numbers_argument(weights, "weights");
            const nb::object kept = nb::cast(Tensor::of(std::span<const double>(values)));
            make_sampler(self, sampler::weighted(values, num_samples, replacement),
                         nb::make_tuple(kept, num_samples, replacement));
          },
          nb::arg("weights").none(), nb::arg("num_samples"), nb::arg("replacement"));
}

/// Of an order that is given by another sampler, or as a list of batches.
void make_batches(nb::pointer_and_handle<PyBatchSampler> self, nb::handle sampler,
                  std::optional<std::int64_t> batch_size, bool drop_last) {
  const auto raised = std::make_shared<Raised>();
  if (is_sampler(sampler) && !batch_size) {
    throw Error(ErrorCode::kInvalidArgument, "found no batch_size, expected one beside a sampler");
  }
  if (drop_last && !batch_size) {
    throw Error(ErrorCode::kInvalidArgument,
                "found drop_last without a batch_size: batches that are given have no size that the last could lack");
  }
  if (batch_size) {
    const nb::object kept =
        is_sampler(sampler) ? nb::borrow(sampler) : nb::object(list_of(integers_argument(sampler, "sampler")));
    const nb::tuple arguments = nb::make_tuple(kept, *batch_size, drop_last);
    make_sampler(self, rethrowing(raised, [&] { return batched(arguments, raised); }), arguments, raised);
    return;
  }
  std::vector<std::vector<std::int64_t>> given;
  nb::list kept;
  for (const nb::handle batch : nb::iter(sampler)) {
    given.push_back(integers_argument(batch, core::format("sampler[{}]", given.size()).c_str()));
    kept.append(list_of(given.back()));
    yield_at(given.size());
  }
  make_sampler(self, sampler::batches(std::move(given)), nb::make_tuple(kept), raised);
}

void bind_batch_sampler(nb::module_& module) {
  nb::class_<PyBatchSampler> bound(module, "BatchSampler", nb::sig("class BatchSampler(BatchSamplerMethods)"),
                                   nb::is_weak_referenceable(),
                                   "BatchSampler(sampler, batch_size=None, drop_last=False)\n--\n\n");
  bind_common(bound);
  bound
      .def("__init__", make_batches, nb::arg("sampler").none(), nb::arg("batch_size") = nb::none(),
           nb::arg("drop_last") = false,
           nb::sig("def __init__(self, sampler: Sampler | typing.Iterable[typing.Any], "
                   "batch_size: int | None = None, drop_last: bool = False) -> None"))
      .def("_batches", batches_of, nb::arg("seed"), nb::arg("epoch"))
      .def("__iter__", [](nb::handle self) { return iterator_over<PyBatchSampler, ListOf<int>>(self, "batches"); });
}

}  // namespace

void Raised::keep(const nb::python_error& error) {
  std::shared_ptr<const void> exception = keep_alive(nb::borrow(error.value()));
  const nb::ft_lock_guard lock(mutex_);
  std::swap(exception_, exception);
}

void Raised::rethrow() {
  std::shared_ptr<const void> kept;
  {
    const nb::ft_lock_guard lock(mutex_);
    std::swap(exception_, kept);
  }
  if (kept == nullptr) return;
  const nb::handle raised(static_cast<PyObject*>(const_cast<void*>(kept.get())));
  const nb::object exception =
      nb::module_::import_("penstock._batches.functions").attr("not_an_end")(raised, "the sampler");
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  nb::raise_python_error();
}

std::int64_t size_from(nb::handle dataset) {
  if (PyIndex_Check(dataset.ptr()) && !has_attribute(dataset, "__len__")) return integer_argument(dataset, "dataset");
  return static_cast<std::int64_t>(nb::len(dataset));
}

Sampler sampler_from(nb::handle sampler, const std::shared_ptr<Raised>& raised) {
  if (!nb::isinstance<PySampler>(sampler)) return IterableSampler(sampler, raised, nullptr);
  if (const auto method = own_way<PySampler>(sampler, "order")) {
    return IterableSampler(sampler, raised, *method);
  }
  if (nb::isinstance<PyDistributed>(sampler)) {
    const nb::object& arguments = nb::inst_ptr<PySampler>(sampler)->arguments;
    return split(arguments[0],
                 distributed_options(nb::cast<std::int64_t>(arguments[1]), nb::cast<std::int64_t>(arguments[2]),
                                     nb::cast<bool>(arguments[3]), nb::cast<bool>(arguments[4])),
                 raised);
  }
  return *nb::inst_ptr<PySampler>(sampler)->sampler;
}

BatchSampler batch_sampler_from(nb::handle sampler, const std::shared_ptr<Raised>& raised) {
  if (!nb::isinstance<PyBatchSampler>(sampler)) return IterableBatchSampler(sampler, raised, nullptr);
  if (const auto method = own_way<PyBatchSampler>(sampler, "batches")) {
    return IterableBatchSampler(sampler, raised, *method);
  }
  const auto arguments = nb::borrow<nb::tuple>(nb::inst_ptr<PyBatchSampler>(sampler)->arguments);
  // Of a sampler and a size: the sampler may be the program's.
  return nb::len(arguments) == 3 ? batched(arguments, raised) : *nb::inst_ptr<PyBatchSampler>(sampler)->sampler;
}

void bind_samplers(nb::module_& module) {
  bind_base(module);
  bind_samplers_over_sizes(module);
  bind_node_local_sampler(module);
  bind_samplers_over_lists(module);
  bind_batch_sampler(module);
}

}  // namespace penstock::python
