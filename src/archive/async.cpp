// A thread for each call: what takes long is the disk, and a program saves now and then. Saves to one path stand in
// line: each knows the one before it, waits until that is over, well or not, and then writes.

#include "penstock/async.h"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/format.h"
#include "core/per_process.h"
#include "device/current.h"
#include "penstock/error.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

/// One path as it leads now. Locations with a scheme are left as they are.
std::string absolute(std::string_view path) {
  if (path.find("://") != path.npos || path.empty()) return std::string(path);
  std::error_code error;
  const fs::path whole = fs::absolute(fs::path(path), error);
  return error ? std::string(path) : whole.string();
}

/// The same for all names of a file.
std::string file_of(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::path(path), error);
  return error ? path : whole.string();
}

/// A place in the line of a file. It is over with this object.
class Turn {
 public:
  explicit Turn(std::string file) : file_(std::move(file)), over_(promise_.get_future()) {
    const std::lock_guard lock(line_.mutex);
    before_ = std::exchange(line_.last[file_], over_);
    ++line_.waiting[file_];
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    promise_.set_value();
    const std::lock_guard lock(line_.mutex);
    if (--line_.waiting[file_] > 0) return;
    line_.waiting.erase(file_);
    line_.last.erase(file_);
  }

  void wait() const {
    if (before_.valid()) before_.wait();
  }

 private:
  /// Saves that are under way. A forked child has none of its parent's.
  struct Line {
    std::mutex mutex;
    std::map<std::string, std::shared_future<void>> last;
    std::map<std::string, std::size_t> waiting;
  };
  static Line& line() {
    static constinit core::PerProcess<Line> one;
    return one.get();
  }

  Line& line_ = line();
  std::string file_;
  std::promise<void> promise_;
  std::shared_future<void> over_;
  std::shared_future<void> before_;
};

template <class Work>
auto started(Work work) {
  try {
    return std::async(std::launch::async, [work = std::move(work), current = device::Current()]() mutable {
      current.adopt();
      return work();
    });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kLimit, core::format("the system gives no thread for it: {}", error.what()));
  }
}

}  // namespace

std::future<Value> load_async(TextView path, const LoadOptions& options) {
  return started([path = absolute(path), options] { return load(path, options); });
}

std::future<void> save_async(const Value& value, TextView path, const AsyncSaveOptions& options) {
  const Value kept = options.copy ? value.to(Device{}, {.copy = true}) : value;
  const std::string target = absolute(path);
  return started([kept, target, how = options.save, turn = std::make_unique<Turn>(file_of(target))]() mutable {
    const std::unique_ptr<Turn> mine = std::move(turn);
    mine->wait();
    save(kept, target, how);
  });
}

}  // namespace penstock
