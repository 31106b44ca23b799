// Each range of a plan takes one of three routes to host memory:
//
//   cold: not in the page cache      a direct read (O_DIRECT), which makes no copy and leaves the cache alone
//   cached, large                    a copy out of a mapping, where that is the faster one (cached_copies.h)
//   all others, and all small plans  a read through the page cache
//
// Whether a range is cold is sampled (residency.h) once, when the plan is made, so that a file that is half in the
// cache is read by two routes at once. Where nothing can be asked, a range counts as cached.

#include "io/move/routes.h"

#include <algorithm>

#include "core/format.h"
#include "io/read/residency.h"

namespace penstock::io {
namespace {

// Below these sizes a read costs less than asking whether the pages are cached.
constexpr std::uint64_t kMinPlan = std::uint64_t{4} << 20;
constexpr std::uint64_t kMinRange = 256 * 1024;
// With a larger share than this in the cache, fetching the rest through the cache is faster than all of it past it.
constexpr double kMaxCached = 0.25;
// Copies out of a mapping bypass the processor's caches. A smaller result might have stayed in them.
constexpr std::uint64_t kMinMapped = std::uint64_t{32} << 20;
// Each target is copied by itself, under a guard that costs a system call.
constexpr std::uint64_t kMinMappedTarget = 256 * 1024;

}  // namespace

Routes::Routes(const Plan& plan, std::span<const Source> sources, std::optional<bool> direct,
               std::optional<bool> mapped)
    : asked_(direct), read_bytes_(plan.read_bytes) {
  if (!direct.value_or(false) && !mapped.value_or(false) && plan.read_bytes < kMinPlan) return;
  routes_.resize(plan.ranges.size());
  files_.resize(sources.size());
  tried_.resize(sources.size());
  look(plan, sources);
  if (direct.value_or(true)) open(plan, sources);
  if (mapped.value_or(plan.read_bytes >= kMinMapped)) allow_mapping(plan, sources, mapped.has_value());
}

void Routes::look(const Plan& plan, std::span<const Source> sources) {
  for (std::size_t i = 0; i < plan.ranges.size(); ++i) {
    const ReadRange& range = plan.ranges[i];
    if (range.length < kMinRange) continue;
    const std::optional<double> cached = cached_share(*sources[range.source], range.offset, range.length);
    routes_[i].cold = cached.value_or(1) <= kMaxCached;  // unknown counts as cached: that read is right for both
    if (routes_[i].cold) cold_bytes_ += range.length;
  }
}

void Routes::open(const Plan& plan, std::span<const Source> sources) {
  for (std::size_t i = 0; i < plan.ranges.size(); ++i) {
    if (!routes_[i].cold && !asked_) continue;  // asked for, direct reads are for cached ranges too
    routes_[i].file = file_of(plan.ranges[i].source, sources);
    if (routes_[i].file != nullptr) direct_bytes_ += plan.ranges[i].length;
  }
}

void Routes::allow_mapping(const Plan& plan, std::span<const Source> sources, bool asked) {
  for (std::size_t i = 0; i < plan.ranges.size(); ++i) {
    const ReadRange& range = plan.ranges[i];
    const bool suits = !routes_[i].cold && range.length >= kMinMappedTarget * range.target_count;
    const bool can = routes_[i].file == nullptr && sources[range.source].descriptor() >= 0;
    routes_[i].mappable = can && (asked || suits);
  }
}

DirectFile* Routes::file_of(std::uint32_t source, std::span<const Source> sources) {
  // Once for each file: a file system that refuses direct reads refuses them for every range.
  if (!tried_[source]) {
    tried_[source] = true;
    std::string why_not;
    files_[source] = DirectFile::open(*sources[source], why_not);
    if (!files_[source] && why_not_.empty()) why_not_ = std::move(why_not);
  }
  return files_[source].get();
}

std::string Routes::why() const {
  if (routes_.empty()) return {};
  std::string not_direct = why_not_;
  for (const auto& file : files_) {
    if (file && not_direct.empty()) not_direct = file->refusal();
  }
  const auto share = [this](std::uint64_t bytes) {
    return read_bytes_ == 0 ? 0 : 100 * static_cast<double>(bytes) / static_cast<double>(read_bytes_);
  };
  std::string text = core::format(": {:.0f}% was not cached", share(cold_bytes_));
  if (!not_direct.empty()) return text + core::format("; through the page cache, because {}", not_direct);
  if (asked_) return text + (*asked_ ? "; past the page cache, as asked" : "; through the page cache, as asked");
  if (direct_bytes_ > 0 && direct_bytes_ < read_bytes_)
    text += core::format(", {:.0f}% read past the page cache", share(direct_bytes_));
  return text;
}

}  // namespace penstock::io
