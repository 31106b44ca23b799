#include "data/loader/batch_feed.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "data/batch/device_batch.h"
#include "data/collate/rule.h"
#include "data/dataset_impl.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// What of a copy nobody waits for long: a hundredth of a second, or two.
constexpr std::uint64_t kBrief = std::uint64_t{16} << 20;

/// A thread may work even where the options ask for none: the caller may look at its watch.
PrefetchOptions with_a_thread(const LoaderOptions& options) {
  PrefetchOptions out = PrefetchOptions::of(options);
  if (out.workers > 0) return out;
  out.workers = out.most_workers = out.ahead = 1;
  return out;
}

}  // namespace

BatchFeed::State::State(Dataset dataset, const LoaderOptions& options)
    : maker(std::move(dataset), options.collate, options.device, options.memory_budget, options.on_error),
      prefetcher(maker, with_a_thread(options)) {
  maker.raise_unsupported();
}

BatchFeed::BatchFeed(Dataset dataset, const LoaderOptions& options)
    : seed_(options.seed),
      may_be_brief_(options.num_workers == 0 && options.device.type == DeviceType::kCpu &&
                    dataset.impl().batch_functions().empty() && options.collate.rule().function() == nullptr),
      state_(std::make_unique<State>(std::move(dataset), options)),
      window_(static_cast<std::size_t>(state_->prefetcher.window())) {}

BatchFeed::~BatchFeed() { let_go(state_, state_->prefetcher); }

/// Whether samples in memory are so few that a thread, which leaves the caller free to answer signals, costs more than
/// it is worth.
bool BatchFeed::is_brief(std::span<const std::int64_t> indices) {
  if (!may_be_brief_ || indices.empty()) return false;
  const Dataset& dataset = state_->maker.dataset();
  const std::int64_t size = dataset.size();
  return std::all_of(indices.begin(), indices.end(), [&](std::int64_t index) {
    return index >= 0 && index < size && dataset.impl().read_bytes(index) <= kBrief / indices.size() &&
           dataset.impl().is_at_hand(index, pages_);
  });
}

void BatchFeed::push(std::vector<std::int64_t> indices) {
  const bool brief = is_brief(indices);
  add(std::move(indices), brief);
}

std::optional<Batch> BatchFeed::at_once(std::vector<std::int64_t> indices) {
  if (waiting_ != 0 || !is_brief(indices)) return std::nullopt;
  add(std::move(indices), true);
  return next_for(0);
}

void BatchFeed::add(std::vector<std::int64_t> indices, bool is_brief) {
  if (!state_->prefetcher.running()) {
    state_->prefetcher.start_empty({.seed = seed_});
    waiting_ = 0;
  }
  if (is_brief) {
    state_->prefetcher.push_left(std::move(indices));
  } else {
    state_->prefetcher.push(std::move(indices));
  }
  ++waiting_;
}

std::optional<Batch> BatchFeed::next_for(double seconds) {
  if (waiting_ == 0) throw Error(ErrorCode::kInvalidArgument, "no batch is asked for; push one first");
  const auto patience = std::chrono::duration_cast<Prefetcher::Clock::duration>(std::chrono::duration<double>(seconds));
  Prefetcher::Outcome outcome = state_->prefetcher.take(Prefetcher::Clock::now() + patience);
  if (const auto* nothing = std::get_if<Prefetcher::Nothing>(&outcome)) {
    if (*nothing == Prefetcher::Nothing::kTimedOut) return std::nullopt;
    throw Error(ErrorCode::kCancelled, "the loader was stopped");
  }
  --waiting_;
  if (const auto* error = std::get_if<Error>(&outcome)) throw *error;
  if (const auto* other = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*other);
  return deliver(std::get<Batch>(std::move(outcome)));
}

}  // namespace penstock::data
