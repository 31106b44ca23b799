// What the figures of a loader say in words: what limits it, and why it has so many workers. How long the caller waits
// is judged first, because a loader that nobody waits for is not the limit.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "penstock/loader.h"

namespace penstock {
namespace {

constexpr double kWaitingCaller = 0.1;  // of the time; one that waits less is the wall itself
constexpr double kStalled = 0.2;        // of the workers' time
constexpr double kOverBudget = 0.3;
constexpr double kIdle = 0.5;
constexpr double kOwnProcessors = 0.8;  // of all: then nobody else has taken them

struct StageTime {
  std::string_view name;
  std::string_view sentence;
  double seconds = 0;
};

std::array<StageTime, 7> stages(const LoaderStats& stats) {
  return {{{"open", "opening files", stats.open_seconds},
           {"read", "reading files", stats.read_seconds},
           {"decode", "decoding headers and checking sums", stats.decode_seconds},
           {"function", "calling the program's functions", stats.function_seconds},
           {"collate", "deciding batches and taking their memory", stats.collate_seconds},
           {"copy", "copying payload into the batch", stats.copy_seconds},
           {"send", "starting copies to the device", stats.send_seconds}}};
}

StageTime largest_stage(const LoaderStats& stats) {
  const auto all = stages(stats);
  return *std::max_element(all.begin(), all.end(),
                           [](const StageTime& a, const StageTime& b) { return a.seconds < b.seconds; });
}

double share(double part, double whole) { return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0; }
std::string percent(double part, double whole) { return core::format("{:.0f} %", 100 * share(part, whole)); }

double iterated(const LoaderStats& stats) { return stats.wait_seconds + stats.caller_seconds; }

/// Batches a second of the loader alone, its workers never idle.
double loader_speed(const LoaderStats& stats) {
  const double busy = stats.worked_seconds();
  return busy > 0 ? static_cast<double>(stats.batches * std::max<std::uint64_t>(stats.workers, 1)) / busy : 0;
}

/// Batches a second of the caller alone, with every batch ready; 0 where it takes no time.
double caller_speed(const LoaderStats& stats) {
  return stats.caller_seconds > 0 ? static_cast<double>(stats.batches) / stats.caller_seconds : 0;
}

std::string rate(double per_second) {
  return per_second < 10 ? core::format("{:.2g}", per_second) : core::format("{:.0f}", per_second);
}

std::string caller_waits(const LoaderStats& stats) {
  const double speed = caller_speed(stats);
  std::string text = core::format("the caller waits {} of the time", percent(stats.wait_seconds, iterated(stats)));
  if (speed > 0) text += core::format(" and could take {} batches/s", rate(speed));
  return text;
}

std::string limit_of_caller(const LoaderStats& stats) {
  return core::format(
      "the caller is the limit: it takes {} batches/s and waits {} of the time, while the loader alone could bring "
      "about {} batches/s",
      rate(caller_speed(stats)), percent(stats.wait_seconds, iterated(stats)), rate(loader_speed(stats)));
}

std::string limit_of_processors(const LoaderStats& stats) {
  const double all = iterated(stats) * static_cast<double>(std::max<std::uint64_t>(stats.processors, 1));
  // The process's time is looked at now and then, and perhaps never in a short epoch. That of the workers is always
  // known.
  const double used = std::max(stats.process_seconds, stats.compute_seconds);
  return core::format(
      "the processors are the limit: workers were ready to run and had none for {} of their time, and {}; {}",
      percent(stats.stall_seconds, stats.worker_capacity),
      used > kOwnProcessors * all
          ? core::format("this process itself uses {} of {}", percent(used, all), stats.processors)
          : core::format("this process got {} of {}, so other programs or a control group have the rest",
                         percent(used, all), stats.processors),
      caller_waits(stats));
}

std::string limit_of_stage(const LoaderStats& stats) {
  const double worked = stats.worked_seconds();
  const StageTime stage = largest_stage(stats);
  const double storage = worked - stats.compute_seconds - stats.stall_seconds;
  std::string text = "the loader is the limit";
  if (stats.files_opened > 0) {
    text += core::format(", at {} of what open+read+close of these files can do here",
                         percent(stats.open_seconds + stats.read_seconds, worked));
  }
  text += core::format(
      ": {} takes {} of the time of {}", stage.sentence, percent(stage.seconds, worked),
      stats.workers == 0 ? std::string("the caller, who works itself") : core::counted(stats.workers, "worker"));
  if (storage > 0.1 * worked) text += core::format(", who wait for storage for {}", percent(storage, worked));
  const bool by_url = stage.name == "open" || stage.name == "read";
  if (by_url && stats.remote.requests > 0) {
    text += core::format("; of the requests by URL, the limit is {}", stats.remote.limit());
  }
  return text + "; " + caller_waits(stats);
}

}  // namespace

const std::string_view LoaderStats::bottleneck() const noexcept {
  const double whole = iterated(*this);
  if (batches == 0 || whole <= 0) return "nothing";
  if (wait_seconds < kWaitingCaller * whole) return "caller";
  const std::string_view stage = largest_stage(*this).name;
  if (workers == 0 || worker_capacity <= 0) return stage;
  if (stall_seconds > kStalled * worker_capacity || caller_stall_seconds > kStalled * whole) return "processors";
  if (budget_seconds > kOverBudget * worker_capacity) return "memory budget";
  const double idle = worker_capacity - worked_seconds() - budget_seconds;
  return idle > kIdle * worker_capacity ? "hand-over" : stage;
}

const std::string LoaderStats::limit() const {
  const std::string_view wall = bottleneck();
  if (wall == "nothing") return "no batch was taken yet, so there is nothing to judge by";
  if (wall == "caller") return limit_of_caller(*this);
  if (wall == "processors") return limit_of_processors(*this);
  if (wall == "memory budget") {
    return core::format("the memory budget is the limit: workers wait for it {} of their time; {}",
                        percent(budget_seconds, worker_capacity), caller_waits(*this));
  }
  if (wall == "hand-over") {
    return core::format(
        "the hand-over between workers and the caller is the limit: the workers are idle {} of their time; {}; larger "
        "batches need fewer of them",
        percent(worker_capacity - worked_seconds() - budget_seconds, worker_capacity), caller_waits(*this));
  }
  return limit_of_stage(*this);
}

const std::string LoaderStats::workers_because() const {
  std::string start = core::counted(workers, "worker");
  switch (choice) {
    case Choice::kAsked:
      return start + ", as asked";
    case Choice::kUndecided:
      return core::format("{} for {} processors; too few batches to judge by", start, processors);
    case Choice::kCaller:
      return start + "; the caller hardly waits, so more would bring nothing";
    case Choice::kComputing:
      return start + ": they compute more than they wait, so more would share the same processors";
    case Choice::kNoGain:
      return core::format("{}: {} were tried and brought {:.2f} times the speed", start, workers_tried, trial_gain);
    case Choice::kGain:
      return core::format("{}: that brought {:.2f} times the speed of fewer, since each mostly waits", start,
                          trial_gain);
    case Choice::kMost:
      return start + ": as many as there may be, and the caller still waits";
  }
  return start;
}

std::string LoaderStats::to_string() const {
  std::string text =
      core::format("{}, {}, {} of payload, {} read from {}\n", core::counted(batches, "batch", "batches"),
                   core::counted(samples, "sample"), core::format_bytes(payload_bytes), core::format_bytes(read_bytes),
                   core::counted(files_opened, "file"));
  const double whole = iterated(*this);
  text += core::format("caller: {:.3f} s, {} of them waiting; first batch after {:.1f} ms\n", whole,
                       percent(wait_seconds, whole), 1e3 * first_batch_seconds);
  text += "workers:";
  for (const StageTime& part : stages(*this)) {
    if (part.seconds > 0) text += core::format(" {} {:.3f} s,", part.name, part.seconds);
  }
  text += core::format(" of {:.3f} s\n", workers == 0 ? whole : worker_capacity);
  if (const std::string by_url = remote.to_string(); !by_url.empty()) text += by_url + "\n";
  text += core::format("{}\n{}", workers_because(), limit());
  return text;
}

}  // namespace penstock
