// The thread that waits for requests also tries them again; the reactor only runs single tries. Between two tries a
// request is just a time at which it is due.
//
//   due -> start -> (reactor) -> done -> judge -> success | error | due again, after a random while
//
// After the n-th try, the pause is drawn from [0, min(0.1 s * 2^n, 5 s)] ("full jitter"), so that clients which a store
// refused at the same moment do not come back at the same moment.

#include "io/remote/fetch.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <random>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/stop_scope.h"
#include "io/remote/judge.h"
#include "io/remote/location.h"
#include "io/remote/traffic.h"

namespace penstock::io::remote {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How often a wait looks whether it was asked to stop.
constexpr milliseconds kLook{50};
constexpr milliseconds kFirstPause{100};
constexpr milliseconds kMostPause{5000};
constexpr unsigned kMostRedirects = 5;

void count(Exchange& exchange, const RemoteTraffic& traffic) noexcept {
  exchange.traffic += traffic;
  note_traffic(traffic);
}

RemoteTraffic traffic_of(const Answer& answer) noexcept {
  return {.requests = 1,
          .throttled = answer.status == 429 || answer.status == 503 ? 1U : 0U,
          .received_bytes = answer.received + answer.text.size(),
          .first_byte_seconds = answer.first_byte_seconds,
          .transfer_seconds = answer.seconds - answer.first_byte_seconds};
}

milliseconds random_pause(unsigned tries) {
  thread_local std::minstd_rand generator{std::random_device{}()};
  const milliseconds most = std::min(kMostPause, kFirstPause * (1U << std::min(tries, 10U)));
  return milliseconds(std::uniform_int_distribution<std::int64_t>(0, most.count())(generator));
}

milliseconds asked_pause(const Answer& answer) {
  const std::string text = answer.header("retry-after");
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return error == std::errc() && end == text.data() + text.size() ? std::chrono::seconds(std::min(seconds, 3600U))
                                                                  : milliseconds(0);
}

/// One exchange, from its first try to its end.
struct Running {
  Exchange* exchange = nullptr;
  Transfer transfer = {};
  Clock::time_point begun{};
  Clock::time_point due{};
  unsigned redirects = 0;
  bool in_flight = false;
  bool ended = false;
};

class Retrying {
 public:
  Retrying(std::span<Exchange> exchanges, bool goes_on)
      : reactor_(Reactor::get()), settings_(settings()), goes_on_(goes_on), running_(exchanges.size()) {
    const Clock::time_point now = Clock::now();
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      running_[i].exchange = &exchanges[i];
      running_[i].begun = running_[i].due = now;
    }
    left_ = exchanges.size();
  }
  ~Retrying() { drop(); }
  Retrying(const Retrying&) = delete;
  Retrying& operator=(const Retrying&) = delete;

  void to_end() {
    for (std::size_t i = 0; i < running_.size(); ++i) begin(i);
    while (left_ > 0) {
      Clock::time_point until = Clock::now() + kLook;
      for (const std::size_t i : paused_) until = std::min(until, running_[i].due);
      for (const std::size_t tag : waiter_.wait_until(until)) ended(tag);
      if (core::StopScope::stop_requested()) {
        const bool writes = running_.front().exchange->writes;
        throw Error(ErrorCode::kCancelled,
                    core::format("the {} was cancelled before it was complete", writes ? "upload" : "read"));
      }
      const Clock::time_point now = Clock::now();
      for (const std::size_t i : std::exchange(paused_, {})) {
        if (running_[i].due <= now) {
          begin(i);
        } else {
          paused_.push_back(i);
        }
      }
    }
  }

 private:
  void drop() noexcept {
    std::vector<Transfer*> in_flight;
    for (Running& one : running_) {
      if (one.in_flight) in_flight.push_back(&one.transfer);
    }
    reactor_.drop(in_flight);
  }

  /// Starts a try. A request that cannot be made (no keys, a bad setting) fails at once.
  void begin(std::size_t i) {
    Running& one = running_[i];
    Exchange& exchange = *one.exchange;
    try {
      one.transfer.request = exchange.request();
      if (!exchange.redirected.empty()) redirect(one.transfer.request, exchange.redirected);
    } catch (const Error& error) {
      return fail(one, error.within({.path = exchange.name, .offset = exchange.offset}));
    }
    one.transfer.into = exchange.into;
    one.transfer.most_text = exchange.most_text;
    one.transfer.settings = settings_;
    if (!exchange.patient) one.transfer.settings.timeout = std::chrono::seconds(1);
    ++exchange.tries;
    one.in_flight = true;
    reactor_.start(one.transfer, waiter_, i);
  }

  /// Sends the request to another URL; to another host without credentials, which are not for it.
  static void redirect(HttpRequest& request, const std::string& url) {
    const bool same = authority_of(request.url) == authority_of(url) && scheme_of(request.url) == scheme_of(url);
    if (!same) {
      std::erase_if(request.headers, [](const std::string& header) { return header.starts_with("Authorization:"); });
    }
    request.url = url;
  }

  void ended(std::size_t tag) {
    Running& one = running_[tag];
    Exchange& exchange = *one.exchange;
    one.in_flight = false;
    exchange.answer = std::move(one.transfer.answer);
    count(exchange, traffic_of(exchange.answer));
    Verdict verdict;
    try {
      if (follow(one)) return begin(tag);
      verdict = verdict_of(one);
    } catch (const Error& error) {
      verdict = {.kind = Verdict::Kind::kFail, .error = error};
    }
    if (verdict.kind == Verdict::Kind::kAgain) return try_again(tag, verdict);
    if (verdict.kind == Verdict::Kind::kFail) {
      // This request went to the address of an earlier redirect, which may have expired: ask the original URL again.
      if (one.redirects == 0 && !std::exchange(exchange.redirected, {}).empty()) return begin(tag);
      return fail(one, verdict.error->within({.path = exchange.name, .offset = exchange.offset}));
    }
    end(one);
  }

  static Verdict verdict_of(const Running& one) {
    const Exchange& exchange = *one.exchange;
    const Answer& answer = exchange.answer;
    const bool arrived = answer.code == curl::kOk && answer.status >= 200 && answer.status < 300;
    const bool looks =
        exchange.accept && (arrived || answer.status == 416 || answer.status == 200 || answer.status == 304);
    if (looks) return exchange.accept(answer);
    const bool explains = answer.text.find(exchange.expects) == std::string::npos;
    return arrived && !explains ? Verdict{} : judge(exchange, one.transfer.request, answer);
  }

  /// Whether the answer is a redirect that is to be followed.
  bool follow(Running& one) const {
    Exchange& exchange = *one.exchange;
    if (!exchange.follows || !is_redirect(exchange.answer.status) || one.redirects == kMostRedirects) return false;
    const std::string& from = one.transfer.request.url;
    std::string to = resolved(from, exchange.answer.header("location"));
    if (to.empty() || (from.starts_with("https:") && !to.starts_with("https:"))) return false;
    ++one.redirects;
    exchange.redirected = std::move(to);
    return true;
  }

  void try_again(std::size_t i, const Verdict& verdict) {
    Running& one = running_[i];
    Exchange& exchange = *one.exchange;
    const Clock::time_point now = Clock::now();
    const milliseconds pause = std::max(random_pause(exchange.tries), asked_pause(exchange.answer));
    if (!exchange.patient || now + pause - one.begun > settings_.retry_time) {
      const bool waited = exchange.answer.code == curl::kTimedOut;
      const auto seconds = std::chrono::duration<double>(now - one.begun).count();
      return fail(one, Error(waited ? ErrorCode::kTimeout : ErrorCode::kIo,
                             core::format("{}; given up after {} in {:.1f} s; try again later, or for longer with "
                                          "PENSTOCK_REMOTE_RETRY_SECONDS",
                                          verdict.why, core::counted(exchange.tries, "try", "tries"), seconds),
                             {.path = exchange.name, .offset = exchange.offset}));
    }
    count(exchange, {.retries = 1, .paused_seconds = std::chrono::duration<double>(pause).count()});
    // The address of a redirect may have expired, so the next try asks the original URL.
    exchange.redirected.clear();
    one.redirects = 0;
    one.due = now + pause;
    paused_.push_back(i);
  }

  void fail(Running& one, const Error& error) {
    one.exchange->error = error;
    end(one);
    if (!goes_on_) throw error;
  }

  void end(Running& one) {
    one.ended = true;
    --left_;
  }

  Reactor& reactor_;
  const Settings settings_;
  const bool goes_on_;
  Waiter waiter_;
  std::vector<Running> running_;
  std::vector<std::size_t> paused_;
  std::size_t left_ = 0;
};

}  // namespace

void run(std::span<Exchange> exchanges) { Retrying(exchanges, false).to_end(); }

void run_all(std::span<Exchange> exchanges) { Retrying(exchanges, true).to_end(); }

}  // namespace penstock::io::remote
