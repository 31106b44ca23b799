#pragma once

// Worker processes that call the functions of a loader. Each thread of the loader that has something to call takes one
// of them for as long as that lasts, so that order, positions, limits and errors are those of the threads.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/sample/host.h"
#include "functions.h"
#include "worker_process.h"

namespace penstock::python {

class WorkerHost final : public data::Host {
 public:
  /// `start` gives [socket, pid] of a new process, `reap` the text of how the process of a number ended. Up to `most`
  /// processes are started, each when a thread has no other.
  WorkerHost(HeldFunction start, HeldFunction reap, std::size_t most);
  ~WorkerHost() override;

  bool takes(const data::UserFunction& function) const noexcept override;
  bool takes(const data::IndexFunction& function) const noexcept override;
  std::vector<data::Called> call(std::span<const Step> run, std::span<const Value> samples,
                                 std::span<const std::int64_t> indices, const data::EpochSeed& seed) override;
  std::vector<data::Called> call(const data::IndexFunction& get, std::span<const std::int64_t> indices) override;
  /// What a function of collation gives.
  Value call(const HeldFunction& function, const std::vector<Value>& samples);

  /// Has all of them end, and later calls refused. Any thread.
  void close() noexcept;
  std::vector<std::int64_t> pids() const;

 private:
  class Lease;
  struct Known {
    std::uint64_t number = 0;
    std::weak_ptr<const void> function;
    std::shared_ptr<const std::string> pickled;
  };
  /// Writes the calls [first, last) of a message.
  using Write = std::function<void(MessageWriter&, std::size_t first, std::size_t last)>;

  std::vector<data::Called> made(std::span<const HeldFunction* const> functions, std::size_t count, const Write& write);
  std::uint64_t number_of(const HeldFunction& function);
  /// Has the process know these functions.
  void define(Lease& worker, std::span<const std::uint64_t> numbers);
  /// How the process ended, which is let go of.
  std::string ended(Lease& worker);

  HeldFunction start_;
  HeldFunction reap_;
  std::size_t most_;
  std::uint64_t forks_;
  std::atomic<bool> closed_ = false;
  mutable std::mutex mutex_;
  std::condition_variable idle_again_;
  std::vector<std::shared_ptr<WorkerProcess>> workers_;
  std::vector<std::shared_ptr<WorkerProcess>> idle_;
  std::size_t starting_ = 0;
  std::map<const void*, Known> known_;
  std::uint64_t numbers_ = 0;
};

}  // namespace penstock::python
