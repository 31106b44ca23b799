// A part of the plan is a box of the slice. Where its elements lie one behind the other, in the file and in memory, one
// read brings them to their place. Otherwise one read brings the run from its first element to its last into the
// thread's scratch, and the elements are copied from there to their places.

#include "io/move/strided_read.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "core/stopwatch.h"
#include "core/view.h"
#include "io/move/work_queue.h"
#include "io/read/reader.h"
#include "io/read/threads.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

class StridedReader {
 public:
  StridedReader(const ByteSource& source, const StridedView& view, const ReadCosts& costs, const Tensor& to,
                CopyElements copy)
      : plan(view, costs), source_(source), reader_(reader_for(source)), view_(view), to_(to), copy_(copy) {}

  /// What one thread does.
  void work(Worker& worker) const {
    Memory memory(to_);
    while (const std::optional<WorkItem> item = worker.next()) {
      const StridedPlan::ViewPart part = plan.part(item->index);
      read_part(part, memory, worker.spent);
      if (worker.has_depth()) worker.arrived(part.bytes);
    }
  }

  const StridedPlan plan;

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
  std::size_t place_of(const StridedPlan::ViewPart& part) const {
    std::int64_t element = 0;
    for (std::size_t d = 0; d < part.first.rank(); ++d) element += part.first[d] * to_.strides()[d];
    return to_.byte_offset() + static_cast<std::size_t>(element) * view_.itemsize;
  }

  void read_part(const StridedPlan::ViewPart& part, Memory& memory, Spent& spent) const {
    core::Stopwatch watch;
    const bool straight = core::is_c_order(part.shape, to_.strides()) && core::is_c_order(part.shape, view_.strides);
    std::byte* to = straight ? memory.target.data() + place_of(part) : memory.scratch_of(part.bytes);
    const Scatter scatter{to, static_cast<std::size_t>(part.bytes)};
    reader_.read(source_, part.offset, std::span(&scatter, 1));
    spent.read_bytes += part.bytes;
    spent.read_seconds += watch.lap();
    if (straight) return;
    copy_(Tensor(memory.scratch, to_.dtype(), part.shape, view_.strides),
          Tensor(memory.target, to_.dtype(), part.shape, to_.strides(), place_of(part)));
    spent.decode_seconds += watch.lap();
  }

  const ByteSource& source_;
  const Reader& reader_;
  const StridedView& view_;
  const Tensor& to_;
  const CopyElements copy_;
};

}  // namespace

void read_strided(const ByteSource& source, const StridedView& view, const Tensor& to, CopyElements copy,
                  const StridedReadOptions& options, Report& report) {
  const ReadCosts costs = costs_of(source);
  const StridedReader reader(source, view, costs, to, copy);
  const std::uint64_t parts = reader.plan.size();
  const Effort effort{.parts = parts, .bytes = reader.plan.read_bytes(), .calls = parts, .costs = costs};
  const Threads threads = threads_for(effort, options.threads);
  std::optional<Depth> depth = threads.depth();
  const WorkOptions work{.threads = threads.first, .depth = depth ? &*depth : nullptr, .stop = options.stop};
  work_through(parts, work, [&](Worker& worker) { reader.work(worker); }).add_to(report);
}

}  // namespace penstock::io
