#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace penstock::data {

/// What the threads of one loader did and when, kept in memory and written as a Chrome trace (the JSON that Perfetto
/// and chrome://tracing open). Thread-safe.
class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  /// The first ones are the stages of StageClock.
  enum class What : std::uint8_t {
    kOpen,
    kRead,
    kDecode,
    kFunction,
    kCollate,
    kCopy,
    kSend,
    kBatch,   ///< a worker at one batch; stages and waits for memory lie within
    kMemory,  ///< a worker waiting for memory_budget
    kIdle,    ///< a worker waiting for something to do
    kWait,    ///< the caller waiting for a batch
    kCaller,  ///< the caller between a batch and asking for the next
  };
  /// Events that are kept, of 32 bytes each; later ones are counted and dropped.
  static constexpr std::size_t kMostEvents = 1'000'000;

  /// What one thread does. One thread adds; nothing is shared but when a block of memory is full.
  class Lane {
   public:
    Lane(Trace& trace, std::string name) : trace_(trace), name_(std::move(name)) {}
    /// `number`: the sample or batch, or negative.
    void add(What what, Clock::time_point begin, Clock::time_point end, std::int64_t number = -1) noexcept;

   private:
    friend class Trace;
    struct Event {
      Clock::time_point begin;
      Clock::time_point end;
      std::int64_t number;
      What what;
    };
    static constexpr std::size_t kBlock = 1000;
    using Block = std::array<Event, kBlock>;

    bool add_block() noexcept;

    Trace& trace_;
    const std::string name_;
    mutable std::mutex mutex_;  ///< taken by its own thread, and by `write`
    std::vector<std::shared_ptr<Block>> blocks_;
    std::size_t filled_ = 0;  ///< of the last block
    std::uint64_t dropped_ = 0;
  };

  /// Throws what writing `path` would throw (kNotFound, kPermission, ...), and leaves nothing there.
  explicit Trace(const std::string& path);
  /// Writes what was not written; a failure is not told.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// A lane for a thread, valid as long as the Trace; lanes are listed in the order they were made.
  Lane& lane(std::string name);
  /// Writes all events so far, in place of what was at `path`. May be called at any time, by one thread.
  void write();

 private:
  struct View;
  class Writer;
  bool take_block() noexcept {
    return blocks_taken_.fetch_add(1, std::memory_order_relaxed) < kMostEvents / Lane::kBlock;
  }
  std::vector<View> views() const;
  void write_events() const;

  const std::string path_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<std::size_t> blocks_taken_{0};
  std::atomic<bool> changed_{true};  ///< since what was written
  mutable std::mutex mutex_;         ///< of lanes_
  std::deque<Lane> lanes_;           ///< stay where they are
};

}  // namespace penstock::data
