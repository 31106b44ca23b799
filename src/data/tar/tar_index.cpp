#include "data/tar/tar_index.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "core/stop_scope.h"
#include "core/task_pool.h"
#include "data/tar/kept_index.h"
#include "data/tar/shard_remarks.h"
#include "format/tar/feed.h"
#include "format/tar/header.h"
#include "format/tar/sample_name.h"
#include "format/tar/sample_walk.h"
#include "io/remote/remote.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

/// Shards behind URLs whose headers are read at once: each waits for answers most of the time.
constexpr std::size_t kRemoteThreads = 32;
/// Windows that are asked for ahead of the one whose headers are read: with all of them 256 MiB at most.
constexpr std::size_t kMostWindows = 4;

bool is_compressed(const ByteSource& source) {
  std::array<std::byte, 8> head{};
  const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), head.size()));
  source.read(0, std::span(head).first(known));
  return format::packing_of(std::span(head).first(known)) != format::Packing::kNone;
}

/// Whether no sample lies before the first of these or behind the last: an index may have been made of a shard before
/// another was appended to it, and its programs take two zero blocks for the end.
bool has_all(std::span<const std::uint64_t> begins, const penstock::Source& shard) {
  // What programs fill their last record with.
  constexpr std::uint64_t kMostPadding = std::uint64_t{64} << 10;
  if (begins.back() >= shard.size() || shard.size() - begins.back() > kMostPadding) return false;
  std::vector<std::byte> rest(static_cast<std::size_t>(shard.size() - begins.back()));
  shard.read(begins.back(), rest);
  if (!format::is_zero_block(rest)) return false;
  format::TarWindow bytes(shard);
  format::TarWalk walk(bytes, shard.name());
  while (walk.at() < begins.front()) {
    const auto member = walk.next();
    if (!member || member->begin >= begins.front()) return true;
    if (format::sample_name(*member)) return false;
  }
  return walk.at() == begins.front();
}

/// What Energon keeps beside a shard: the begin of each sample and the end of the last one. Nothing where there is
/// none, or where it is older than the shard or cannot be right.
std::optional<std::vector<std::uint64_t>> index_beside(const penstock::Source& shard, const std::string& path) {
  if (path.find('?') != path.npos) return std::nullopt;  // a URL whose query is for one object alone
  try {
    const penstock::Source file = open_source(path + ".idx");
    if (file.version() && shard.version() && file.version()->modified < shard.version()->modified) return std::nullopt;
    if (file.size() % sizeof(std::uint64_t) != 0 || file.size() < sizeof(std::uint64_t)) return std::nullopt;
    if (file.size() / sizeof(std::uint64_t) > shard.size() / format::kTarBlock + 1) return std::nullopt;
    std::vector<std::uint64_t> out(static_cast<std::size_t>(file.size() / sizeof(std::uint64_t)));
    file.read(0, std::as_writable_bytes(std::span(out)));
    if (!may_be_begins(out, shard.size()) || !has_all(out, shard)) return std::nullopt;
    return out;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;
    return std::nullopt;  // most shards have none
  }
}

/// An index of a shard without samples does not say what is there in their place.
bool has_samples(const std::optional<std::vector<std::uint64_t>>& begins) { return begins && begins->size() > 1; }

TarScan samples_of(const penstock::Source& source, const std::string& path, std::size_t ahead) {
  if (is_compressed(*source)) {
    throw Error(ErrorCode::kUnsupported,
                "the shard is compressed, so that no sample of it can be read alone; read it in order with "
                "stream(shards(...)), or unpack it",
                {.path = source.name()});
  }
  if (auto beside = index_beside(source, path); has_samples(beside))
    return {.begins = *std::move(beside), .is_told = true};
  return scan_samples(source, ahead);
}

}  // namespace

TarScan scan_samples(const penstock::Source& source, std::size_t ahead) {
  format::TarWindow bytes(source, ahead);
  format::TarSampleWalk walk(bytes, source.name());
  TarScan out;
  std::uint64_t end = 0;
  while (const auto sample = walk.next()) {
    if (core::StopScope::stop_requested()) throw Error(ErrorCode::kCancelled, "the search for samples was stopped");
    out.begins.push_back(sample->begin);
    end = sample->end;
  }
  out.begins.push_back(end);
  out.strays = walk.strays();
  out.has_end = walk.has_end();
  return out;
}

TarIndex::TarIndex(const ShardList& list, const TarIndexOptions& options) {
  for (const std::string& path : list.paths) {
    if (!is_pipe(path)) continue;
    throw Error(ErrorCode::kUnsupported,
                "a pipe comes from front to back alone, and has no index; read it in order with stream(shards(...))",
                {.path = path});
  }
  KeptIndex kept(options, list.paths);
  std::vector<std::string> versions = open_all(list);
  const bool waits =
      std::any_of(shards_.begin(), shards_.end(), [](const auto& shard) { return shard.file->reads_at_once(); });
  const std::size_t threads = waits ? kRemoteThreads : core::usable_cpus();
  // A server is to have as much to do where shards are few.
  const std::size_t ahead =
      waits ? std::min(kRemoteThreads / std::max<std::size_t>(shards_.size(), 1), kMostWindows) : 0;
  core::parallel_for(shards_.size(), std::min(threads, shards_.size()), [&](std::size_t i) {
    TarShard& shard = shards_[i];
    auto known = kept.find(i, versions[i], shard.bytes);
    TarScan found =
        has_samples(known) ? TarScan{.begins = *std::move(known)} : samples_of(shard.file->source(), shard.path, ahead);
    shard.begins = std::move(found.begins);
    shard.strays = std::move(found.strays);
    shard.has_end = found.has_end;
    if (found.is_told) shard.apart.reset(new std::atomic<bool>[shard.begins.size()]());
    // Both are looked into each time: each run is to be told of the first, and looks where the second is wrong.
    if (!shard.has_end || found.is_told) versions[i].clear();
    require_told(list, i, shard.samples());
  });
  kept.keep(shards_, versions);
  ShardRemarks remarks;
  for (TarShard& shard : shards_) {
    shard.first = size_;
    size_ += shard.samples();
    remarks.add(shard.path, shard.samples() != 0, shard.strays, shard.has_end);
  }
  remarks.require_samples();
  warnings_ = remarks.take_warnings();
}

/// Of each shard its version. Objects are asked for all at once; files are held open while there are descriptors for
/// it.
std::vector<std::string> TarIndex::open_all(const ShardList& list) {
  const DescriptorLimit limit;
  std::vector<std::string> versions;
  io::remote::open_each(list.paths, [&](const penstock::Source& source) {
    versions.push_back(KeptIndex::version_of(source));
    shards_.push_back({.path = list.paths[shards_.size()],
                       .file = std::make_shared<const HeldFile>(source, limit),
                       .bytes = source.size()});
  });
  return versions;
}

const TarShard& TarIndex::shard_of(std::int64_t index) const noexcept {
  const auto behind = std::upper_bound(shards_.begin(), shards_.end(), index,
                                       [](std::int64_t i, const TarShard& shard) { return i < shard.first; });
  return *(behind - 1);
}

}  // namespace penstock::data
