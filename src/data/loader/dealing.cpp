// Samples that are repeated to give all ranks as many come last in the shared order, so that their positions say which
// they are: sample i of rank r lies at i * ranks + r of that order, and is a repeated one from `total_` on. No worker
// needs to know; the mark is put on a batch when it is handed out.
#include "data/loader/dealing.h"

#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "data/sampler/rank_sources.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

[[noreturn]] void refuse(std::string message) { throw Error(ErrorCode::kInvalidArgument, std::move(message)); }

void check(const LoaderOptions& options) {
  const Ranks& ranks = *options.ranks;
  require_ranks(ranks);
  const std::int64_t dealt = options.batch_sampler ? options.batch_sampler->replicas()
                             : options.sampler     ? options.sampler->replicas()
                                                   : 1;
  if (dealt > 1) {
    refuse(
        core::format("the sampler deals its order out to {} ranks itself, and the loader to {}; give the loader the "
                     "order of all ranks, or leave its `ranks` out",
                     dealt, ranks.to_string()));
  }
  if (options.remainder == Remainder::kExact && options.drop_last) {
    refuse("drop_last leaves samples out, and the remainder \"exact\" none; leave one of them out");
  }
  if (ranks.size > 1 && options.on_error == OnError::kSkip) {
    refuse(
        "on_error \"skip\" may leave a batch out on one rank alone, and the others would wait for it; use \"replace\" "
        "or \"mask\" with several ranks");
  }
}

DistributedOptions distributed_options(const Ranks& ranks, Remainder remainder) {
  return {.rank = ranks.rank,
          .num_replicas = ranks.size,
          .remainder = remainder == Remainder::kExact ? Remainder::kPad : remainder};
}

/// With kDrop each rank gets at least one, where there is any.
void require_some(std::int64_t total, const Ranks& ranks, Remainder remainder, std::string_view unit,
                  std::string_view units) {
  if (remainder != Remainder::kDrop || total == 0 || total >= ranks.size) return;
  refuse(
      core::format("{} for {} ranks: with the remainder \"drop\" no rank would get any; use \"pad\" or \"exact\", or "
                   "fewer ranks",
                   core::counted(total, unit, units), ranks.size));
}

}  // namespace

Dealing::Dealing(const Dataset& dataset, const LoaderOptions& options)
    : ranks_(options.ranks.value_or(Ranks())),
      remainder_(options.remainder),
      is_dealt_(options.ranks.has_value()),
      batch_size_(options.batch_sampler ? 0 : options.batch_size) {
  if (!is_dealt_ && remainder_ != Remainder::kPad) {
    refuse("a remainder is what ranks cannot share evenly; give the loader its `ranks` too");
  }
  if (is_dealt_) check(options);
  if (options.batch_sampler) {
    batches_ = is_dealt_ ? dealt(*options.batch_sampler) : *options.batch_sampler;
    return;
  }
  const auto usual = [&] {
    return options.shuffle ? sampler::random(dataset.size()) : sampler::sequential(dataset.size());
  };
  Sampler order = options.sampler ? *options.sampler : usual();
  batches_ =
      sampler::batches(is_dealt_ ? dealt(std::move(order)) : std::move(order), options.batch_size, options.drop_last);
}

BatchSampler Dealing::dealt(const BatchSampler& all) {
  total_ = all.size();
  require_some(total_, ranks_, remainder_, "batch", "batches");
  return sampler::distributed(all, distributed_options(ranks_, remainder_));
}

Sampler Dealing::dealt(Sampler order) {
  total_ = order.size();
  require_some(total_, ranks_, remainder_, "sample", "samples");
  return sampler::distributed(std::move(order), distributed_options(ranks_, remainder_));
}

void Dealing::mark(Batch& batch, std::int64_t number) const {
  if (!is_dealt_ || remainder_ != Remainder::kExact || batch.indices.empty()) return;
  const std::int64_t first = batch_size_ == 0 ? number : number * batch_size_;
  const bool known = batch.valid.defined();  // OnError::kMask has its say too
  if (!known) batch.valid = Tensor::empty(Shape{batch.size()}, DType::boolean);
  std::int64_t position = first * ranks_.size + ranks_.rank;
  for (bool& valid : batch.valid.values<bool>()) {
    valid = (!known || valid) && position < total_;
    if (batch_size_ != 0) position += ranks_.size;
  }
}

}  // namespace penstock::data
