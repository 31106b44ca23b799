// Lengths of samples without their payload. Fetched with CallContext::headers_only, a dataset opens each file, reads
// what its format needs for the index, and closes it again; all other datasets know their layouts anyway. Threads take
// stretches of indices in order, so that the first error by index is found whatever thread comes first.
#include "data/dataset/lengths.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>

#include "core/format.h"
#include "core/task_pool.h"
#include "core/text.h"
#include "data/dataset_impl.h"
#include "data/sample/blame.h"
#include "data/sample/require_samples.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock {

namespace {

using data::Layout;
using data::Work;
using data::Workspace;

/// Few enough that a stop is answered soon, and many enough that taking them costs nothing.
constexpr std::int64_t kAtOnce = 128;

class HeaderWalk {
 public:
  using Visit = std::function<void(std::int64_t, const Layout&)>;

  HeaderWalk(const Dataset& dataset, const LengthsOptions& options, const Visit& visit)
      : dataset_(dataset), stop_(options.stop), visit_(visit) {}

  /// Takes stretches until there are no more; any number of threads at once.
  void run() {
    Workspace own;
    own.call.headers_only = true;
    while (true) {
      const std::int64_t begin = next_.fetch_add(kAtOnce);
      if (begin >= std::min(dataset_.size(), bad_.load())) return;
      if (stop_.stop_requested()) return note(Error(ErrorCode::kCancelled, "the search was stopped"), begin);
      walk(begin, std::min(begin + kAtOnce, dataset_.size()), own.work());
      own.scratch.reset();
    }
  }

  void rethrow() const {
    if (error_) throw *error_;
  }

 private:
  void walk(std::int64_t begin, std::int64_t end, const Work& work) {
    const auto count = static_cast<std::size_t>(end - begin);
    const std::span<std::int64_t> indices = work.scratch.arena.array<std::int64_t>(count);
    const std::span<data::Sample> samples = work.scratch.arena.array<data::Sample>(count);
    for (std::size_t i = 0; i < count; ++i) indices[i] = begin + static_cast<std::int64_t>(i);
    std::int64_t at = begin;
    try {
      const std::size_t good = fetch(indices, work, samples);
      for (std::size_t i = 0; i < good; ++i) {
        at = indices[i];
        visit_(at, *samples[i].layout);
      }
    } catch (const Error& error) {
      note(data::of_sample(error, dataset_, at), at);
    }
  }

  /// How many can be fetched before the first bad one, which is noted. They may be bad for whoever visits them.
  std::size_t fetch(std::span<const std::int64_t> indices, const Work& work, std::span<data::Sample> samples) {
    std::size_t good = indices.size();
    while (true) {
      try {
        dataset_.impl().fetch(indices.first(good), work, samples.first(good));
        return good;
      } catch (const data::SampleError& error) {
        good = error.position();
        note(data::of_sample(error.error(), dataset_, indices[good]), indices[good]);
      }
    }
  }

  void note(std::optional<Error> error, std::int64_t index) {
    const std::scoped_lock lock(mutex_);
    if (index >= bad_) return;
    bad_ = index;
    error_.swap(error);  // the one before outlives the lock: its cause may be Python's
  }

  const Dataset& dataset_;
  std::stop_token stop_;
  const Visit& visit_;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<std::int64_t> bad_ = std::numeric_limits<std::int64_t>::max();  ///< the first sample with an error
  std::mutex mutex_;
  std::optional<Error> error_;
};

bool has_dim(const data::TensorLayout& tensor, std::int64_t dim) {
  const auto rank = static_cast<std::int64_t>(tensor.shape.rank());
  return dim >= -rank && dim < rank;
}

[[noreturn]] void throw_no_key(const Layout& layout, const std::string& key) {
  core::NearestNames nearest(key);
  for (const data::Leaf& leaf : layout.structure->leaves) nearest.add(leaf.key);
  const std::string hint = core::did_you_mean(nearest.take());
  throw Error(ErrorCode::kKeyNotFound,
              core::format("the sample has no tensor {}{}{}", core::quoted(key), hint.empty() ? "" : "; ", hint));
}

std::size_t threads_of(const LengthsOptions& options) {
  if (options.num_workers == LoaderOptions::kAutoWorkers) return core::usable_cpus();
  if (options.num_workers < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("num_workers is {}; it must be 0 or more", +options.num_workers));
  }
  return static_cast<std::size_t>(options.num_workers);
}

}  // namespace

void data::visit_headers(const Dataset& dataset, const LengthsOptions& options,
                         const std::function<void(std::int64_t, const Layout&)>& visit) {
  require_samples(dataset, "lengths of samples");
  HeaderWalk walk(dataset, options, visit);
  const auto stretches = static_cast<std::size_t>((dataset.size() + kAtOnce - 1) / kAtOnce);
  const std::size_t threads = std::clamp<std::size_t>(std::min(threads_of(options), core::usable_cpus()), 1,
                                                      std::max<std::size_t>(stretches, 1));
  core::parallel_for(threads, threads, [&](std::size_t) { walk.run(); });
  walk.rethrow();
}

const data::TensorLayout& data::meant_tensor(const Layout& layout, const LengthsOptions& options) {
  const TensorLayout* found = nullptr;
  bool named = options.key.empty();
  for (const Leaf& leaf : layout.structure->leaves) {
    if (leaf.kind != LeafKind::kTensor || (!options.key.empty() && leaf.key != options.key)) continue;
    named = true;
    const TensorLayout& tensor = layout.tensors[leaf.number];
    if (!has_dim(tensor, options.dim)) continue;
    if (found != nullptr && length_of(*found, options) != length_of(tensor, options)) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("the sample has tensors of {} and {} along dimension {}, one at {}; name the one that "
                               "is meant with key, or take the lengths of the dataset that it comes from",
                               length_of(*found, options), length_of(tensor, options), options.dim, leaf.path));
    }
    if (found == nullptr) found = &tensor;
  }
  if (found != nullptr) return *found;
  if (!named) throw_no_key(layout, options.key);
  const bool single = layout.tensors.size() == 1;
  throw Error(ErrorCode::kShapeMismatch,
              core::format("the sample has no tensor with dimension {}{}; choose another dim, or leave the sample out "
                           "with subset",
                           options.dim, single ? " but one of shape " + layout.tensors[0].shape.to_string() : ""));
}

std::int64_t data::length_of(const TensorLayout& tensor, const LengthsOptions& options) {
  const auto rank = static_cast<std::int64_t>(tensor.shape.rank());
  return tensor.shape[static_cast<std::size_t>(options.dim < 0 ? rank + options.dim : std::int64_t{options.dim})];
}

std::vector<std::int64_t> lengths(const Dataset& dataset, const LengthsOptions& options) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(dataset.size()));
  data::visit_headers(dataset, options, [&](std::int64_t index, const Layout& layout) {
    out[static_cast<std::size_t>(index)] = data::length_of(data::meant_tensor(layout, options), options);
  });
  return out;
}

}  // namespace penstock
