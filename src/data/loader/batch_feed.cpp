#include "data/loader/batch_feed.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "data/batch/device_batch.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// A thread works even where the options ask for none: the caller may look at its watch.
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
      state_(std::make_unique<State>(std::move(dataset), options)),
      window_(static_cast<std::size_t>(state_->prefetcher.window())) {}

BatchFeed::~BatchFeed() {
  Prefetcher& prefetcher = state_->prefetcher;
  let_go(std::move(state_), prefetcher);
}

void BatchFeed::push(std::vector<std::int64_t> indices) {
  if (!state_->prefetcher.running()) {
    state_->prefetcher.start_empty({.seed = seed_});
    waiting_ = 0;
  }
  state_->prefetcher.push(std::move(indices));
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
