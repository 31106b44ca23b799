#include "call/progress.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

#include "core/stop_scope.h"
#include "device/current.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"
#include "penstock/progress.h"

namespace penstock::python {
namespace {

/// How far a load or save is, for the Python thread that waits for it. The work waits at its end until that has been
/// told, so that an exception then comes before a file appears.
class Meter {
 public:
  std::uint64_t done() const noexcept { return done_; }
  std::uint64_t total() const noexcept { return total_; }
  /// Whether the work waits for go_on().
  bool at_end() {
    const std::lock_guard lock(mutex_);
    return at_end_;
  }

  // The thread that works, without the GIL. What it waits for, such as an answer of a server, ends by the token.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  void at(std::uint64_t done, std::uint64_t total) {
    total_ = total;
    done_ = done;
    std::unique_lock lock(mutex_);
    if (done == total && !was_told_) {
      at_end_ = true;
      wake_.notify_all();
      wake_.wait(lock, [this] { return was_told_ || stopped_; });
      at_end_ = false;
    }
    if (stopped_) throw Error(ErrorCode::kCancelled, "the function for the progress stopped it");
  }

  // The thread that waits. Until the work is at its end, or over, or so many seconds have passed.
  void wait(double seconds) {
    const ReleasedGil released;
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return at_end_ || over_; });
  }
  /// The work may go on behind its end.
  void go_on() { set(was_told_); }
  /// It ends soon, with kCancelled.
  void stop() {
    stop_.request_stop();
    set(stopped_);
  }
  /// It has ended.
  void over() { set(over_); }

 private:
  void set(bool& flag) {
    const std::lock_guard lock(mutex_);
    flag = true;
    wake_.notify_all();
  }

  std::stop_source stop_;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::uint64_t> total_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool at_end_ = false;
  bool was_told_ = false;
  bool stopped_ = false;
  bool over_ = false;
};

/// What a bar says in front.
nb::object bar_name(const char* verb, nb::handle path) {
  if (!nb::isinstance<nb::str>(path) && !has_attribute(path, "__fspath__")) return nb::str(verb);
  const std::string text = path_from(path);
  return nb::str(verb) + nb::str(" ") + path_text(text.substr(text.rfind('/') + 1));
}

nb::object watched(nb::handle progress, const char* verb, nb::handle path, const char* unit,
                   const std::shared_ptr<Meter>& meter, std::function<nb::object()> work) {
  const nb::object run = nb::cpp_function([current = device::Current(), meter, work = std::move(work)]() {
    current.adopt();
    const std::stop_token stop = meter->stop_token();
    const core::StopScope scope(stop);
    return work();
  });
  return nb::module_::import_("penstock._load.progress")
      .attr("watched")(progress, bar_name(verb, path), nb::cast(meter), run, unit);
}

}  // namespace

nb::object with_progress(nb::handle progress, const char* verb, nb::handle path, std::function<nb::object()> work) {
  if (progress.is_none()) return work();
  const auto meter = std::make_shared<Meter>();
  return watched(progress, verb, path, "B", meter, [meter, work = std::move(work)] {
    const Progress told([meter](std::uint64_t done, std::uint64_t total) { meter->at(done, total); });
    return work();
  });
}

nb::object with_sample_progress(nb::handle progress, const char* verb, nb::handle path,
                                std::function<nb::object(const TellSamples& tell)> work) {
  if (progress.is_none()) return work([](std::int64_t, std::int64_t) {});
  const auto meter = std::make_shared<Meter>();
  return watched(progress, verb, path, "samples", meter, [meter, work = std::move(work)] {
    return work([meter](std::int64_t done, std::int64_t total) {
      meter->at(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
    });
  });
}

void bind_progress(nb::module_& module) {
  nb::class_<Meter>(module, "_Meter")
      .def_prop_ro("done", &Meter::done)
      .def_prop_ro("total", &Meter::total)
      .def_prop_ro("at_end", &Meter::at_end)
      .def("wait", &Meter::wait, nb::arg("seconds"))
      .def("go_on", &Meter::go_on)
      .def("stop", &Meter::stop)
      .def("over", &Meter::over);
}

}  // namespace penstock::python
