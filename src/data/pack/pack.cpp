// Writes the samples of a dataset into a few shards, each of which has all tensors of its samples as arrays. How many
// samples go into a shard is decided beforehand, from the mean size of some samples, so that a shard is one batch of a
// loader, which reads the next one meanwhile. The folder appears under its name only when all shards are complete.

#include "penstock/pack.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "data/pack/choose_place.h"
#include "data/pack/packing_sum.h"
#include "data/pack/sample_form.h"
#include "data/pack/shard.h"
#include "data/pack/shard_number.h"
#include "data/sample/value_samples.h"
#include "format/tar/sample_name.h"
#include "format/tar/writer.h"
#include "penstock/error.h"
#include "penstock/save.h"

namespace penstock {
namespace {

/// Of so many samples the mean size is taken.
constexpr std::int64_t kSampled = 32;
constexpr double kStopPeriod = 0.05;

std::uint64_t bytes_of(const Value& value) {
  if (value.is(Value::Kind::kTensor)) return value.as_tensor().nbytes();
  constexpr std::uint64_t kNumber = 8;
  const bool nested = value.is(Value::Kind::kDict) || value.is(Value::Kind::kList) || value.is(Value::Kind::kTuple);
  if (!nested) return kNumber;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    bytes += bytes_of(value.is(Value::Kind::kDict) ? value.item(i).second : value[i]);
  }
  return bytes;
}

/// A sample that has a name: its own, or its number, with zeros in front so that names are in order.
Value named(const Value& sample, std::int64_t number) {
  const bool has_name = sample.is(Value::Kind::kDict) && sample.contains(format::kSampleKey);
  if (has_name) return sample;
  const Value name = Value::string(core::format("{:08}", number));
  if (sample.is(Value::Kind::kDict)) return sample.with(format::kSampleKey, name);
  return Value{{std::string(format::kSampleKey), name}, {sample.is(Value::Kind::kTensor) ? "npy" : "json", sample}};
}

class CountingSink final : public io::ByteSink {
 public:
  void write(std::span<const std::byte> bytes) override { position_ += bytes.size(); }
  std::uint64_t position() const noexcept override { return position_; }

 private:
  std::uint64_t position_ = 0;
};

/// With headers and padding, which are most of a small sample.
std::uint64_t tar_bytes_of(const Value& sample) {
  CountingSink sink;
  format::TarWriter(sink).add(format::tar_sample(named(sample, 0), {}));
  return sink.position();
}

/// How the samples of a packing are shared out.
struct ShardPlan {
  std::int64_t samples = 0;  ///< in each shard but the last
  std::int64_t shards = 0;
  data::PackingSum sum = {};  ///< of all that is known of the packing beforehand
};

ShardPlan plan_of(const Dataset& dataset, const PackOptions& options) {
  ShardPlan plan;
  const std::int64_t count = std::min(dataset.size(), kSampled);
  std::uint64_t bytes = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Value sample = dataset.get(i * (dataset.size() / count));
    bytes += options.format == "tar" ? tar_bytes_of(sample) : bytes_of(sample);
    plan.sum.add(sample);
  }
  const std::uint64_t mean = std::max<std::uint64_t>(1, bytes / static_cast<std::uint64_t>(count));
  const auto most = static_cast<std::uint64_t>(dataset.size());
  plan.samples = static_cast<std::int64_t>(std::clamp<std::uint64_t>(options.shard_bytes / mean, 1, most));
  plan.shards = (dataset.size() + plan.samples - 1) / plan.samples;
  plan.sum.add_text(core::format("{} in {}", dataset.size(), plan.samples));
  return plan;
}

data::SampleForm form_of_first(const Dataset& dataset) {
  data::StructureInterner structures;
  return data::form_of(*data::layout_of_value(dataset.get(0), structures)->structure, dataset.describe(0));
}

std::optional<Batch> next_of(DataLoader& loader, const std::stop_token& stop) {
  while (true) {
    if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "packing was cancelled before its end");
    TimedBatch next = loader.next_for(kStopPeriod);
    if (!next.timed_out) return std::move(next.batch);
  }
}

/// The samples of shard after shard: stacked by the loader as long as that can be, and then kept apart.
class Batches {
 public:
  Batches(Dataset dataset, const PackOptions& options, std::int64_t samples)
      : dataset_(std::move(dataset)), options_(options), samples_(samples), loader_(make(collate::stack())) {}

  std::optional<Batch> next() {
    if (apart_) return taken();
    const LoaderPosition here = loader_->position();
    try {
      return taken();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kShapeMismatch) throw;
    }
    apart_ = true;
    loader_ = make(collate::ragged());
    loader_->seek(here);
    return taken();
  }

 private:
  std::optional<Batch> taken() { return next_of(*loader_, options_.stop); }

  std::unique_ptr<DataLoader> make(Collate collate) const {
    return std::make_unique<DataLoader>(dataset_, LoaderOptions{.batch_size = samples_,
                                                                .num_workers = options_.num_workers,
                                                                .collate = std::move(collate),
                                                                .prefetch_factor = 1,
                                                                .memory_budget = options_.shard_bytes,
                                                                .verify = options_.verify});
  }

  Dataset dataset_;
  const PackOptions& options_;
  std::int64_t samples_;
  bool apart_ = false;
  std::unique_ptr<DataLoader> loader_;
};

/// The bytes of the file. `first` is the first sample in it, for errors: nobody knows the name of a file that is gone.
std::uint64_t write(const data::Shard& shard, data::NewPlace& place, const data::ShardNumber& number,
                    const std::string& first, const std::stop_token& stop) {
  std::map<std::string, std::string> metadata = data::metadata_of(number);
  metadata.emplace(data::kSampleFormKey, data::to_json(shard.form));
  try {
    return place.save(shard.arrays, data::shard_name(number),
                      {.format = "safetensors", .metadata = std::move(metadata), .stop = stop});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported || !shard.arrays.find(error.tensor())) throw;
    throw Error(ErrorCode::kUnsupported,
                core::format("samples are packed in .safetensors, which has no type for {}: cast the tensor, or choose "
                             "what to pack with keys",
                             shard.arrays[error.tensor()].as_tensor().dtype().name()),
                {.path = first, .tensor = error.tensor()});
  }
}

/// Samples of one shard after the other, each as it is.
PackSummary pack_tar(const Dataset& dataset, std::string_view folder, const PackOptions& options) {
  const ShardPlan plan = plan_of(dataset, options);
  const std::unique_ptr<data::NewPlace> target = data::choose_place(std::string(folder));
  DataLoader loader(dataset, {.batch_size = plan.samples,
                              .num_workers = options.num_workers,
                              .collate = collate::samples(),
                              .prefetch_factor = 1,
                              .memory_budget = options.shard_bytes,
                              .verify = options.verify});
  PackSummary summary;
  while (const std::optional<Batch> batch = next_of(loader, options.stop)) {
    std::vector<Value> all;
    for (std::size_t i = 0; i < batch->value.size(); ++i) all.push_back(named(batch->value[i], batch->indices[i]));
    const std::string name = data::shard_name({summary.shards++, plan.shards}, ".tar");
    summary.bytes += target->save(Value::list(std::move(all)), name, {.format = "tar", .stop = options.stop});
    summary.samples += batch->size();
    if (options.progress) options.progress(summary.samples);
  }
  target->commit();
  return summary;
}

}  // namespace

PackSummary pack(const Dataset& dataset, TextView folder, const PackOptions& options) {
  if (dataset.size() == 0) throw Error(ErrorCode::kInvalidArgument, "the dataset has no samples to pack");
  if (options.format == "tar") return pack_tar(dataset, folder, options);
  if (options.format != "safetensors") {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found the format {}, expected safetensors or tar", core::quoted(options.format)));
  }
  ShardPlan plan = plan_of(dataset, options);
  const data::SampleForm form = form_of_first(dataset);
  plan.sum.add_text(data::to_json(form));
  const std::unique_ptr<data::NewPlace> target = data::choose_place(std::string(folder));
  Batches batches(dataset, options, plan.samples);
  PackSummary summary;
  data::PackingSum samples;
  while (const std::optional<Batch> batch = batches.next()) {
    const auto describe = [&](std::size_t i) { return dataset.describe(batch->indices[i]); };
    const data::Shard shard = data::make_shard(batch->value, form, describe);
    const std::string before = samples.text();
    samples.add(shard.arrays);
    const data::ShardNumber number{summary.shards++, plan.shards, plan.sum.text(), before, samples.text()};
    summary.bytes += write(shard, *target, number, describe(0), options.stop);
    summary.samples += batch->size();
    if (options.progress) options.progress(summary.samples);
  }
  target->commit();
  return summary;
}

}  // namespace penstock
