// A dataset of the samples in tar shards. Samples of a batch that lie one behind the other in a shard are read by one
// call, and others by one call each; behind URLs all of a batch is asked for at once, and in order large runs are asked
// for ahead (ordered_reads.h). What was read is then taken apart by its own headers (tar_parts.h). What cannot be read
// with others is read by itself, which tells whose fault it is. Where only some fields are wanted and they are the
// smaller part of a sample, its headers are read first, and then those members alone.
//
// The index is made when somebody asks how many samples there are, and not before: a stream of the same shards
// (tar_stream.cpp) needs none.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "core/format.h"
#include "core/shown_url.h"
#include "core/warning.h"
#include "data/dataset_impl.h"
#include "data/sample/blame.h"
#include "data/tar/neighbours.h"
#include "data/tar/ordered_reads.h"
#include "data/tar/tar_index.h"
#include "data/tar/tar_parts.h"
#include "data/tar/tar_stream.h"
#include "format/tar/header.h"
#include "io/remote/remote.h"
#include "penstock/shards.h"

namespace penstock {
namespace {

using data::Sample;
using data::TarPart;
using data::TarShard;
using data::Work;

/// Samples up to this size are read whole, and members with tensors up to it are taken apart in memory.
constexpr std::uint64_t kSmallLocal = std::uint64_t{256} << 10;

/// One sample of a batch.
struct ShardRead {
  const TarShard* shard = nullptr;
  std::size_t number = 0;  ///< in its shard
  std::uint64_t begin = 0;
  std::uint64_t end = 0;            ///< no further than the file
  std::span<std::byte> bytes = {};  ///< of all of it, where it is read whole
  bool is_whole = false;

  std::uint64_t size() const noexcept { return end - begin; }
  /// Whether it is asked for together with the others of the batch.
  bool is_at_once() const { return shard->file->reads_at_once(); }
};

/// Members that are read one by one; of large ones with tensors nothing is read here.
class SeparateContents final : public data::TarAssembler::Contents {
 public:
  SeparateContents(const TarShard& shard, bool raw, const Work& work) noexcept
      : shard_(shard), raw_(raw), work_(work) {}
  std::span<const std::byte> content(const TarPart& part) override {
    const bool has_tensors = !raw_ && format::field_kind(part.field) == format::FieldKind::kTensors;
    if (has_tensors && part.member.size > kSmallLocal) return {};
    const auto bytes = static_cast<std::size_t>(part.member.size);
    const std::span<std::byte> memory(work_.scratch.arena.allocate(bytes), bytes);
    shard_.file->read(part.member.data, memory);
    work_.figures.stats.read_bytes += bytes;
    return memory;
  }

 private:
  const TarShard& shard_;
  bool raw_;
  const Work& work_;
};

/// How much of the last sample was wanted: what a thread remembers.
struct Share final : data::Scratch::State {
  bool is_small = true;  ///< less than half
};

class TarSamples final : public detail::DatasetImpl {
 public:
  TarSamples(data::ShardList list, const ShardsOptions& options)
      : list_(std::move(list)),
        fields_{.keys = options.keys, .raw = options.raw},
        kept_{.is_kept = options.index, .path = options.index_path},
        warn_(options.warn) {}

  std::int64_t size() const override { return index().size(); }
  bool is_counted() const noexcept override { return known_.load(std::memory_order_acquire) != nullptr; }
  std::string describe(std::int64_t number) const override {
    const TarShard& shard = index().shard_of(number);
    return core::format("{}[{}]", core::shown_path(shard.path), number - shard.first);
  }
  std::uint64_t read_bytes(std::int64_t number) const override { return wanted(number).size(); }
  std::function<SampleStream()> in_order() const override {
    return [list = list_, fields = fields_, warn = warn_] { return data::tar_stream(list, fields, warn); };
  }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    const std::span<ShardRead> samples = work.scratch.arena.array<ShardRead>(indices.size());
    auto& share = work.scratch.state<Share>(this);
    const bool reads_whole = fields_.keys.empty() || !share.is_small;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      samples[i] = wanted(indices[i]);
      // Behind a URL a second request takes longer than all bytes of one.
      const std::uint64_t small = samples[i].is_at_once() ? samples[i].shard->file->costs().piece : kSmallLocal;
      const bool is_cheap = samples[i].is_at_once() || reads_whole;
      samples[i].is_whole =
          is_cheap && samples[i].size() <= small && work.scratch.arena.used() < work.call.whole_file_bytes;
      if (!samples[i].is_whole) continue;
      const auto bytes = static_cast<std::size_t>(samples[i].size());
      // Without gaps, so that neighbours in the shard are neighbours here.
      samples[i].bytes = {work.scratch.arena.allocate(bytes, format::kTarBlock), bytes};
    }
    if (!read_in_order(indices, samples, work)) read_remote(samples, work);
    read_local(indices, samples, work);
    const data::TarNeighbours neighbours = neighbours_of(samples);
    auto& assembler = work.scratch.state<data::TarAssembler>(this);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      work.call.check_cancelled();
      try {
        out[i] = assemble(samples[i], neighbours, assembler, share, work);
        work.figures.clock.lap(data::Stage::kDecode, indices[i]);
      } catch (const Error& error) {
        data::fail(
            out[i], i,
            samples[i].shard->file->error_of_change(error).within({.path = core::shown_path(samples[i].shard->path)}),
            work.call, work.scratch);
      }
    }
  }

 private:
  const data::TarIndex& index() const {
    if (const auto* const known = known_.load(std::memory_order_acquire)) return *known;
    // Behind the lock, because the program's function may wait for what a thread has that waits for the lock.
    if (make_index()) {
      for (const std::string& text : index_->warnings()) core::tell_warning(warn_, text);
    }
    return *index_;
  }

  /// False where another thread has made it.
  bool make_index() const {
    const std::scoped_lock lock(mutex_);
    if (index_) return false;
    index_ = std::make_unique<const data::TarIndex>(list_, kept_);
    ordered_ = std::make_unique<data::OrderedReads>(index_->shards());
    known_.store(index_.get(), std::memory_order_release);
    return true;
  }

  ShardRead wanted(std::int64_t number) const {
    const TarShard& shard = index().shard_of(number);
    const auto i = static_cast<std::size_t>(number - shard.first);
    return {.shard = &shard, .number = i, .begin = shard.begins[i], .end = std::min(shard.begins[i + 1], shard.bytes)};
  }

  /// Whether all of these lie behind URLs, follow samples that were read in order, and were read as large runs.
  bool read_in_order(std::span<const std::int64_t> indices, std::span<ShardRead> samples, const Work& work) const {
    const TarShard* const shards = index().shards().data();
    std::vector<data::OrderedReads::Wanted> wanted;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const ShardRead& sample = samples[i];
      const bool follows = i == 0 || indices[i] == indices[i - 1] + 1;
      if (!follows || !sample.is_whole || !sample.is_at_once()) return false;
      wanted.push_back({static_cast<std::size_t>(sample.shard - shards), sample.begin, sample.end, sample.bytes});
      bytes += sample.size();
    }
    if (wanted.empty()) return true;
    try {
      if (!ordered_->read(wanted)) return false;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) throw;
      return false;  // each is read by itself, which tells whose fault it is
    }
    work.figures.stats.read_bytes += bytes;
    work.figures.clock.lap(data::Stage::kRead);
    return true;
  }

  /// Everything behind URLs, by requests that are all in flight at once. Where they fail, each is tried by itself
  /// below, which tells whose fault it is.
  static void read_remote(std::span<ShardRead> samples, const Work& work) {
    std::vector<io::SourceRuns> reads;
    for (ShardRead& sample : samples) {
      if (!sample.is_whole || !sample.is_at_once()) continue;
      const penstock::Source source = sample.shard->file->source();
      auto same = std::find_if(reads.begin(), reads.end(), [&](const auto& read) { return read.source == source; });
      if (same == reads.end()) same = reads.insert(reads.end(), {source});
      same->runs.push_back({sample.begin, sample.bytes});
    }
    if (reads.empty()) return;
    try {
      io::read_at_once(reads);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) throw;
      for (ShardRead& sample : samples) sample.is_whole = sample.is_whole && !sample.is_at_once();
    }
    for (const auto& read : reads) {
      for (const io::SourceRun& run : read.runs) work.figures.stats.read_bytes += run.into.size();
    }
    work.figures.clock.lap(data::Stage::kRead);
  }

  /// How many samples from `first` on lie one behind the other, in the shard and in memory.
  static std::size_t run_at(std::span<const ShardRead> samples, std::size_t first) {
    std::size_t count = 1;
    std::uint64_t bytes = samples[first].size();
    const std::uint64_t most = samples[first].shard->file->costs().piece;
    while (first + count < samples.size()) {
      const ShardRead& last = samples[first + count - 1];
      const ShardRead& next = samples[first + count];
      const bool goes_on = next.is_whole && next.shard == last.shard && next.begin == last.end &&
                           next.bytes.data() == last.bytes.data() + last.bytes.size() && bytes + next.size() <= most;
      if (!goes_on) break;
      bytes += next.size();
      ++count;
    }
    return count;
  }

  /// The same of shards of this machine, run by run.
  static void read_local(std::span<const std::int64_t> indices, std::span<ShardRead> samples, const Work& work) {
    for (std::size_t i = 0; i < samples.size();) {
      if (!samples[i].is_whole || samples[i].is_at_once()) {
        ++i;
        continue;
      }
      work.call.check_cancelled();
      const std::size_t count = run_at(samples, i);
      const std::span<ShardRead> run = samples.subspan(i, count);
      if (!try_read(run, work)) {
        for (ShardRead& sample : run) sample.is_whole = false;
      }
      work.figures.clock.lap(data::Stage::kRead, indices[i]);
      i += count;
    }
  }
  static bool try_read(std::span<const ShardRead> run, const Work& work) {
    const std::uint64_t bytes = run.back().end - run.front().begin;
    const std::span<std::byte> into(run.front().bytes.data(), static_cast<std::size_t>(bytes));
    try {
      run.front().shard->file->read(run.front().begin, into);
      if (run.front().shard->file->is_held()) run.front().shard->file->require_unchanged();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) throw;
      return false;
    }
    work.figures.stats.read_bytes += bytes;
    return true;
  }

  static data::TarNeighbours neighbours_of(std::span<const ShardRead> samples) {
    data::TarNeighbours out;
    bool is_told = false;
    for (const ShardRead& sample : samples) {
      if (!sample.shard->apart) continue;
      is_told = true;
      if (sample.is_whole) out.know(*sample.shard, sample.number, sample.bytes);
      out.want(*sample.shard, sample.number);
    }
    if (is_told) out.read();
    return out;
  }

  /// The members of a sample, compared with what an index beside the shard says of it.
  static data::TarSampleParts parts_of(const ShardRead& sample, format::TarBytes& bytes,
                                       const data::TarNeighbours& neighbours) {
    const TarShard& shard = *sample.shard;
    const std::string path = core::shown_path(shard.path);
    const auto parts = [&] { return data::parts_in(bytes, path, sample.begin, sample.end); };
    if (!shard.apart) return parts();
    data::TarSampleParts out;
    try {
      out = parts();
    } catch (const Error& error) {
      if (data::is_of_headers(error) && error.tensor().empty())
        data::throw_not_of_index(path, error.offset().value_or(sample.begin));
      throw;
    }
    neighbours.require_apart(shard, sample.number, out.key, out.parts.back().member.end);
    return out;
  }

  Sample assemble(const ShardRead& sample, const data::TarNeighbours& neighbours, data::TarAssembler& assembler,
                  Share& share, const Work& work) const {
    const TarShard& shard = *sample.shard;
    if (sample.is_whole) {
      format::TarMemory bytes(sample.bytes, sample.begin);
      const data::TarSampleParts parts = parts_of(sample, bytes, neighbours);
      note(parts, sample, share);
      data::WholeTarContents contents(sample.bytes, sample.begin);
      return assembler.sample(parts, shard, fields_, contents, work);
    }
    format::TarWindow bytes(shard.file->source());
    const data::TarSampleParts parts = parts_of(sample, bytes, neighbours);
    work.figures.stats.read_bytes += bytes.read();
    note(parts, sample, share);
    SeparateContents contents(shard, fields_.raw, work);
    const Sample out = assembler.sample(parts, shard, fields_, contents, work);
    shard.file->require_unchanged();
    return out;
  }

  void note(const data::TarSampleParts& parts, const ShardRead& sample, Share& share) const {
    if (fields_.keys.empty()) return;
    std::uint64_t bytes = 0;
    for (const TarPart& part : parts.parts) {
      if (std::find(fields_.keys.begin(), fields_.keys.end(), part.field) != fields_.keys.end())
        bytes += part.member.size;
    }
    share.is_small = bytes < sample.size() / 2;
  }

  data::ShardList list_;
  data::TarFields fields_;
  data::TarIndexOptions kept_;
  std::function<void(const std::string&)> warn_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const data::TarIndex> index_;
  mutable std::unique_ptr<data::OrderedReads> ordered_;
  mutable std::atomic<const data::TarIndex*> known_{nullptr};
};

}  // namespace

Dataset shards(const std::vector<std::string>& shards, const ShardsOptions& options) {
  return Dataset(std::make_shared<TarSamples>(data::list_shards(shards), options));
}

}  // namespace penstock
