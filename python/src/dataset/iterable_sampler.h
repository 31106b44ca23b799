#pragma once

// Samplers that a program wrote in Python: gone through once for each epoch, under the GIL.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "content/functions.h"
#include "core/format.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"

namespace penstock::python {

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
    if (const auto numbers = integers_in_array(iterable)) {
      const std::size_t taken = std::min(numbers->size(), end - begin);
      out.insert(out.end(), numbers->begin(), numbers->begin() + static_cast<std::ptrdiff_t>(taken));
      count();
      return;
    }
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
inline bool is_unmade(nb::handle sampler) {
  const bool is_ours = nb::isinstance<PySampler>(sampler) || nb::isinstance<PyBatchSampler>(sampler);
  return is_ours && !nb::inst_ready(sampler);
}

/// Whether len() tells how many it gives. What a class inherits from ours tells of our order, not of its own.
inline bool has_length(nb::handle sampler) {
  return has_attribute(sampler, "__len__") && !has_inherited_length<PySampler>(sampler) &&
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
    Shared content;
    calls_of_python([&] {
      const nb::object held = nb::borrow(iterable_);  // its code may have the loader let go of it
      // One more than it should have, to see that there is none.
      content = order_of(method_ == nullptr ? 0 : seed, epoch, static_cast<std::size_t>(size_) + 1);
    });
    if (content->size() == size_) return *content;
    const std::string found = content->size() > size_ ? "more" : core::format("{} {}", content->size(), unit_);
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("the sampler gave {}, expected {} {} as its length or its first epoch says", found, size_, unit_));
  }

 private:
  using Shared = std::shared_ptr<const Content>;
  /// What was read last.
  struct Last {
    nb::ft_mutex mutex;
    std::optional<std::pair<std::uint64_t, std::uint64_t>> wanted;  ///< seed and epoch
    Shared content;
  };

  Shared order_of(std::uint64_t seed, std::uint64_t epoch, std::size_t most) const {
    const std::pair wanted(seed, epoch);
    if (Shared known = remembered(wanted)) return known;
    try {
      auto content = std::make_shared<const Content>(read_(begun(seed, epoch), most, Reading(raised_->stopped)));
      const nb::ft_lock_guard lock(last_->mutex);
      last_->wanted = wanted;
      last_->content = content;
      return content;
    } catch (const nb::python_error& error) {
      raised_->keep(error);
      throw Error(ErrorCode::kCancelled, "the sampler raised an exception");
    }
  }

  /// What was read last, if that was of this seed and epoch.
  Shared remembered(const std::pair<std::uint64_t, std::uint64_t>& wanted) const {
    const nb::ft_lock_guard lock(last_->mutex);
    return last_->wanted == wanted ? last_->content : nullptr;
  }

  /// What gives the epoch when it is gone through.
  nb::object begun(std::uint64_t seed, std::uint64_t epoch) const {
    if (method_ != nullptr) return iterable_.attr(method_)(seed, epoch);
    if (is_unmade(iterable_)) return nb::borrow(iterable_);
    const nb::object set_epoch = attribute_or(iterable_, "set_epoch");
    if (!set_epoch.is_none()) set_epoch(epoch);
    return nb::borrow(iterable_);
  }

  std::int64_t measure() const {
    if (has_length(iterable_)) return static_cast<std::int64_t>(nb::len(iterable_));
    const std::int64_t size = order_of(0, 0, kMostUncounted + 1)->size();
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
  std::shared_ptr<Last> last_ = std::make_shared<Last>();
  std::int64_t size_;  // measured by way of the members before it
};

/// A class of torch's, if the program has imported it.
inline nb::object torchs(const char* module, const char* name) {
  const nb::object found = nb::module_::import_("sys").attr("modules").attr("get")(module);
  return found.is_none() ? nb::none() : attribute_or(found, name);
}

/// The ranks among which torch's DistributedSampler deals its order out in turn; 1 for every other sampler, also for
/// those derived from it that make an order of their own.
inline std::int64_t replicas_of(nb::handle sampler) {
  const nb::object kind = torchs("torch.utils.data.distributed", "DistributedSampler");
  if (kind.is_none() || !nb::isinstance(sampler, kind)) return 1;
  if (!nb::getattr(sampler.type(), "__iter__").is(nb::getattr(kind, "__iter__"))) return 1;
  return integer_from(nb::getattr(sampler, "num_replicas"));
}

/// The same of the sampler whose indices torch's BatchSampler has.
inline std::int64_t replicas_of_batches(nb::handle batch_sampler) {
  const bool equal = batch_sampler.type().is(torchs("torch.utils.data.sampler", "BatchSampler"));
  return equal ? replicas_of(nb::getattr(batch_sampler, "sampler")) : 1;
}

inline Order order_in(nb::handle iterable, std::size_t most, Reading reading) {
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

inline BatchOrder batches_in(nb::handle iterable, std::size_t most, Reading reading) {
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

}  // namespace penstock::python
