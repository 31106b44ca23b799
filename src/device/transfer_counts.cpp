// Copies are counted twice: for the process and for the thread that starts them, because a program may ask about a
// stretch of its own code while other threads copy too. Threads that help within a call give their counts to the caller
// when it ends (HelperCounts), since the caller would not see them otherwise.

#include "device/transfer_counts.h"

#include <atomic>
#include <thread>

#include "penstock/error.h"
#include "penstock/transfer.h"

namespace penstock {
namespace device {
namespace {

constexpr double kNanosecond = 1e-9;

constinit Counters<std::atomic<std::uint64_t>> process_counters{};
thread_local constinit Counters<std::uint64_t> thread_counters{};

void add(std::uint64_t& to, std::uint64_t value) noexcept { to += value; }
void add(std::atomic<std::uint64_t>& to, std::uint64_t value) noexcept {
  to.fetch_add(value, std::memory_order_relaxed);
}
std::uint64_t get(std::uint64_t value) noexcept { return value; }
std::uint64_t get(const std::atomic<std::uint64_t>& value) noexcept { return value.load(std::memory_order_relaxed); }

template <class Number>
TransferCounts counts_of(const DirectionCounters<Number>& from) noexcept {
  return {.copies = get(from.copies),
          .bytes = get(from.bytes),
          .submit_seconds = static_cast<double>(get(from.submit_nanoseconds)) * kNanosecond,
          .waits = get(from.waits),
          .wait_seconds = static_cast<double>(get(from.wait_nanoseconds)) * kNanosecond};
}

template <class Table>
TransferStats stats_of(const Table& table) noexcept {
  return {counts_of(table[0]), counts_of(table[1]), counts_of(table[2]), counts_of(table[3])};
}

std::uint64_t nanoseconds_since(CountClock::time_point begin) noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(CountClock::now() - begin).count());
}

/// Adds `sign` times `from` to `to`, wrapping around.
void accumulate(Counters<std::uint64_t>& to, const Counters<std::uint64_t>& from, std::uint64_t sign = 1) noexcept {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i].copies += sign * from[i].copies;
    to[i].bytes += sign * from[i].bytes;
    to[i].submit_nanoseconds += sign * from[i].submit_nanoseconds;
    to[i].waits += sign * from[i].waits;
    to[i].wait_nanoseconds += sign * from[i].wait_nanoseconds;
  }
}

template <class Add>
void update(Direction direction, Add change) noexcept {
  const auto index = static_cast<std::size_t>(direction);
  if (index >= process_counters.size()) return;
  change(process_counters[index]);
  change(thread_counters[index]);
}

}  // namespace

void count_copies(Direction direction, std::size_t copies, std::size_t bytes, CountClock::time_point begin) noexcept {
  update(direction, [&, spent = nanoseconds_since(begin)](auto& counters) {
    add(counters.copies, copies);
    add(counters.bytes, bytes);
    add(counters.submit_nanoseconds, spent);
  });
}

CountedWait::~CountedWait() {
  update(direction_, [spent = nanoseconds_since(begin_)](auto& counters) {
    add(counters.waits, 1);
    add(counters.wait_nanoseconds, spent);
  });
}

void HelperCounts::run(const std::function<void()>& work) {
  if (std::this_thread::get_id() == caller_) return work();
  const Counters<std::uint64_t> before = thread_counters;
  work();
  const std::scoped_lock lock(mutex_);
  accumulate(sum_, thread_counters);
  accumulate(sum_, before, -std::uint64_t{1});
}

HelperCounts::~HelperCounts() { accumulate(thread_counters, sum_); }

}  // namespace device

TransferCounts& TransferCounts::operator+=(const TransferCounts& other) noexcept {
  copies += other.copies;
  bytes += other.bytes;
  submit_seconds += other.submit_seconds;
  waits += other.waits;
  wait_seconds += other.wait_seconds;
  return *this;
}

TransferCounts TransferCounts::operator-(const TransferCounts& before) const noexcept {
  return {.copies = copies - before.copies,
          .bytes = bytes - before.bytes,
          .submit_seconds = submit_seconds - before.submit_seconds,
          .waits = waits - before.waits,
          .wait_seconds = wait_seconds - before.wait_seconds};
}

const TransferCounts TransferStats::total() const noexcept {
  TransferCounts out = host_to_device;
  out += device_to_host;
  out += device_to_device;
  out += peer_to_peer;
  return out;
}

TransferStats TransferStats::operator-(const TransferStats& before) const noexcept {
  return {host_to_device - before.host_to_device, device_to_host - before.device_to_host,
          device_to_device - before.device_to_device, peer_to_peer - before.peer_to_peer};
}

TransferStats transfer_stats() noexcept { return device::stats_of(device::process_counters); }

TransferScope::TransferScope(Threads threads) noexcept
    : threads_(threads),
      thread_(std::this_thread::get_id()),
      before_(threads == Threads::kAll ? transfer_stats() : device::stats_of(device::thread_counters)) {}

const TransferStats TransferScope::stats() const {
  if (threads_ == Threads::kAll) return transfer_stats() - before_;
  if (std::this_thread::get_id() != thread_) {
    throw Error(ErrorCode::kInvalidArgument,
                "a scope that counts its own thread was read in another: read it where it was made, or count kAll");
  }
  return device::stats_of(device::thread_counters) - before_;
}

}  // namespace penstock
