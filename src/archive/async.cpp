// A thread for each call: what takes long is the disk, and a program saves now and then. Saves to one path stand in
// line: each has a number, waits until those before it are over, well or not, and then writes.

#include "penstock/async.h"

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "core/format.h"
#include "core/per_process.h"
#include "device/current.h"
#include "io/locations.h"
#include "penstock/error.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

/// One path for all names of a file.
std::string file_of(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::path(path), error);
  return error ? path : whole.string();
}

/// A place in the line of a file. It is over with this object, also where the save got no thread.
class Turn {
 public:
  explicit Turn(std::string file) : file_(std::move(file)) {
    const std::lock_guard lock(line_.mutex);
    number_ = line_.next++;
    line_.waiting[file_].insert(number_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    const std::lock_guard lock(line_.mutex);
    const auto file = line_.waiting.find(file_);
    file->second.erase(number_);
    if (file->second.empty()) line_.waiting.erase(file);
    line_.is_shorter.notify_all();
  }

  void wait() const {
    std::unique_lock lock(line_.mutex);
    line_.is_shorter.wait(lock, [this] { return *line_.waiting.at(file_).begin() == number_; });
  }

 private:
  /// Saves that are under way. A forked child has none of its parent's.
  struct Line {
    std::mutex mutex;
    std::condition_variable is_shorter;
    std::uint64_t next = 0;
    std::map<std::string, std::set<std::uint64_t>> waiting;
  };
  static Line& line() {
    static constinit core::PerProcess<Line> one;
    return one.get();
  }

  Line& line_ = line();
  std::string file_;
  std::uint64_t number_ = 0;
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
  return started([path = io::absolute_or_same(path), options] { return load(path, options); });
}

std::future<void> save_async(const Value& value, TextView path, const AsyncSaveOptions& options) {
  const Value kept = options.copy ? value.to(Device{}, {.copy = true}) : value;
  const std::string target = io::absolute_or_same(path);
  return started([kept, target, how = options.save, turn = std::make_unique<Turn>(file_of(target))]() mutable {
    const std::unique_ptr<Turn> mine = std::move(turn);
    mine->wait();
    save(kept, target, how);
  });
}

}  // namespace penstock
