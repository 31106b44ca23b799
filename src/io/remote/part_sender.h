#pragma once

// The parts of a large upload on their way, by several threads with bounded memory. upload.h gives it the bytes.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "io/remote/object.h"

namespace penstock::io::remote {

/// Most parts that an object may have.
inline constexpr std::size_t kMostParts = 10'000;
inline constexpr std::size_t kLeastPart = std::size_t{8} << 20;
/// How large part `number` (from 1) of an object is of which about `expected` bytes come (0: not known). All have one
/// size, as some stores want it, as long as that will do for kMostParts; those behind the 8,000th grow, so that 1 TB
/// fit in any case.
std::size_t part_size(std::size_t number, std::uint64_t expected) noexcept;

/// Sends the parts of an upload by several threads, and holds a bounded number of them in memory: one for each thread,
/// and one that is being filled. Used by one thread. Gone, none is on its way any more.
class PartSender {
 public:
  static constexpr std::size_t kThreads = 8;

  /// `id` is that of the upload. The location and the token must outlive it.
  PartSender(const Location& object, std::string id, const std::stop_token& stop);
  ~PartSender();
  PartSender(const PartSender&) = delete;
  PartSender& operator=(const PartSender&) = delete;

  /// Memory for the next part, empty; waits until there is some. Throws what a part failed by; kCancelled.
  std::vector<std::byte> buffer();
  /// The next part. kLimit when there are too many.
  void send(std::vector<std::byte> bytes);
  /// The first part is left out, and sent when it is known, as the last one.
  void leave_first();
  void send_first(std::vector<std::byte> bytes);
  /// Waits until all are there, in their order. Throws as `buffer`.
  std::vector<UploadedPart> finish();

 private:
  struct Task {
    std::size_t number = 0;
    std::vector<std::byte> bytes = {};
  };

  void run();
  void add_task(std::size_t number, std::vector<std::byte> bytes);
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready ready);

  const Location& object_;
  const std::string id_;
  const std::stop_token& stop_;
  std::stop_source ended_;

  std::mutex mutex_;
  std::condition_variable work_;  // for the threads
  std::condition_variable sent_;  // for whoever fills
  std::deque<Task> tasks_;
  std::vector<std::vector<std::byte>> idle_;
  std::vector<UploadedPart> parts_;
  std::size_t held_ = 0;  // parts that were given and are not there yet
  std::size_t done_ = 0;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::io::remote
