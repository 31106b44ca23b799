#pragma once

// Handles that the loader's parts have in Python. Everything here needs the
// GIL, or where there is none a thread that is attached to the interpreter.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/nanobind.h"
#include "interpreter/typed.h"
#include "penstock/dataset.h"
#include "penstock/mix.h"
#include "penstock/sampler.h"

namespace penstock::python {

/// The size that an argument named `dataset` means: an integer, or what has a length.
std::int64_t size_from(nb::handle dataset);

/// Whether it is a Dataset, or of another class that holds one.
bool has_dataset(nb::handle object);
/// The Dataset, or the one that a dataset of another class holds; kDTypeMismatch for what has none.
nb::object held_dataset(nb::handle object);
/// How many samples there are. Those of shards are found by the first call, without the interpreter's lock.
std::int64_t count_samples(const Dataset& dataset);
/// held_dataset, with its samples counted.
nb::object counted_dataset(nb::handle object);
/// The dataset with the tensors that `dtype=` means cast to it (data::typed), and those under `keys`; for "promote" all
/// to what they promote to; as it is for None, beside which `strict` is refused.
Typed<Dataset> typed(nb::object dataset, nb::handle dtype, nb::handle strict, nb::handle keys = nb::none());
/// Whether it is a penstock.SampleStream, whose `_native` is the SampleStream of C++.
bool is_stream(nb::handle object);
/// Integers in a list, array or tensor.
std::vector<std::int64_t> indices_from(nb::handle indices, const char* name);
/// Whether it is an array rather than a number, which arrays without dimensions and NumPy's scalars are too.
bool has_dimensions(nb::handle item);
/// What is one, as it is; of several a list, because an iterable gives them once, and a pickle holds them.
nb::object kept_list(nb::handle given, bool is_one);
/// A path, or several.
std::vector<std::string> paths_from(nb::handle given);
/// Whether it is one key: text or an integer, and no list of keys.
bool is_key(nb::handle object);
/// Keys as a list, or as one; none for None. Integers become digits, or what FilesOptions::keys takes for them.
std::vector<std::string> keys_from(nb::handle keys, bool in_brackets = false);
/// An object of ours with what it is unpickled by: a function of penstock._objects.pickling and its arguments.
nb::object with_recipe(const char* maker, const nb::object& arguments, nb::object object);
/// An object of ours with what it was made by, for pickles: a function of the package and its arguments.
nb::object made_by(const char* function, const nb::object& arguments, nb::object object);

/// Between a loader and its Python sampler.
class Raised {
 public:
  /// Keeps what Python code raised that C++ called, until the call returns.
  void keep(const nb::python_error& error);
  /// Raises what was kept, which it then forgets.
  void rethrow();
  /// Nobody waits for the order that is being read.
  std::atomic<bool> stopped{false};

 private:
  nb::ft_mutex mutex_;
  std::shared_ptr<const void> exception_;  ///< of Python
};

/// Base of the sampler classes; each holds a C++ sampler, except objects of a class that a program derives from
/// the base itself.
template <class Native>
struct SamplerHandle {
  std::optional<Native> sampler;
  std::shared_ptr<Raised> raised = {};  ///< what a Python sampler within it raises
  nb::object arguments = {};            ///< the tuple that it was made by; keeps a Python sampler within it alive
  std::uint64_t epoch = 0;              ///< that `__iter__` gives
};
using PySampler = SamplerHandle<Sampler>;
using PyBatchSampler = SamplerHandle<BatchSampler>;
/// Makes the sampler in place and keeps what it was made by, for pickles and copies.
template <class Handle, class Native>
void make_sampler(nb::pointer_and_handle<Handle> self, Native sampler, const nb::tuple& arguments,
                  std::shared_ptr<Raised> raised = std::make_shared<Raised>()) {
  auto* made = new (self.p) Handle;
  made->sampler = std::move(sampler);
  made->raised = std::move(raised);
  made->arguments = arguments;
}

/// A sampler of ours, or any iterable of integers, which is gone through anew at each epoch (after `set_epoch(epoch)`
/// when it has that), as far as its length says, or where it has none to kMostUncounted. Of a class derived from ours,
/// what it overrides counts: `order(seed, epoch)`, else `__iter__`. The result borrows `sampler`, which must outlive
/// it; `raised` gets what it raises.
Sampler sampler_from(nb::handle sampler, const std::shared_ptr<Raised>& raised);
inline constexpr std::size_t kMostUncounted = std::size_t{1} << 26;
/// The same for an iterable of lists of integers.
BatchSampler batch_sampler_from(nb::handle sampler, const std::shared_ptr<Raised>& raised);

/// The methods of Dataset that take parts of one long array as samples (windows.cpp).
void bind_windows(nb::class_<Dataset>& dataset);
/// Those that transform its samples' tensors (transforms.cpp).
void bind_transforms(nb::class_<Dataset>& dataset);

/// The mixture of penstock.SampleStreams. kDTypeMismatch for what is none.
nb::object mixed_streams(const nb::list& streams, const std::vector<double>& weights, const MixOptions& options);

}  // namespace penstock::python
