#include "archive/strided_read.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>

#include "core/stopwatch.h"
#include "core/task_pool.h"
#include "core/view.h"
#include "io/read/reader.h"
#include "ops/kernels.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

// Less than this for each thread is not worth starting one.
constexpr std::uint64_t kBytesPerThread = 2 * 1024 * 1024;
constexpr std::uint64_t kPartsPerThread = 256;
constexpr std::size_t kMaxThreads = 16;

/// Dimensions that have more than one index, narrowest stride first.
std::vector<std::size_t> by_stride(const StridedView& view) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < view.shape.rank(); ++d) {
    if (view.shape[d] > 1) dims.push_back(d);
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [&](std::size_t a, std::size_t b) { return view.strides[a] < view.strides[b]; });
  return dims;
}

}  // namespace

StridedPlan::StridedPlan(StridedView view) : view_(std::move(view)) {
  cut();
  for (const Cut& c : cuts_) count_ *= c.parts;
  Shape whole = view_.shape;
  for (const Cut& c : cuts_) whole[c.dim] = c.width;
  read_bytes_ = count_ * *core::view_span(whole, view_.strides, view_.itemsize);
}

void StridedPlan::cut() {
  std::uint64_t extent = view_.itemsize;
  bool skipping = false;
  for (const std::size_t dim : by_stride(view_)) {
    const auto size = static_cast<std::uint64_t>(view_.shape[dim]);
    const std::uint64_t step = static_cast<std::uint64_t>(view_.strides[dim]) * view_.itemsize;
    skipping = skipping || step - std::min(step, extent) > kMaxGap;
    if (!skipping && extent + (size - 1) * step <= kScratchBytes) {
      extent += (size - 1) * step;
      continue;
    }
    std::uint64_t width = 1;
    if (!skipping && extent <= kScratchBytes) width = (kScratchBytes - extent) / std::max<std::uint64_t>(step, 1) + 1;
    cuts_.push_back({dim, static_cast<std::int64_t>(width), (size - 1) / width + 1});
    skipping = true;
  }
  std::reverse(cuts_.begin(), cuts_.end());
}

StridedPlan::Part StridedPlan::part(std::uint64_t index) const {
  Part out;
  out.shape = view_.shape;
  for (std::size_t d = 0; d < out.shape.rank(); ++d) out.first.push_back(0);
  std::uint64_t element = 0;
  for (std::size_t i = cuts_.size(); i-- > 0;) {
    const Cut& cut = cuts_[i];
    const auto start = static_cast<std::int64_t>(index % cut.parts) * cut.width;
    index /= cut.parts;
    out.first[cut.dim] = start;
    out.shape[cut.dim] = std::min(cut.width, view_.shape[cut.dim] - start);
    element += static_cast<std::uint64_t>(start * view_.strides[cut.dim]);
  }
  out.offset = view_.offset + element * view_.itemsize;
  out.bytes = *core::view_span(out.shape, view_.strides, view_.itemsize);
  return out;
}

namespace {

/// One read, shared by its threads.
class StridedReader {
 public:
  StridedReader(const ByteSource& source, const StridedView& view, const Tensor& to, std::stop_token stop)
      : plan(view), source_(source), reader_(io::reader_for(source)), view_(view), to_(to), stop_(std::move(stop)) {}

  /// Takes parts until there are none.
  void work() {
    Report mine;
    Memory memory(to_);
    for (std::uint64_t i = next_++; i < plan.size(); i = next_++) {
      if (stop_.stop_requested()) {
        throw Error(ErrorCode::kCancelled, "the read was cancelled before it was complete", {source_.name()});
      }
      read_part(plan.part(i), memory, mine);
    }
    const std::lock_guard lock(mutex_);
    report_.read_bytes += mine.read_bytes;
    report_.read_seconds += mine.read_seconds;
    report_.decode_seconds += mine.decode_seconds;
  }

  const StridedPlan plan;
  const Report& report() const noexcept { return report_; }

 private:
  /// What one thread works on. Its handle on the target is its own, so that threads do not fight for one count of
  /// references.
  struct Memory {
    explicit Memory(const Tensor& to)
        : target(Buffer::wrap(to.buffer().data(), to.buffer().size(), std::make_shared<char>())) {}
    std::byte* scratch_of(std::uint64_t bytes) {
      if (scratch.size() < bytes) scratch = Buffer::allocate(static_cast<std::size_t>(bytes));
      return scratch.data();
    }

    Buffer target;
    Buffer scratch;
  };

  /// Where the part begins in the target's buffer.
  std::size_t place_of(const StridedPlan::Part& part) const {
    std::int64_t element = 0;
    for (std::size_t d = 0; d < part.first.rank(); ++d) element += part.first[d] * to_.strides()[d];
    return to_.byte_offset() + static_cast<std::size_t>(element) * view_.itemsize;
  }

  void read_part(const StridedPlan::Part& part, Memory& memory, Report& report) {
    core::Stopwatch watch;
    const bool straight = core::is_c_order(part.shape, to_.strides()) && core::is_c_order(part.shape, view_.strides);
    std::byte* to = straight ? memory.target.data() + place_of(part) : memory.scratch_of(part.bytes);
    const io::Scatter scatter{to, static_cast<std::size_t>(part.bytes)};
    reader_.read(source_, part.offset, std::span(&scatter, 1));
    report.read_bytes += part.bytes;
    report.read_seconds += watch.lap();
    if (straight) return;
    ops::copy(Tensor(memory.scratch, to_.dtype(), part.shape, view_.strides),
              Tensor(memory.target, to_.dtype(), part.shape, to_.strides(), place_of(part)));
    report.decode_seconds += watch.lap();
  }

  const ByteSource& source_;
  const io::Reader& reader_;
  const StridedView& view_;
  const Tensor& to_;
  std::stop_token stop_;
  std::atomic<std::uint64_t> next_ = 0;
  std::mutex mutex_;
  Report report_;
};

std::size_t threads_for(const StridedPlan& plan, std::size_t asked) {
  const auto parts = static_cast<std::size_t>(std::min<std::uint64_t>(plan.size(), kMaxThreads));
  if (asked != 0) return std::min(asked, parts);
  const std::uint64_t worthwhile = std::max(plan.read_bytes() / kBytesPerThread, plan.size() / kPartsPerThread);
  if (worthwhile <= 1 || parts == 1) return 1;
  return static_cast<std::size_t>(std::min<std::uint64_t>({worthwhile, parts, core::usable_cpus()}));
}

}  // namespace

void read_strided(const ByteSource& source, const StridedView& view, const Tensor& to,
                  const StridedReadOptions& options, Report& report) {
  StridedReader reader(source, view, to, options.stop);
  const std::size_t threads = threads_for(reader.plan, options.threads);
  core::parallel_for(threads, threads, [&](std::size_t) { reader.work(); });
  report.read_bytes += reader.report().read_bytes;
  report.read_seconds += reader.report().read_seconds;
  report.decode_seconds += reader.report().decode_seconds;
}

}  // namespace penstock::archive
