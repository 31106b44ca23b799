// Where a loader stands, as JSON that somebody kept: it is read or refused, what is read is written as it was, and a
// loader that goes on from it stands there and gives the batches that are left.

#include <string_view>

#include "penstock/loader.h"
#include "support/outcome.h"

namespace penstock::fuzz {
namespace {

constexpr std::int64_t kSamples = 10;

bool same(const LoaderPosition& a, const LoaderPosition& b) {
  return a.seed == b.seed && a.epoch == b.epoch && a.batch == b.batch && a.samples == b.samples &&
         a.batch_size == b.batch_size && a.num_replicas == b.num_replicas && a.order == b.order;
}

void check_loader(DataLoader loader, const LoaderPosition& position) {
  const auto done = attempt([&] {
    loader.seek(position);
    return true;
  });
  if (!done.ok()) return;
  const LoaderPosition reached = loader.position();
  require(reached.epoch == position.epoch && reached.seed == position.seed, "the loader stands in another epoch");
  // All ranks of then took as many batches as this one would have.
  require(reached.batch == position.batch * position.num_replicas, "the loader stands somewhere else");
  std::int64_t batches = reached.batch;
  while (const auto batch = loader.next()) {
    for (const std::int64_t index : batch->indices) require(index >= 0 && index < kSamples, "a sample outside");
    ++batches;
    require(batches <= loader.size(), "more batches than an epoch has");
  }
  require(batches == loader.size(), "batches of the epoch are missing");
}

void check(std::string_view text) {
  const auto read = attempt([&] { return LoaderPosition::from_json(text); });
  if (!read.ok()) return;
  const LoaderPosition& position = *read.value;
  require(position.batch >= 0 && position.samples >= 0 && position.num_replicas >= 1, "a count below its least");
  require(same(LoaderPosition::from_json(position.to_json()), position), "another position is written");
  const Dataset dataset = rows(Tensor::zeros({kSamples, 2}));
  check_loader(DataLoader(dataset, {.batch_size = 3, .num_workers = 0}), position);
  check_loader(DataLoader(dataset, {.batch_size = 3, .shuffle = true, .num_workers = 0}), position);
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  penstock::fuzz::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
