#include "data/loader/resumed_batch.h"

#include <string>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"

namespace penstock::data {
namespace {

using core::refuse;

std::string ranks_text(std::int64_t ranks) { return core::counted(static_cast<std::uint64_t>(ranks), "rank"); }

void require_dataset_of_size(const LoaderPosition& position, const LoaderPosition& own) {
  if (position.samples == own.samples) return;
  refuse(
      core::format("the position was taken in a dataset of {}, but this one has {}; go on with the dataset it was "
                   "taken from",
                   core::counted(static_cast<std::uint64_t>(position.samples), "sample"), own.samples));
}

void require_order(const LoaderPosition& position, const LoaderPosition& own) {
  if (position.order.empty() || position.batch == 0 || position.order == own.order) return;
  refuse(
      core::format("the position was taken in an order that is {}, but this loader's is {}; go on with the same "
                   "shuffle and sampler, or from the beginning of an epoch",
                   position.order, own.order));
}

void require_dataset(const LoaderPosition& position, const LoaderPosition& own) {
  if (position.batch == 0 || position.dataset.empty() || own.dataset.empty() || position.dataset == own.dataset) return;
  refuse(
      core::format("the position was taken in another dataset: {}, but this one is {}; go on with the dataset it was "
                   "taken from, or where only names have changed, clear the position's field 'dataset'",
                   position.dataset, own.dataset));
}

bool tells_other_size(const LoaderPosition& position, const LoaderPosition& own) {
  return position.batch_size != 0 && own.batch_size != 0 && position.batch_size != own.batch_size;
}

/// Whether both make batches of as many samples with all ranks together.
bool step_alike(const LoaderPosition& position, const LoaderPosition& own) {
  std::int64_t before = 0;
  std::int64_t now = 0;
  return !__builtin_mul_overflow(position.batch_size, position.num_replicas, &before) &&
         !__builtin_mul_overflow(own.batch_size, own.num_replicas, &now) && before == now;
}

void require_batch_size(const LoaderPosition& position, const LoaderPosition& own) {
  if (position.batch == 0 || !tells_other_size(position, own)) return;
  if (position.num_replicas == own.num_replicas) {
    refuse(
        core::format("the position was taken with batches of {}, but this loader makes batches of {}; go on with the "
                     "same batch_size, or from the beginning of an epoch",
                     position.batch_size, own.batch_size));
  }
  if (step_alike(position, own)) return;
  refuse(core::format(
      "the position was taken with batches of {} on each of {}, but this loader makes batches of {} on each "
      "of {}; go on with the same batch_size, or with one that gives as many samples on all ranks "
      "together, or from the beginning of an epoch",
      position.batch_size, ranks_text(position.num_replicas), own.batch_size, own.num_replicas));
}

/// How many batches this rank would have taken where as many samples were, by as many ranks as there are now.
std::int64_t own_batch(const LoaderPosition& position, const LoaderPosition& own, std::optional<std::int64_t> batches) {
  const std::int64_t ranks = own.num_replicas;
  if (position.num_replicas == ranks || position.batch == 0) return position.batch;
  if (position.num_replicas < 1) {
    refuse(core::format("the position was taken with {} ranks, expected 1 or more", position.num_replicas));
  }
  // Its epoch has ended, also where samples were left out.
  if (batches && position.batch == position.batches) return *batches;
  if (tells_other_size(position, own)) return position.batch;  // step_alike
  std::int64_t all = 0;
  const bool fits = !__builtin_mul_overflow(position.batch, position.num_replicas, &all);
  if (fits && all % ranks == 0) return all / ranks;
  refuse(
      core::format("the position was taken after batch {} of each of {}, and these batches do not divide among {}; go "
                   "on with {}, or from a position after more or fewer batches, or keep batch_size times ranks as it "
                   "was",
                   position.batch, ranks_text(position.num_replicas), ranks_text(ranks), position.num_replicas));
}

}  // namespace

std::int64_t resumed_batch(const LoaderPosition& position, const LoaderPosition& own,
                           std::optional<std::int64_t> batches) {
  require_dataset_of_size(position, own);
  require_batch_size(position, own);
  require_order(position, own);
  const std::int64_t batch = own_batch(position, own, batches);
  if (batch < 0 || (batches && batch > *batches)) {
    refuse(
        core::format("the position stands after batch {}, but an epoch has {}; go on with the same batch_size and "
                     "drop_last",
                     batch, batches.value_or(0)));
  }
  require_dataset(position, own);
  return batch;
}

}  // namespace penstock::data
