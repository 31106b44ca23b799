#include "io/read/joined_runs.h"

#include <algorithm>

#include "io/source/source.h"

namespace penstock::io {

std::vector<JoinedRun> joined_runs(const ByteSource& source, std::span<const SourceRun> runs, const ReadCosts& costs,
                                   std::uint64_t most) {
  std::vector<SourceRun> sorted(runs.begin(), runs.end());
  const auto before = [](const SourceRun& a, const SourceRun& b) { return a.offset < b.offset; };
  std::stable_sort(sorted.begin(), sorted.end(), before);
  std::vector<JoinedRun> out;
  for (const SourceRun& run : sorted) {
    require_inside(source, run.offset, run.into.size());
    const auto joins = [&] {
      if (out.empty()) return false;
      const JoinedRun& last = out.back();
      const std::uint64_t end = last.offset + last.bytes;
      return run.offset >= end && run.offset - end <= costs.gap_behind(last.bytes) && last.bytes < most &&
             run.offset - last.offset <= most && run.into.size() <= most - (run.offset - last.offset);
    };
    if (!joins()) out.push_back({.offset = run.offset});
    JoinedRun& into = out.back();
    const std::uint64_t gap = run.offset - into.offset - into.bytes;
    if (gap > 0) into.parts.push_back({nullptr, static_cast<std::size_t>(gap)});
    into.parts.push_back({run.into.data(), run.into.size()});
    into.bytes += gap + run.into.size();
  }
  return out;
}

}  // namespace penstock::io
