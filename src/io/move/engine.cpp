// A move is carried out range by range. The ranges of the plan are the parts of a work queue (work_queue.h), which any
// number of threads take from; how one range gets to its place is the affair of RangeReader. A move may have steps
// (inflating, swapping bytes), which threads run as soon as the ranges that fill their buffers are there (arrivals.h).

#include "io/move/engine.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/counted.h"
#include "core/format.h"
#include "core/stopwatch.h"
#include "io/move/arrivals.h"
#include "io/move/check_move.h"
#include "io/move/range_reader.h"
#include "io/move/work_queue.h"
#include "io/read/threads.h"
#include "io/remote/remote.h"

namespace penstock::io {
namespace {

/// A move's ranges and steps, as threads take them.
class Execution {
 public:
  Execution(const Move& move, const EngineOptions& options) : move_(move), options_(options), reader_(move, options) {
    if (!move.steps.empty()) arrivals_ = std::make_unique<Arrivals>(move.plan, move.steps, move.buffers.size());
  }

  /// Ranges over threads, each into its place.
  void run() {
    const std::size_t ranges = move_.plan.ranges.size();
    // Decoding takes longer than reading, so that fewer bytes are worth a thread.
    const Effort effort{.parts = std::max(ranges, move_.steps.size()),
                        .bytes = move_.plan.read_bytes,
                        .bytes_per_thread = move_.steps.empty() ? Effort::kReadBytes : Effort::kDecodedBytes,
                        .slots = reader_.ring() != nullptr ? reader_.ring()->slots() : 0,
                        .costs = reader_.costs()};
    threads_ = threads_for(effort, options_.threads);
    depth_ = threads_.depth();
    const WorkOptions work{.threads = threads_.first,
                           .depth = depth_ ? &*depth_ : nullptr,
                           .stop = options_.stop,
                           .arrivals = arrivals_.get(),
                           .writes = &reader_.writes()};
    spent_ = work_through(ranges, work, [this](Worker& worker) { this->work(worker); });
  }

  const RangeReader& reader() const noexcept { return reader_; }
  const Spent& spent() const noexcept { return spent_; }
  const Threads& threads() const noexcept { return threads_; }
  const std::optional<Depth>& depth() const noexcept { return depth_; }

 private:
  /// What one thread does.
  void work(Worker& worker) {
    RangeReader::Scratch scratch(worker);
    while (const std::optional<WorkItem> item = worker.next()) {
      if (item->is_step) {
        const core::Stopwatch watch;
        move_.steps[item->index].run();
        worker.spent.decode_seconds += watch.total();
      } else {
        reader_.read(item->index, scratch);
      }
    }
  }

  const Move& move_;
  const EngineOptions& options_;
  RangeReader reader_;
  std::unique_ptr<Arrivals> arrivals_;
  Spent spent_;
  Threads threads_;
  std::optional<Depth> depth_;
};

/// Which route most of the bytes of a move took.
class MainRoute {
 public:
  MainRoute(const Move& move, const Execution& execution)
      : move_(move),
        reader_(execution.reader()),
        direct_(reader_.routes() != nullptr && most(reader_.routes()->direct_bytes())),
        mapped_(most(execution.spent().mapped_bytes)),
        by_device_(reader_.device_routes() != nullptr ? reader_.device_routes()->route(move.plan.read_bytes)
                                                      : std::string_view()),
        by_host_(reader_.reader_name(move.plan.ranges.front().source)) {}

  std::string_view name() const {
    if (!by_device_.empty()) return by_device_;
    if (reader_.ring() != nullptr) return "ring";
    if (direct_) return "direct";
    return by_host_ == "memory" || by_host_ == "remote" ? by_host_ : "read";
  }

  std::string why(std::size_t threads) const {
    std::string why = core::format("{} into {} by {}", core::counted(move_.plan.ranges.size(), "range"), memory(),
                                   core::counted(threads, "thread"));
    if (by_device_.empty())
      why += core::format(" with {}", direct_ ? "direct reads" : mapped_ ? "copies out of a mapping" : by_host_);
    const auto unnoticed = [](const Source& source) { return !remote::notices_changes(*source); };
    if (std::any_of(move_.sources.begin(), move_.sources.end(), unnoticed)) {
      why +=
          "; the server names no version of the object, neither by ETag nor by Last-Modified, so that a change "
          "while it is read is not noticed";
    }
    if (reader_.routes() != nullptr) why += reader_.routes()->why();
    if (reader_.device_routes() != nullptr) why += reader_.device_routes()->why(move_.plan.read_bytes);
    return why;
  }

 private:
  bool most(std::uint64_t bytes) const { return bytes * 2 > move_.plan.read_bytes; }
  std::string memory() const {
    if (!by_device_.empty()) return "device memory through " + reader_.device_routes()->how();
    if (reader_.ring() == nullptr) return "host memory";
    return reader_.ring()->is_locked()
               ? "device memory through the pinned ring"
               : "device memory through a ring that the driver did not page-lock, which is slower,";
  }

  const Move& move_;
  const RangeReader& reader_;
  bool direct_;
  bool mapped_;
  std::string_view by_device_;
  std::string_view by_host_;
};

/// How many requests were in flight, and what kept them from being more.
void tell_depth(const Threads& threads, const std::optional<Depth>& depth, const Spent& spent, Report& report) {
  if (!threads.waits) return;
  std::uint64_t reached = spent.threads;
  std::string_view limit = threads.bound;
  if (spent.refused) {
    limit = "threads";
  } else if (depth && depth->finding() == Depth::Finding::kBandwidth) {
    reached = std::min<std::uint64_t>(reached, depth->enough());
    limit = "bandwidth";
  } else if (depth && depth->finding() == Depth::Finding::kNone) {
    limit = "plan";
  }
  if (reached < report.depth) return;  // of several moves, the deepest
  report.depth = reached;
  report.depth_limit = limit;
}

void describe(const Move& move, const Execution& execution, bool explain, Report& report) {
  report.payload_bytes += move.plan.payload_bytes;
  execution.spent().add_to(report);
  if (move.plan.ranges.empty()) return;
  const MainRoute route(move, execution);
  report.route = route.name();
  tell_depth(execution.threads(), execution.depth(), execution.spent(), report);
  if (!explain) return;
  report.why = route.why(execution.spent().threads);
  if (report.depth > 0) {
    report.why += core::format("; {} in flight at once, limited by {}", core::counted(report.depth, "request"),
                               report.depth_limit == "plan" ? "what the load asked for" : report.depth_limit);
  }
}

}  // namespace

void execute(const Move& move, const EngineOptions& options, Report& report) {
  check(move);
  Execution execution(move, options);
  execution.run();
  describe(move, execution, options.explain, report);
  execution.reader().finish();
}

}  // namespace penstock::io
