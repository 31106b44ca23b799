// The thread that waits for requests also tries them again; the reactor only runs single tries. Between two tries a
// request is just a time at which it is due.
//
//   due -> start -> (reactor) -> done -> judge -> success | error | due again, after a random while
//
// After the n-th try, the pause is drawn from [0, min(0.1 s * 2^n, 5 s)] ("full jitter"), so that clients which a store
// refused at the same moment do not come back at the same moment.
//
// A request for bytes whose answer is late is made a second time (hedging.h), into memory of its own. The first good
// answer counts, and the other transfer is dropped before anybody looks at the bytes. If one of the two fails, the
// other goes on.

#include "io/remote/fetch.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/stop_scope.h"
#include "io/copy/scatter.h"
#include "io/remote/judge.h"
#include "io/remote/location.h"
#include "io/remote/settings.h"
#include "io/remote/store_error.h"
#include "io/remote/traffic.h"
#include "penstock/buffer.h"

namespace penstock::io::remote {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

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
          .transfer_seconds = answer.seconds - answer.first_byte_seconds,
          .at_once = answer.at_once};
}

milliseconds random_pause(unsigned tries) {
  thread_local std::minstd_rand generator{std::random_device{}()};
  const milliseconds most = std::min(kMostPause, kFirstPause * (1U << std::min(tries, 10U)));
  return milliseconds(std::uniform_int_distribution<std::int64_t>(0, most.count())(generator));
}

milliseconds asked_pause(const Answer& answer) {
  return std::chrono::seconds(std::clamp<std::int64_t>(answer.asked_pause, 0, 3600));
}

/// The second request for the bytes of an exchange.
struct Hedge {
  Transfer transfer = {};
  Buffer memory = {};
};

/// One exchange, from its first try to its end.
struct Running {
  Exchange* exchange = nullptr;
  std::optional<Settings> own = {};  ///< where its location has options
  Transfer transfer = {};
  std::unique_ptr<Hedge> hedge = {};
  bool hedged = false;                ///< one second request is enough
  std::optional<Answer> failed = {};  ///< that of the first request, while the second is on its way
  SteadyClock::time_point begun{};    ///< when the first try was sent, once it has failed
  SteadyClock::time_point due{};      ///< of the next try
  unsigned redirects = 0;
  bool in_flight = false;
  bool ended = false;
};

class Retrying {
 public:
  Retrying(std::span<Exchange> exchanges, bool goes_on)
      : reactor_(Reactor::get()), settings_(settings()), goes_on_(goes_on), running_(exchanges.size()) {
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      running_[i].exchange = &exchanges[i];
      if (exchanges[i].values) take_options(running_[i]);
    }
    left_ = exchanges.size();
  }
  ~Retrying() { drop(); }
  Retrying(const Retrying&) = delete;
  Retrying& operator=(const Retrying&) = delete;

  void to_end() {
    while (left_ > 0) {
      begin_more();
      SteadyClock::time_point until = SteadyClock::now() + core::kStopLook;
      for (const std::size_t i : paused_) until = std::min(until, running_[i].due);
      if (hedges()) until = std::min(until, ask_late_ones_again());
      for (const std::size_t tag : waiter_.wait_until(until)) ended(tag);
      if (core::StopScope::stop_requested()) {
        const bool writes = running_.front().exchange->writes;
        throw Error(ErrorCode::kCancelled,
                    core::format("the {} was cancelled before it was complete", writes ? "upload" : "read"));
      }
      const SteadyClock::time_point now = SteadyClock::now();
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
      if (one.hedge) in_flight.push_back(&one.hedge->transfer);
    }
    reactor_.drop(in_flight);
  }

  bool hedges() const noexcept { return settings_.hedges > 0 || hedges_by_options_; }
  /// While it lives, the variables are those of the exchange's location.
  static ValuesScope options_of(const Exchange& exchange) {
    return ValuesScope(exchange.values ? exchange.values : ValuesScope::current());
  }
  const Settings& settings_of(const Running& one) const noexcept { return one.own ? *one.own : settings_; }

  void take_options(Running& one) {
    const ValuesScope scope(one.exchange->values);
    one.own = settings();
    hedges_by_options_ = hedges_by_options_ || one.own->hedges > 0;
    if (!variable("PENSTOCK_REMOTE_REQUESTS").empty()) most_ = std::min(most_, one.own->requests);
  }

  /// Begins those that were not begun, as many as may be in flight.
  void begin_more() {
    const std::size_t over = running_.size() - left_ + paused_.size();
    while (begun_ < running_.size() && begun_ - std::min(begun_, over) < most_) begin(begun_++);
  }

  /// Starts a try. A request that cannot be made (no keys, a bad setting) fails at once.
  void begin(std::size_t i) {
    Running& one = running_[i];
    Exchange& exchange = *one.exchange;
    try {
      prepare(one.transfer, one);
    } catch (const Error& error) {
      return fail(one, error);
    }
    one.transfer.into = exchange.into;
    if (!exchange.patient) one.transfer.settings.timeout = std::chrono::seconds(1);
    ++exchange.tries;
    one.in_flight = true;
    reactor_.start(one.transfer, waiter_, i);
  }

  void prepare(Transfer& transfer, const Running& one) const {
    const Exchange& exchange = *one.exchange;
    const ValuesScope scope = options_of(exchange);
    transfer.request = exchange.request();
    if (!exchange.redirected.empty()) redirect(transfer.request, exchange.redirected);
    for (const std::string& header : transfer.request.headers) require_line(header, "a header of the request");
    transfer.most_text = exchange.most_text;
    transfer.settings = settings_of(one);
    require_certificates(transfer.request, transfer.settings);
  }

  /// Makes second requests for those that have waited for longer than they should. When to look again.
  SteadyClock::time_point ask_late_ones_again() {
    SteadyClock::time_point next = SteadyClock::time_point::max();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      Running& one = running_[i];
      const bool may = one.in_flight && !one.hedged && settings_of(one).hedges > 0 && one.exchange->patient &&
                       !one.exchange->into.empty() && one.transfer.request.method == "GET";
      const std::int64_t sent = may ? one.transfer.sent_at.load() : Transfer::kHeard;
      if (sent == Transfer::kHeard || sent == Transfer::kQueued) continue;
      const auto patience = reactor_.hedging().patience(authority_of(one.transfer.request.url));
      if (!patience) continue;
      const auto due = SteadyClock::time_point(std::chrono::nanoseconds(sent)) +
                       std::chrono::duration_cast<std::chrono::nanoseconds>(*patience);
      if (due > SteadyClock::now()) {
        next = std::min(next, due);
      } else if (reactor_.hedging().spend(bytes_in(one.exchange->into))) {
        hedge(i);
      }
    }
    return next;
  }

  void hedge(std::size_t i) {
    Running& one = running_[i];
    one.hedged = true;
    auto second = std::make_unique<Hedge>();
    try {
      prepare(second->transfer, one);
      const auto bytes = static_cast<std::size_t>(bytes_in(one.exchange->into));
      second->memory = Buffer::allocate(bytes);
      second->transfer.into = {{second->memory.data(), bytes}};
    } catch (const Error&) {
      return;  // the first request goes on
    }
    one.hedge = std::move(second);
    count(*one.exchange, {.hedges = 1});
    reactor_.start(one.hedge->transfer, waiter_, running_.size() + i);
  }

  /// A transfer ended: by its tag a first request or a second one.
  void ended(std::size_t tag) {
    const bool is_second = tag >= running_.size();
    const std::size_t i = is_second ? tag - running_.size() : tag;
    Running& one = running_[i];
    if (one.ended) return;  // the other one was first
    if (is_second) return second_ended(i);
    one.in_flight = false;
    note(one, one.transfer);
    if (one.hedge && !is_good(one, one.transfer)) {
      one.failed = std::move(one.transfer.answer);
      return;
    }
    drop_second(one);
    one.exchange->answer = std::move(one.transfer.answer);
    judge_answer(i);
  }

  void second_ended(std::size_t i) {
    Running& one = running_[i];
    if (!one.hedge) return;
    note(one, one.hedge->transfer);
    count(*one.exchange, traffic_of(one.hedge->transfer.answer));
    if (is_good(one, one.hedge->transfer)) {
      drop_first(one);
      fill_parts(one.exchange->into, one.hedge->memory.data());
      one.exchange->answer = std::move(one.hedge->transfer.answer);
      one.hedge.reset();
      return end(one);
    }
    one.hedge.reset();
    if (!one.failed) return;  // the first request goes on
    one.exchange->answer = std::move(*std::exchange(one.failed, std::nullopt));
    judge_answer(i);
  }

  /// Lets the server's next requests be judged by this answer.
  void note(const Running& one, const Transfer& transfer) {
    const Answer& answer = transfer.answer;
    if (answer.code != curl::kOk || answer.status < 200 || answer.status >= 400) return;
    const Hedging::Seconds first_byte(answer.first_byte_seconds);
    const Hedging::Seconds rest(answer.seconds - answer.first_byte_seconds);
    reactor_.hedging().answered(authority_of(transfer.request.url), first_byte, settings_of(one).hedges, rest,
                                answer.received);
  }

  static bool is_good(const Running& one, const Transfer& transfer) {
    try {
      return verdict_of(*one.exchange, transfer.request, transfer.answer).kind == Verdict::Kind::kDone;
    } catch (const Error&) {
      return false;
    }
  }

  void drop_second(Running& one) {
    if (!one.hedge) return;
    drop(one, one.hedge->transfer);
    one.hedge.reset();
  }

  void drop_first(Running& one) {
    if (std::exchange(one.in_flight, false)) drop(one, one.transfer);
  }

  void drop(Running& one, Transfer& transfer) {
    Transfer* const dropped = &transfer;
    reactor_.drop({&dropped, 1});
    count(*one.exchange, traffic_of(transfer.answer));
  }

  /// Sends the request to another URL; to another host without credentials, which are not for it.
  static void redirect(HttpRequest& request, const std::string& url) {
    const bool same = authority_of(request.url) == authority_of(url) && scheme_of(request.url) == scheme_of(url);
    if (!same) {
      request.past_proxies = false;
      std::erase_if(request.headers, [](const std::string& header) { return header.starts_with("Authorization:"); });
    }
    request.url = url;
    hide_query(request);
  }

  /// Does what the answer of the exchange asks for: follows it, tries again, fails or is done.
  void judge_answer(std::size_t tag) {
    Running& one = running_[tag];
    Exchange& exchange = *one.exchange;
    count(exchange, traffic_of(exchange.answer));
    Verdict verdict;
    try {
      if (follow(one)) return begin(tag);
      verdict = verdict_of(exchange, one.transfer.request, exchange.answer);
    } catch (const Error& error) {
      verdict = {.kind = Verdict::Kind::kFail, .error = error};
    }
    if (verdict.kind != Verdict::Kind::kDone && !is_refusal(exchange.answer)) exchange.unsettled = true;
    if (verdict.kind == Verdict::Kind::kAgain) return try_again(tag, verdict);
    if (verdict.kind == Verdict::Kind::kFail) {
      // This request went to the address of an earlier redirect, which may have expired: ask the original URL again.
      if (one.redirects == 0 && !std::exchange(exchange.redirected, {}).empty()) return begin(tag);
      return fail(one, after_earlier_tries(exchange, *verdict.error));
    }
    end(one);
  }

  /// The last refusal may only follow from an earlier one: an upload that a server gave up is not there any more.
  static Error after_earlier_tries(const Exchange& exchange, const Error& error) {
    if (exchange.last_refusal.empty()) return error;
    return Error(error.code(), core::format("{}; the try before: {}", error.message(), exchange.last_refusal),
                 {.path = error.path(), .offset = error.offset(), .tensor = error.tensor()});
  }

  static Verdict verdict_of(const Exchange& exchange, const HttpRequest& request, const Answer& answer) {
    const ValuesScope scope = options_of(exchange);
    const bool arrived = answer.code == curl::kOk && answer.status >= 200 && answer.status < 300;
    const bool looks =
        exchange.accept && (arrived || answer.status == 416 || answer.status == 200 || answer.status == 304);
    if (looks) return exchange.accept(answer);
    if (arrived && exchange.is_whole != nullptr && !exchange.is_whole(answer.text)) {
      return again("the answer is none that such a service gives, or a part of one");
    }
    const bool explains = answer.text.find(exchange.expects) == std::string::npos;
    return arrived && !explains ? Verdict{} : judge(exchange, request, answer);
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
    const SteadyClock::time_point now = SteadyClock::now();
    // Not since it was asked for: it may have waited long for its turn.
    if (one.begun == SteadyClock::time_point()) one.begun = one.transfer.begun;
    const milliseconds pause = std::max(random_pause(exchange.tries), asked_pause(exchange.answer));
    if (!exchange.patient || now + pause - one.begun > settings_of(one).retry_time) {
      exchange.may_pass = true;
      const bool waited = exchange.answer.code == curl::kTimedOut;
      const auto seconds = std::chrono::duration<double>(now - one.begun).count();
      return fail(one, Error(waited ? ErrorCode::kTimeout : ErrorCode::kIo,
                             core::format("{}; given up after {} in {:.1f} s; try again later, or for longer with "
                                          "PENSTOCK_REMOTE_RETRY_SECONDS",
                                          verdict.why, core::counted(exchange.tries, "try", "tries"), seconds)));
    }
    count(exchange, {.retries = 1, .paused_seconds = std::chrono::duration<double>(pause).count()});
    // The address of a redirect may have expired, so the next try asks the original URL.
    exchange.redirected.clear();
    exchange.last_refusal = verdict.why;
    one.redirects = 0;
    one.hedged = false;
    one.due = now + pause;
    paused_.push_back(i);
  }

  /// Ends the exchange with the error, which gets its place and the status of the last answer.
  void fail(Running& one, const Error& error) {
    const Exchange& exchange = *one.exchange;
    const Error told = error.within(
        {.path = exchange.name, .offset = exchange.offset, .http_status = static_cast<int>(exchange.answer.status)});
    one.exchange->error = told;
    end(one);
    if (!goes_on_) throw told;
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
  std::size_t begun_ = 0;  ///< exchanges whose first try was started
  /// Begun at once: more than the process sends would only be signed long before that, and keys and signatures end.
  std::size_t most_ = 2 * process_requests();
  bool hedges_by_options_ = false;
};

}  // namespace

// Without a request the reactor, its thread and libcurl stay unused.
void run(std::span<Exchange> exchanges) {
  if (!exchanges.empty()) Retrying(exchanges, false).to_end();
}

void run_all(std::span<Exchange> exchanges) {
  if (!exchanges.empty()) Retrying(exchanges, true).to_end();
}

}  // namespace penstock::io::remote
