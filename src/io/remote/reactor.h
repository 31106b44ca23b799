#pragma once

// One thread that sends the requests of the whole process by libcurl, each once. Whoever wants an answer makes a
// Transfer, starts it, and waits for it (Waiter); fetch.h does so for all. A thread for each request would cost more
// than the requests.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "io/copy/scatter.h"
#include "io/read/depth.h"
#include "io/remote/curl_api.h"
#include "io/remote/hedging.h"
#include "io/remote/settings.h"

namespace penstock::io::remote {

struct HttpRequest {
  std::string method = "GET";
  std::string url = {};
  std::vector<std::string> headers = {};  ///< "name: value"
  std::string body = {};
  std::span<const std::byte> payload = {};  ///< sent in place of `body`; must outlive the transfer
  bool past_proxies = false;                ///< for services of this machine
  std::vector<std::string> secrets = {};    ///< what no error may show
  std::string ca_file = {};                 ///< certificates to trust, in place of those of the settings
  std::string unsigned_because = {};        ///< that and why it says nothing of who asks, for the error of a refusal
  std::string signer = {};                  ///< what that error says of whose keys signed it
};

/// What came back. Names of headers are in lower case.
struct Answer {
  curl::Code code = 0;
  std::string problem = {};  ///< libcurl's text, when `code` is no success
  long status = 0;
  long proxy_status = 0;  ///< the proxy's answer to CONNECT; 0 where none was asked for a tunnel
  std::int64_t asked_pause = 0;  ///< seconds until the next try, as Retry-After says by a number or a date
  std::map<std::string, std::string, std::less<>> headers = {};
  std::uint64_t received = 0;  ///< bytes of the body that went to `into`
  bool too_long = false;       ///< there were more than fit
  bool endless_head = false;
  std::string text = {};          ///< the body, where it was not for `into`
  double first_byte_seconds = 0;  ///< from the beginning of the request; all of it where none came
  double seconds = 0;             ///< of the whole request
  bool connected = false;         ///< there was a connection, whatever came of it
  std::size_t at_once = 0;  ///< requests in flight when it was begun, itself among them: of large ones its server's

  std::string header(std::string_view name) const;
};

class Waiter;

struct Transfer;

/// The large requests for one server.
struct Lane {
  /// Bytes are counted as they come, because a large answer takes long.
  static constexpr Depth::Bounds kBounds{
      .least = 4, .first = 16, .window = std::chrono::milliseconds(250), .rounds = 0};

  explicit Lane(std::size_t most) noexcept : depth(bounds(most)) {}

  Depth depth;
  std::deque<Transfer*> queue = {};
  std::size_t active = 0;
  std::uint64_t bytes = 0;  ///< of those that ended

 private:
  static Depth::Bounds bounds(std::size_t most) noexcept {
    Depth::Bounds out = kBounds;
    out.most = most;
    return out;
  }
};

/// One request on its way. Made and read by whoever waits; between `start` and its end it belongs to the reactor.
struct Transfer {
  HttpRequest request = {};
  std::vector<Scatter> into = {};  ///< the body of a 2xx answer; empty: it becomes text
  std::size_t most_text = 64 * 1024;
  Settings settings = {};
  Answer answer = {};
  /// Where it is, for whoever waits: when it was sent, in nanoseconds of the steady clock. kQueued before, kHeard from
  /// the first byte of its answer on.
  std::atomic<std::int64_t> sent_at{kQueued};
  static constexpr std::int64_t kQueued = 0;
  static constexpr std::int64_t kHeard = -1;

  // The reactor's own.
  Waiter* waiter = nullptr;
  std::size_t tag = 0;   ///< the waiter's
  Lane* lane = nullptr;  ///< of a large request
  curl::Easy* easy = nullptr;
  curl::List* list = nullptr;
  std::size_t part = 0;  ///< of `into`
  std::size_t part_done = 0;
  std::size_t head_bytes = 0;
  std::chrono::steady_clock::time_point begun{};  ///< when it was sent
  std::chrono::steady_clock::time_point heard{};  ///< when the last byte came or went
  /// Bytes of the answer, and when there were so many: a server that sends a byte now and then is no better than a
  /// silent one.
  std::chrono::steady_clock::time_point counted{};
  std::uint64_t counted_bytes = 0;
  std::int64_t sent = 0;
  char error[curl::kErrorBytes] = {};
};

/// Whoever waits for transfers: their tags, as they end.
class Waiter {
 public:
  void done(std::size_t tag);
  /// Those that ended meanwhile; waits for one until `until`.
  std::vector<std::size_t> wait_until(std::chrono::steady_clock::time_point until);

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::size_t> done_;
};

/// One thread that runs all requests of the process by libcurl's multi interface, a bounded number at a time, in the
/// order in which they were started; of large ones fewer, as their server takes them (io/read/depth.h). A forked child
/// has one of its own. Thread-safe.
class Reactor {
 public:
  /// That of this process. kUnsupported without libcurl.
  static Reactor& get();
  Reactor();

  /// The transfer, its waiter and the memory it fills must live until the waiter has its tag or `drop` returned.
  void start(Transfer& transfer, Waiter& waiter, std::size_t tag);
  /// Ends transfers that are no longer wanted; those that had ended may be among them. Their memory is not written to
  /// after this.
  void drop(std::span<Transfer* const> transfers);

  Hedging& hedging() noexcept { return hedging_; }

 private:
  void run();
  bool take_commands();
  Lane* lane_of(const Transfer& transfer);
  void take(std::deque<Transfer*>& queue, std::size_t most, std::vector<Transfer*>& out) const;
  bool end_stalled();
  void look_at_lanes(std::chrono::steady_clock::time_point now);
  void begin(Transfer& transfer);
  void finish(Transfer& transfer, curl::Code code);
  void release(Transfer& transfer);
  void set_options(Transfer& transfer);

  const curl::Api& api_;
  const std::size_t limit_;
  Hedging hedging_;
  curl::Multi* multi_;

  std::mutex mutex_;
  std::condition_variable dropped_;
  bool running_ = false;
  std::deque<Transfer*> queue_;
  std::map<std::string, Lane, std::less<>> lanes_;
  std::vector<Transfer*> to_drop_;
  std::uint64_t drops_wanted_ = 0;
  std::uint64_t drops_done_ = 0;

  // The thread's own.
  std::map<curl::Easy*, Transfer*> active_;
  std::vector<curl::Easy*> idle_;
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace penstock::io::remote
