// Cuts jobs into parts of the same size on all machines, and gives these to threads. A part is long enough that
// starting it costs nothing, and short enough that all processors end at about the same time.

#include "archive/inspect/parts.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/task_pool.h"

namespace penstock::archive {
namespace {

constexpr std::int64_t kPiecesInPart = 16;
constexpr std::int64_t kColdPieces = 4;
constexpr std::size_t kMostMemory = std::size_t{48} << 20;
// Each has memory of its own for what it reads, and there is little of it.
constexpr std::size_t kMostAwaited = 32;

bool is_stream(const Job& job) { return job.a->is_stream() || (job.b != nullptr && job.b->is_stream()); }
bool is_scattered(const Job& job) { return job.a->is_scattered() || (job.b != nullptr && job.b->is_scattered()); }
std::size_t at_once(const Job& job) {
  return std::min(std::max(job.a->costs().at_once, job.b == nullptr ? 0 : job.b->costs().at_once), kMostAwaited);
}
bool is_direct(const Job& job) { return job.a->is_direct() || (job.b != nullptr && job.b->is_direct()); }

}  // namespace

/// Which parts there are, without a list of them: a tensor may have very many.
class PartWalk {
 public:
  explicit PartWalk(std::span<const Job> jobs) : jobs_(jobs) {
    std::size_t awaited = 1;
    for (const Job& job : jobs) {
      const std::int64_t count = job.a->count();
      const std::int64_t in_part = kPiecesInPart * job.piece();
      const std::int64_t parts = count == 0 ? 0 : is_stream(job) ? 1 : (count - 1) / in_part + 1;
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + static_cast<std::size_t>(parts));
      awaited = std::max({awaited, is_direct(job) ? io::kDiskCosts.at_once : 1, at_once(job)});
    }
    threads_ = std::max(core::usable_cpus(), awaited);
  }

  std::size_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
  std::size_t threads() const noexcept { return threads_; }

  ElementPart operator[](std::size_t index) {
    const auto found = std::upper_bound(ends_.begin(), ends_.end(), index);
    ElementPart part;
    part.job = static_cast<std::size_t>(found - ends_.begin());
    part.walk_ = this;
    part.of_ = &jobs_[part.job];
    part.number = static_cast<std::int64_t>(index - (part.job == 0 ? 0 : ends_[part.job - 1]));
    const std::int64_t in_part = kPiecesInPart * part.of_->piece();
    part.first = part.number * in_part;
    const std::int64_t rest = part.of_->a->count() - part.first;
    part.count = is_stream(*part.of_) ? rest : std::min(rest, in_part);
    part.read_pieces_ = read_pieces(*part.of_);
    return part;
  }

  /// Memory that a thread gives back.
  std::unique_ptr<Elements::Scratch> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Elements::Scratch>();
    std::unique_ptr<Elements::Scratch> out = std::move(free_.back());
    free_.pop_back();
    return out;
  }
  void give(std::unique_ptr<Elements::Scratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::int64_t read_pieces(const Job& job) const {
    const std::size_t inputs = job.b == nullptr ? 1 : 2;
    const auto room = static_cast<std::int64_t>(kMostMemory / (threads_ * inputs * kPieceBytes));
    const bool is_long = is_scattered(job) || at_once(job) > 0;
    const std::int64_t wanted = is_long ? kPiecesInPart : is_direct(job) ? kColdPieces : 1;
    return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(room, 1));
  }

  std::span<const Job> jobs_;
  std::vector<std::size_t> ends_;
  std::size_t threads_ = 1;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Elements::Scratch>> free_;
};

void ElementPart::go_through(const See& see) const {
  std::unique_ptr<Elements::Scratch> a_scratch = walk_->take();
  std::unique_ptr<Elements::Scratch> b_scratch = walk_->take();
  Elements::Cursor a(*of_->a, *a_scratch);
  std::optional<Elements::Cursor> b;
  if (of_->b != nullptr) b.emplace(*of_->b, *b_scratch);
  const std::int64_t piece = of_->piece();
  const std::int64_t at_once = piece * read_pieces_;
  const std::size_t a_size = of_->a->dtype().itemsize();
  const std::size_t b_size = b ? of_->b->dtype().itemsize() : 0;
  for (std::int64_t at = first; at < first + count; at += at_once) {
    const std::int64_t length = std::min(at_once, first + count - at);
    const std::span<const std::byte> of_a = a.read(at, length);
    const std::span<const std::byte> of_b = b ? b->read(at, length) : std::span<const std::byte>();
    for (std::int64_t i = 0; i < length; i += piece) {
      const auto from = static_cast<std::size_t>(i);
      const auto elements = static_cast<std::size_t>(std::min(piece, length - i));
      see(at + i, of_a.subspan(from * a_size, elements * a_size), of_b.subspan(from * b_size, elements * b_size));
    }
  }
  walk_->give(std::move(a_scratch));
  walk_->give(std::move(b_scratch));
}

void for_each_part(std::span<const Job> jobs, const std::function<void(const ElementPart&)>& work,
                   const std::function<void(std::uint64_t bytes)>& seen) {
  core::parallel_for(jobs.size(), core::usable_cpus(), [&](std::size_t i) {
    jobs[i].a->prepare();
    if (jobs[i].b != nullptr) jobs[i].b->prepare();
  });
  PartWalk parts(jobs);
  core::parallel_for(parts.size(), parts.threads(), [&](std::size_t i) {
    const ElementPart part = parts[i];
    work(part);
    const Job& job = jobs[part.job];
    const std::size_t bytes = job.a->dtype().itemsize() + (job.b == nullptr ? 0 : job.b->dtype().itemsize());
    if (seen) seen(static_cast<std::uint64_t>(part.count) * bytes);
  });
  for (const Job& job : jobs) {
    job.a->finish();
    if (job.b != nullptr) job.b->finish();
  }
}

}  // namespace penstock::archive
