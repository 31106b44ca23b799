#pragma once

// The one way through tensors that statistics, differences and hashes share: pieces that fit in a cache, parts that are
// cut alike on every machine, results in their order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "archive/inspect/elements.h"

namespace penstock::archive {

/// Bytes of a piece: two of them fit the second-level cache of a processor.
inline constexpr std::size_t kPieceBytes = 256 * 1024;

/// Elements of a piece: as many whole ones as fit, at least one.
constexpr std::int64_t piece_elements(std::size_t itemsize) noexcept {
  const std::size_t fit = itemsize == 0 ? kPieceBytes : kPieceBytes / itemsize;
  return fit == 0 ? 1 : static_cast<std::int64_t>(fit);
}

/// A tensor, or two with as many elements, that are gone through together.
struct Job {
  const Elements* a = nullptr;
  const Elements* b = nullptr;  ///< may be null

  /// Elements of each piece but the last, whichever thread sees it.
  std::int64_t piece() const noexcept {
    return piece_elements(b == nullptr ? a->dtype().itemsize()
                                       : std::max(a->dtype().itemsize(), b->dtype().itemsize()));
  }
};

class PartWalk;

/// A run of pieces of a job, which one thread goes through. Parts are cut in the same way on all machines.
class ElementPart {
 public:
  /// `a` and `b` hold the elements from number `first` on; `b` is empty for one tensor.
  using See = std::function<void(std::int64_t first, std::span<const std::byte> a, std::span<const std::byte> b)>;

  std::size_t job = 0;
  std::int64_t number = 0;  ///< among the parts of its job
  std::int64_t first = 0;
  std::int64_t count = 0;

  /// Calls `see` for each piece in order.
  void go_through(const See& see) const;

 private:
  friend class PartWalk;
  PartWalk* walk_ = nullptr;
  const Job* of_ = nullptr;
  std::int64_t read_pieces_ = 1;  ///< read at once
};

/// Runs `work` for each part of all jobs, on all processors (more threads where files come from the disk). Jobs without
/// elements have no parts. `seen` is told bytes that were gone through, from any thread. The memory of all threads
/// together stays below 64 MiB, but for deflated tensors whose elements lie in another order than C. The first
/// exception ends it.
void for_each_part(std::span<const Job> jobs, const std::function<void(const ElementPart&)>& work,
                   const std::function<void(std::uint64_t bytes)>& seen = {});

/// Puts the results of a job's parts together in their order, so that sums do not depend on threads. Thread-safe.
template <class Result>
class InOrder {
 public:
  explicit InOrder(Result begin) : all_(std::move(begin)) {}

  void add(std::int64_t number, Result part) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(number, std::move(part));
    while (!waiting_.empty() && waiting_.begin()->first == next_) {
      all_.merge(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      ++next_;
    }
  }
  /// Once all parts have come.
  const Result& all() const noexcept { return all_; }

 private:
  std::mutex mutex_;
  Result all_;
  std::int64_t next_ = 0;
  std::map<std::int64_t, Result> waiting_;
};

}  // namespace penstock::archive
