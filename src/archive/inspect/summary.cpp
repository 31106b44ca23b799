#include "archive/inspect/summary.h"

#include <deque>

#include "archive/inspect/elements.h"
#include "archive/inspect/parts.h"

namespace penstock::archive {

std::vector<Statistics> summarise(const Archive& archive, const std::function<void(std::uint64_t bytes)>& seen,
                                  const std::function<bool(const TensorEntry&)>& wanted) {
  const ElementFiles files(archive);
  std::deque<Elements> elements;
  std::deque<InOrder<Statistics>> results;
  std::vector<Job> jobs;
  std::vector<std::size_t> job_of;
  for (std::size_t i = 0; i < archive.entries().size(); ++i) {
    const TensorEntry& entry = archive.entries()[i];
    results.emplace_back(Statistics(entry.dtype));
    if (!entry.dtype.is_numeric() || entry.pickled || (wanted && !wanted(entry))) continue;
    jobs.push_back({&elements.emplace_back(files, i, ElementOrder::kStored)});
    job_of.push_back(i);
  }
  for_each_part(
      jobs,
      [&](const ElementPart& part) {
        Statistics own(jobs[part.job].a->dtype());
        part.go_through([&](std::int64_t, std::span<const std::byte> piece, auto) { own.add(piece); });
        results[job_of[part.job]].add(part.number, std::move(own));
      },
      seen);
  files.require_unchanged();
  std::vector<Statistics> out;
  for (const auto& result : results) out.push_back(result.all());
  return out;
}

}  // namespace penstock::archive
