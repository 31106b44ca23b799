#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "bindings.h"
#include "convert.h"
#include "core/format.h"
#include "data.h"
#include "docs_samplers.h"
#include "gil.h"
#include "interrupt.h"
#include "penstock/error.h"
#include "penstock/tensor.h"

namespace penstock::python {
namespace {

/// One reading of a Python sampler, which may be long or endless: answers
/// signals, and ends when nobody waits for it any more.
class Reading {
 public:
  explicit Reading(const std::atomic<bool>& stopped) : stopped_(stopped) {}

  void append(nb::handle iterable, std::size_t most, std::vector<std::int64_t>& out,
              std::optional<std::size_t> batch = {}) {
    const std::size_t begin = out.size();
    const std::size_t end = most > out.max_size() - out.size() ? out.max_size() : out.size() + most;
    if (out.size() == end) return;
    for (const nb::handle item : nb::iter(iterable)) {
      out.push_back(integer_item(item, {batch ? "batch_sampler" : "sampler", out.size() - begin, batch}));
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

/// Whether a class of the program's own has another method of that name than the class of ours it is derived from.
template <class Base>
bool overrides(nb::handle sampler, const char* method) {
  const nb::handle base = nb::type<Base>();
  return !nb::getattr(sampler.type(), method).is(nb::getattr(base, method));
}

template <class Base>
const Base* own_part(nb::handle sampler) {
  return nb::isinstance<Base>(sampler) && nb::inst_ready(sampler) ? nb::inst_ptr<Base>(sampler) : nullptr;
}

template <class Base>
bool has_inherited_length(nb::handle sampler) {
  return nb::isinstance<Base>(sampler) && !overrides<Base>(sampler, "__len__");
}

/// Whether it is of a derived class whose `__init__` did not call ours, so that methods it inherits do not work.
bool is_unmade(nb::handle sampler) {
  const bool is_ours = nb::isinstance<PySampler>(sampler) || nb::isinstance<PyBatchSampler>(sampler);
  return is_ours && !nb::inst_ready(sampler);
}

/// Whether len() tells how many it gives. What a class inherits from ours tells of our order, not of its own.
bool has_length(nb::handle sampler) {
  return nb::hasattr(sampler, "__len__") && !has_inherited_length<PySampler>(sampler) &&
         !has_inherited_length<PyBatchSampler>(sampler);
}

/// How a class that a program derived from one of ours gives its order: by the method that takes (seed, epoch), by
/// being gone through (null), or as ours does it (nothing).
template <class Base>
std::optional<const char*> own_way(nb::handle sampler, const char* method) {
  if (overrides<Base>(sampler, method)) return method;
  const Base* own = own_part<Base>(sampler);
  const bool is_ours = own != nullptr && own->sampler;
  if (!is_ours || overrides<Base>(sampler, "__iter__") || overrides<Base>(sampler, "__len__")) return nullptr;
  return std::nullopt;
}

/// Goes through a Python iterable once for each epoch and remembers the last:
/// an epoch that is begun again, as after a resume, has the same order.
template <class Content>
class IterableOrder {
 public:
  /// Reads `most` indices or batches, or fewer where there are not as many.
  using Read = Content (*)(nb::handle iterable, std::size_t most, Reading reading);

  /// `unit`: what it gives. `method`: the name of its method that makes an epoch from (seed, epoch), or null where it
  /// is gone through itself.
  IterableOrder(nb::handle iterable, std::shared_ptr<Raised> raised, Read read, const char* unit, const char* method)
      : iterable_(iterable), raised_(std::move(raised)), read_(read), unit_(unit), method_(method), size_(measure()) {}

  /// Its length, or how many it gave in epoch 0 where it has none.
  std::int64_t size() const noexcept { return size_; }
  /// From any thread, with or without the GIL. As many as size() says.
  Content at(std::uint64_t seed, std::uint64_t epoch) const {
    const AcquiredGil gil;
    // One more than it should have, to see that there is none.
    const Content& content = order_of(method_ == nullptr ? 0 : seed, epoch, static_cast<std::size_t>(size_) + 1);
    if (content.size() == size_) return content;
    const std::string found = content.size() > size_ ? "more" : core::format("{} {}", content.size(), unit_);
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("the sampler gave {}, expected {} {} as its length or its first epoch says", found, size_, unit_));
  }

 private:
  const Content& order_of(std::uint64_t seed, std::uint64_t epoch, std::size_t most) const {
    const std::pair wanted(seed, epoch);
    if (known_ == wanted) return *content_;
    try {
      content_ = read_(begun(seed, epoch), most, Reading(raised_->stopped));
    } catch (const nb::python_error&) {
      raised_->exception = std::current_exception();
      throw Error(ErrorCode::kCancelled, "the sampler raised an exception");
    }
    known_ = wanted;
    return *content_;
  }

  /// What gives the epoch when it is gone through.
  nb::object begun(std::uint64_t seed, std::uint64_t epoch) const {
    if (method_ != nullptr) return iterable_.attr(method_)(seed, epoch);
    if (is_unmade(iterable_)) return nb::borrow(iterable_);
    const nb::object set_epoch = nb::getattr(iterable_, "set_epoch", nb::none());
    if (!set_epoch.is_none()) set_epoch(epoch);
    return nb::borrow(iterable_);
  }

  std::int64_t measure() const {
    if (has_length(iterable_)) return static_cast<std::int64_t>(nb::len(iterable_));
    const std::int64_t size = order_of(0, 0, kMostUncounted + 1).size();
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
  const char* method_;
  mutable std::optional<std::pair<std::uint64_t, std::uint64_t>> known_;  ///< seed and epoch
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

class IterableSampler final : public SamplerInterface {
 public:
  IterableSampler(nb::handle iterable, std::shared_ptr<Raised> raised, const char* method)
      : order_(iterable, std::move(raised), order_in, "indices", method), replicas_(replicas_of(iterable)) {}

  std::int64_t size() const noexcept override { return order_.size(); }
  std::int64_t replicas() const noexcept override { return replicas_; }
  Order order(std::uint64_t seed, std::uint64_t epoch) const override { return order_.at(seed, epoch); }

 private:
  IterableOrder<Order> order_;
  std::int64_t replicas_;
};

BatchOrder batches_in(nb::handle iterable, std::size_t most, Reading reading) {
  std::vector<std::int64_t> all;
  std::vector<std::int64_t> ends;
  for (const nb::handle batch : nb::iter(iterable)) {
    reading.append(batch, std::numeric_limits<std::size_t>::max(), all, ends.size());
    ends.push_back(static_cast<std::int64_t>(all.size()));
    reading.count();
    if (ends.size() == most) break;
  }
  return {std::move(all), std::move(ends)};
}

class IterableBatchSampler final : public BatchSamplerInterface {
 public:
  IterableBatchSampler(nb::handle iterable, std::shared_ptr<Raised> raised, const char* method)
      : order_(iterable, std::move(raised), batches_in, "batches", method), replicas_(replicas_of_batches(iterable)) {}

  std::int64_t size() const noexcept override { return order_.size(); }
  std::int64_t replicas() const noexcept override { return replicas_; }
  BatchOrder batches(std::uint64_t seed, std::uint64_t epoch) const override { return order_.at(seed, epoch); }

 private:
  IterableOrder<BatchOrder> order_;
  std::int64_t replicas_;
};

Sampler make_random(std::int64_t size, bool replacement, std::optional<std::int64_t> num_samples) {
  return sampler::random(size, {.replacement = replacement, .num_samples = num_samples});
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
    if (raised->exception) std::rethrow_exception(std::exchange(raised->exception, nullptr));
    throw;
  }
}

nb::list list_of(std::span<const std::int64_t> indices) {
  nb::list out;
  for (const std::int64_t index : indices) out.append(index);
  return out;
}

[[noreturn]] void throw_without_order(const char* method) {
  PyErr_Format(PyExc_NotImplementedError, "a class derived from this one needs __iter__(), or %s", method);
  throw nb::python_error();
}

std::int64_t length_of(const PySampler& self) {
  if (!self.sampler) throw nb::type_error("this sampler has no len(); give its class a __len__");
  return self.sampler->size();
}

nb::list order_of(const PySampler& self, std::uint64_t seed, std::uint64_t epoch) {
  if (!self.sampler) throw_without_order("order(seed, epoch)");
  return rethrowing(self.raised, [&] {
    const std::vector<std::int64_t> order = [&] {
      const ReleasedGil released;
      return self.sampler->order(seed, epoch).to_vector();
    }();
    return list_of(order);
  });
}

nb::list batches_of(const PyBatchSampler& self, std::uint64_t seed, std::uint64_t epoch) {
  if (!self.sampler) throw_without_order("batches(seed, epoch)");
  return rethrowing(self.raised, [&] {
    const BatchOrder all = self.sampler->batches(seed, epoch);
    nb::list out;
    for (std::int64_t number = 0; number < all.size(); ++number) out.append(list_of(all[number]));
    return out;
  });
}

std::int64_t length_of(const PyBatchSampler& self) {
  if (!self.sampler) throw nb::type_error("this sampler has no len(); give its class a __len__");
  return self.sampler->size();
}

// One type for each name, so that Python has one class for each.
struct PySequential : PySampler {};
struct PyRandom : PySampler {};
struct PySubset : PySampler {};
struct PyWeighted : PySampler {};
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

/// Makes the sampler in place and keeps what it was made by, for pickles and copies.
template <class Sampler, class Ptr>
void make(nb::pointer_and_handle<Sampler> self, Ptr sampler, const nb::tuple& arguments,
          std::shared_ptr<Raised> raised = std::make_shared<Raised>()) {
  auto* made = new (self.p) Sampler;
  made->sampler = std::move(sampler);
  made->raised = std::move(raised);
  made->arguments = arguments;
}

nb::object reduced(nb::handle self) { return nb::module_::import_("penstock._pickling").attr("reduced_sampler")(self); }

void bind_base(nb::module_& module) {
  nb::class_<PySampler>(module, "Sampler", nb::is_weak_referenceable(), docs::kSampler)
      .def("__init__",
           [](nb::pointer_and_handle<PySampler> self) { make(self, std::optional<Sampler>(), nb::tuple()); })
      .def("__len__", [](const PySampler& self) { return length_of(self); })
      .def("order", order_of, nb::arg("seed") = 0, nb::arg("epoch") = 0,
           nb::sig("def order(self, seed: int = 0, epoch: int = 0) -> list[int]"), docs::kSamplerOrder)
      .def(
          "set_epoch", [](PySampler& self, std::uint64_t epoch) { self.epoch = epoch; }, nb::arg("epoch"),
          nb::sig("def set_epoch(self, epoch: int) -> None"), docs::kSamplerSetEpoch)
      .def(
          "__iter__", [](const PySampler& self) { return nb::iter(order_of(self, 0, self.epoch)); },
          nb::sig("def __iter__(self) -> typing.Iterator[int]"))
      .def_prop_ro(
          "_arguments", [](const PySampler& self) { return self.arguments; },
          nb::sig("def _arguments(self) -> tuple[typing.Any, ...]"))
      .def_prop_ro("_replicas", [](const PySampler& self) { return self.sampler ? self.sampler->replicas() : 1; })
      .def("__reduce__", reduced, nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
}

void bind_samplers_over_sizes(nb::module_& module) {
  nb::class_<PySequential, PySampler>(module, "SequentialSampler", docs::kSequentialSampler)
      .def(
          "__init__",
          [](nb::pointer_and_handle<PySequential> self, nb::handle dataset) {
            const std::int64_t size = size_from(dataset);
            make(self, sampler::sequential(size), nb::make_tuple(size));
          },
          nb::arg("dataset").none(), nb::sig("def __init__(self, dataset: typing.Sized | int) -> None"));
  nb::class_<PyRandom, PySampler>(module, "RandomSampler", docs::kRandomSampler)
      .def(
          "__init__",
          [](nb::pointer_and_handle<PyRandom> self, nb::handle dataset, bool replacement,
             std::optional<std::int64_t> num_samples) {
            const std::int64_t size = size_from(dataset);
            make(self, make_random(size, replacement, num_samples), nb::make_tuple(size, replacement, num_samples));
          },
          nb::arg("dataset").none(), nb::arg("replacement") = false, nb::arg("num_samples") = nb::none(),
          nb::sig("def __init__(self, dataset: typing.Sized | int, "
                  "replacement: bool = False, num_samples: int | None = "
                  "None) -> None"));
  nb::class_<PyDistributed, PySampler>(module, "DistributedSampler", docs::kDistributedSampler)
      .def(
          "__init__",
          [](nb::pointer_and_handle<PyDistributed> self, nb::handle dataset, std::int64_t num_replicas,
             std::int64_t rank, bool shuffle, bool drop_last) {
            const DistributedOptions options = distributed_options(num_replicas, rank, shuffle, drop_last);
            const auto raised = std::make_shared<Raised>();
            const nb::object given = is_sampler(dataset) ? nb::borrow(dataset) : nb::cast(size_from(dataset));
            make(self, rethrowing(raised, [&] { return split(given, options, raised); }),
                 nb::make_tuple(given, num_replicas, rank, shuffle, drop_last), raised);
          },
          nb::arg("dataset").none(), nb::arg("num_replicas"), nb::arg("rank"), nb::arg("shuffle") = true,
          nb::arg("drop_last") = false,
          nb::sig("def __init__(self, dataset: typing.Sized | int | Sampler, "
                  "num_replicas: int, rank: int, shuffle: bool "
                  "= True, drop_last: bool = False) -> None"));
}

void bind_samplers_over_lists(nb::module_& module) {
  nb::class_<PySubset, PySampler>(module, "SubsetSampler", docs::kSubsetSampler)
      .def(
          "__init__",
          [](nb::pointer_and_handle<PySubset> self, nb::handle indices, bool shuffle) {
            const std::vector<std::int64_t> chosen = indices_from(indices, "indices");
            const nb::object kept = nb::cast(Tensor::of(std::span<const std::int64_t>(chosen)));
            make(self, sampler::subset(chosen, shuffle), nb::make_tuple(kept, shuffle));
          },
          nb::arg("indices").none(), nb::arg("shuffle") = false,
          nb::sig("def __init__(self, indices: typing.Iterable[int], shuffle: "
                  "bool = False) -> None"));
  nb::class_<PyWeighted, PySampler>(module, "WeightedSampler", docs::kWeightedSampler)
      .def(
          "__init__",
          [](nb::pointer_and_handle<PyWeighted> self, nb::handle weights, std::int64_t num_samples, bool replacement) {
            const std::vector<double> values = numbers_argument(weights, "weights");
            const nb::object kept = nb::cast(Tensor::of(std::span<const double>(values)));
            make(self, sampler::weighted(values, num_samples, replacement),
                 nb::make_tuple(kept, num_samples, replacement));
          },
          nb::arg("weights").none(), nb::arg("num_samples"), nb::arg("replacement") = true,
          nb::sig("def __init__(self, weights: typing.Iterable[float], "
                  "num_samples: int, replacement: bool = True) -> "
                  "None"));
}

/// Of an order that is given by another sampler, or as a list of batches.
void make_batches(nb::pointer_and_handle<PyBatchSampler> self, nb::handle sampler,
                  std::optional<std::int64_t> batch_size, bool drop_last) {
  const auto raised = std::make_shared<Raised>();
  if (is_sampler(sampler) && !batch_size) {
    throw Error(ErrorCode::kInvalidArgument, "found no batch_size, expected one beside a sampler");
  }
  if (batch_size) {
    const nb::object kept =
        is_sampler(sampler) ? nb::borrow(sampler) : nb::object(list_of(integers_argument(sampler, "sampler")));
    const nb::tuple arguments = nb::make_tuple(kept, *batch_size, drop_last);
    make(self, rethrowing(raised, [&] { return batched(arguments, raised); }), arguments, raised);
    return;
  }
  std::vector<std::vector<std::int64_t>> given;
  nb::list kept;
  for (const nb::handle batch : nb::iter(sampler)) {
    given.push_back(integers_argument(batch, core::format("sampler[{}]", given.size()).c_str()));
    kept.append(list_of(given.back()));
    yield_at(given.size());
  }
  make(self, sampler::batches(std::move(given)), nb::make_tuple(kept), raised);
}

void bind_batch_sampler(nb::module_& module) {
  nb::class_<PyBatchSampler>(module, "BatchSampler", nb::is_weak_referenceable(), docs::kBatchSampler)
      .def("__init__", make_batches, nb::arg("sampler").none(), nb::arg("batch_size") = nb::none(),
           nb::arg("drop_last") = false,
           nb::sig("def __init__(self, sampler: Sampler | typing.Iterable[typing.Any], "
                   "batch_size: int | None = None, drop_last: bool = False) -> None"))
      .def("__len__", [](const PyBatchSampler& self) { return length_of(self); })
      .def("batches", batches_of, nb::arg("seed") = 0, nb::arg("epoch") = 0,
           nb::sig("def batches(self, seed: int = 0, epoch: int = 0) -> list[list[int]]"), docs::kBatches)
      .def(
          "set_epoch", [](PyBatchSampler& self, std::uint64_t epoch) { self.epoch = epoch; }, nb::arg("epoch"),
          nb::sig("def set_epoch(self, epoch: int) -> None"), docs::kSamplerSetEpoch)
      .def(
          "__iter__", [](const PyBatchSampler& self) { return nb::iter(batches_of(self, 0, self.epoch)); },
          nb::sig("def __iter__(self) -> typing.Iterator[list[int]]"))
      .def_prop_ro(
          "_arguments", [](const PyBatchSampler& self) { return self.arguments; },
          nb::sig("def _arguments(self) -> tuple[typing.Any, ...]"))
      .def_prop_ro("_replicas", [](const PyBatchSampler& self) { return self.sampler ? self.sampler->replicas() : 1; })
      .def("__reduce__", reduced, nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
}

}  // namespace

std::int64_t size_from(nb::handle dataset) {
  if (PyIndex_Check(dataset.ptr()) && !nb::hasattr(dataset, "__len__")) return integer_argument(dataset, "dataset");
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
  bind_samplers_over_lists(module);
  bind_batch_sampler(module);
}

}  // namespace penstock::python
