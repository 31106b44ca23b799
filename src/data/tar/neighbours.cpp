#include "data/tar/neighbours.h"

#include <algorithm>
#include <optional>

#include "core/shown_url.h"
#include "data/tar/tar_parts.h"
#include "format/tar/bytes.h"
#include "io/read/reader.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

/// A header with a long name before it.
constexpr std::uint64_t kHead = 2048;
/// A sample up to this size is read whole for its last header.
constexpr std::uint64_t kMostWhole = std::uint64_t{1} << 20;

/// The samples on the other side of those of its begins that nobody has looked at.
std::vector<std::size_t> beside(const TarShard& shard, std::size_t sample) {
  std::vector<std::size_t> out;
  if (sample > 0 && !shard.apart[sample].load(std::memory_order_relaxed)) out.push_back(sample - 1);
  if (sample + 2 < shard.begins.size() && !shard.apart[sample + 1].load(std::memory_order_relaxed))
    out.push_back(sample + 1);
  return out;
}

/// How much of a sample has the key of that edge; 0: its headers are walked over one by one.
std::uint64_t bytes_for(const TarShard& shard, std::size_t sample, Edge edge) {
  const std::uint64_t bytes = std::min(shard.begins[sample + 1], shard.bytes) - shard.begins[sample];
  if (edge == Edge::kFirst) return std::min(bytes, kHead);
  return bytes <= kMostWhole ? bytes : 0;
}

/// Whether another sample than that of this key lies at that edge of a sample, of which `known` are the first bytes.
/// Not where no whole sample lies there, or no header: a number on one of its sides is wrong then, or the shard is
/// damaged, and nobody can tell. The errors of reading it.
bool is_another(const TarShard& shard, std::size_t sample, std::span<const std::byte> known, Edge edge,
                const std::string& key) {
  const std::string path = core::shown_path(shard.path);
  const auto found = [&](format::TarBytes& bytes) -> std::optional<std::string> {
    try {
      return edge_key(bytes, path, shard.begins[sample], shard.begins[sample + 1], edge);
    } catch (const Error& error) {
      if (!is_of_headers(error)) throw;
      return std::nullopt;
    }
  };
  if (!known.empty() && known.size() >= bytes_for(shard, sample, edge)) {
    format::TarMemory memory(known, shard.begins[sample]);
    if (const auto there = found(memory)) return *there != key;
  }
  format::TarWindow window(shard.file->source());
  const auto there = found(window);
  return there && *there != key;
}

}  // namespace

void TarNeighbours::know(const TarShard& shard, std::size_t sample, std::span<const std::byte> bytes) {
  known_.insert_or_assign({&shard, sample}, bytes);
}

void TarNeighbours::want(const TarShard& shard, std::size_t sample) {
  for (const std::size_t other : beside(shard, sample)) {
    std::uint64_t& bytes = wanted_[{&shard, other}];
    bytes = std::max(bytes, bytes_for(shard, other, other < sample ? Edge::kLast : Edge::kFirst));
  }
}

void TarNeighbours::read() {
  std::vector<io::SourceRuns> reads;
  const TarShard* last = nullptr;
  for (const auto& [place, bytes] : wanted_) {  // shard by shard
    std::span<const std::byte>& known = known_[place];
    if (known.size() >= bytes) continue;
    const auto& [shard, sample] = place;
    if (std::exchange(last, shard) != shard) reads.push_back({shard->file->source()});
    known = memory_.emplace_back(static_cast<std::size_t>(bytes));
    reads.back().runs.push_back({shard->begins[sample], memory_.back()});
  }
  try {
    io::read_at_once(reads);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;  // else each is read by itself
  }
}

void TarNeighbours::require_apart(const TarShard& shard, std::size_t sample, const std::string& key,
                                  std::uint64_t end) const {
  const std::uint64_t next = shard.begins[sample + 1];
  if (end > next && next < shard.bytes) throw_not_of_index(core::shown_path(shard.path), next);
  for (const std::size_t other : beside(shard, sample)) {
    const std::size_t between = std::max(sample, other);
    const Edge edge = other < sample ? Edge::kLast : Edge::kFirst;
    if (!is_another(shard, other, known_.at({&shard, other}), edge, key))
      throw_not_of_index(core::shown_path(shard.path), shard.begins[between]);
    shard.apart[between].store(true, std::memory_order_relaxed);
  }
}

}  // namespace penstock::data
