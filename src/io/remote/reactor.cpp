// One thread runs all transfers and sleeps in curl_multi_poll. Other threads put a transfer into the queue, or into the
// list of those to drop, and wake it. libcurl calls back on this thread alone, so nobody else touches a transfer while
// it is active, and after `drop` has returned nobody writes to its memory.

#include "io/remote/reactor.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <thread>
#include <utility>

#include "core/ascii.h"
#include "core/format.h"
#include "core/per_process.h"
#include "core/text.h"
#include "io/remote/location.h"
#include "io/remote/values.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// More than any honest server sends before a body, even with some answers 1xx before it.
constexpr std::size_t kMostHead = std::size_t{256} << 10;
constexpr long kReadBuffer = 512 * 1024;
constexpr int kSleepMs = 60'000;
/// How often the thread looks for transfers that have heard nothing.
constexpr int kLookMs = 50;
constexpr std::size_t kMostIdle = 256;
/// Requests for so many bytes are large.
constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;
/// Bytes in a second, below which an answer is given up.
constexpr double kLeastRate = 1024;

using core::trimmed;

/// libcurl gives whole lines. Fewer bytes than it gave end the transfer.
std::size_t on_header(char* data, std::size_t, std::size_t bytes, void* of) noexcept {
  Transfer& transfer = *static_cast<Transfer*>(of);
  Answer& answer = transfer.answer;
  transfer.head_bytes += bytes;
  transfer.heard = std::chrono::steady_clock::now();
  transfer.sent_at = Transfer::kHeard;
  if (transfer.head_bytes > kMostHead) {
    answer.endless_head = true;
    return 0;
  }
  try {
    const std::string_view line = trimmed({data, bytes});
    if (line.starts_with("HTTP/")) {
      // Of several answers (100 Continue, a proxy's) the last one counts.
      answer.headers.clear();
      const std::string_view rest = trimmed(line.substr(std::min(line.size(), line.find(' '))));
      answer.status = 0;
      std::from_chars(rest.data(), rest.data() + rest.size(), answer.status);
    } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
      answer.headers[core::lower(trimmed(line.substr(0, colon)))] = trimmed(line.substr(colon + 1));
    }
    return bytes;
  } catch (...) {
    return 0;
  }
}

bool scatter(Transfer& transfer, const char* data, std::size_t bytes) noexcept {
  Answer& answer = transfer.answer;
  while (bytes > 0) {
    if (transfer.part == transfer.into.size()) {
      answer.too_long = true;
      return false;
    }
    const Scatter& part = transfer.into[transfer.part];
    const std::size_t some = std::min(bytes, part.bytes - transfer.part_done);
    if (some > 0 && part.to != nullptr) std::memcpy(part.to + transfer.part_done, data, some);
    data += some;
    bytes -= some;
    answer.received += some;
    transfer.part_done += some;
    if (transfer.part_done == part.bytes) {
      ++transfer.part;
      transfer.part_done = 0;
    }
  }
  return true;
}

std::size_t on_body(char* data, std::size_t, std::size_t bytes, void* of) noexcept {
  Transfer& transfer = *static_cast<Transfer*>(of);
  Answer& answer = transfer.answer;
  transfer.heard = std::chrono::steady_clock::now();
  const bool wanted = answer.status >= 200 && answer.status < 300;
  if (wanted && !transfer.into.empty()) return scatter(transfer, data, bytes) ? bytes : 0;
  try {
    const std::size_t room = transfer.most_text - std::min(transfer.most_text, answer.text.size());
    answer.text.append(data, std::min(room, bytes));
    if (bytes <= room) return bytes;
    answer.too_long = true;
    return 0;
  } catch (...) {
    return 0;
  }
}

/// A large upload gets no answer for long, so sent bytes count as a sign of life too.
int on_progress(void* of, std::int64_t, std::int64_t, std::int64_t, std::int64_t sent) noexcept {
  Transfer& transfer = *static_cast<Transfer*>(of);
  if (std::exchange(transfer.sent, sent) != sent) transfer.heard = std::chrono::steady_clock::now();
  return 0;
}

/// Whether the answer has been slower than any network for the whole time limit. That to what is sent is not measured:
/// a store may take minutes to put an object together, and sends a space now and then meanwhile.
bool trickles(Transfer& transfer, std::chrono::steady_clock::time_point now) {
  if (transfer.request.method == "PUT" || transfer.request.method == "POST") return false;
  const std::uint64_t bytes = transfer.head_bytes + transfer.answer.received + transfer.answer.text.size();
  if (transfer.counted_bytes == 0) {
    transfer.counted = now;
    transfer.counted_bytes = bytes;
  }
  const std::chrono::duration<double> since = now - transfer.counted;
  if (bytes == 0 || now - transfer.counted < transfer.settings.timeout) return false;
  const auto came = static_cast<double>(bytes - transfer.counted_bytes);
  transfer.counted = now;
  transfer.counted_bytes = bytes;
  return came < kLeastRate * since.count();
}

}  // namespace

std::string Answer::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

void Waiter::done(std::size_t tag) {
  // Notified under the lock: whoever waits may be gone as soon as it is free.
  const std::scoped_lock lock(mutex_);
  done_.push_back(tag);
  wake_.notify_one();
}

std::vector<std::size_t> Waiter::wait_until(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, until, [this] { return !done_.empty(); });
  return std::exchange(done_, {});
}

Reactor::Reactor() : api_(curl::Api::get()), limit_(process_requests()), multi_(api_.multi_init()) {
  if (multi_ == nullptr) throw Error(ErrorCode::kOutOfMemory, "libcurl has no memory for its first request");
  api_.multi_setopt(multi_, curl::kMaxConnects, static_cast<long>(limit_));
}

Reactor& Reactor::get() {
  // Never destroyed, because its thread runs until the process ends. In a forked child the parent's reactor is leaked
  // on purpose: its thread does not exist there.
  static constinit core::PerProcess<Reactor> one;
  return one.get();
}

void Reactor::start(Transfer& transfer, Waiter& waiter, std::size_t tag) {
  transfer.sent_at = Transfer::kQueued;
  transfer.waiter = &waiter;
  transfer.tag = tag;
  {
    const std::scoped_lock lock(mutex_);
    if (!running_) {
      std::thread([this] { run(); }).detach();
      running_ = true;
    }
    transfer.lane = lane_of(transfer);
    (transfer.lane != nullptr ? transfer.lane->queue : queue_).push_back(&transfer);
  }
  api_.multi_wakeup(multi_);
}

/// That of the server, for a request of many bytes; none for others.
Lane* Reactor::lane_of(const Transfer& transfer) {
  constexpr std::size_t kMostLanes = 64;
  if (bytes_in(transfer.into) < kLarge) return nullptr;
  const std::string_view server = authority_of(transfer.request.url);
  const auto found = lanes_.find(server);
  if (found != lanes_.end()) return &found->second;
  // Nobody talks to so many; all others share one.
  return &lanes_.try_emplace(lanes_.size() < kMostLanes ? std::string(server) : std::string(), limit_).first->second;
}

/// Takes the first `most` of the queue, as far as there is room for them.
void Reactor::take(std::deque<Transfer*>& queue, std::size_t most, std::vector<Transfer*>& out) const {
  for (; most > 0 && !queue.empty() && active_.size() + out.size() < limit_; --most) {
    out.push_back(queue.front());
    queue.pop_front();
  }
}

void Reactor::drop(std::span<Transfer* const> transfers) {
  if (transfers.empty()) return;
  std::unique_lock lock(mutex_);
  if (!running_) return;
  to_drop_.insert(to_drop_.end(), transfers.begin(), transfers.end());
  const std::uint64_t mine = ++drops_wanted_;
  api_.multi_wakeup(multi_);
  dropped_.wait(lock, [&] { return drops_done_ >= mine; });
}

void Reactor::run() {
  sigset_t all;
  ::sigfillset(&all);  // signals are for threads of the program
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ::pthread_setname_np(::pthread_self(), "penstock-urls");
  while (true) {
    const bool began = take_commands();
    int running = 0;
    api_.multi_perform(multi_, &running);
    bool ended = false;
    int left = 0;
    while (const curl::Message* const message = api_.multi_info_read(multi_, &left)) {
      if (message->kind != curl::kMessageDone) continue;
      const auto found = active_.find(message->easy);
      if (found == active_.end()) continue;
      finish(*found->second, message->data.result);
      ended = true;
    }
    // Each end frees a place for those that wait in a queue.
    ended = end_stalled() || ended;
    if (!began && !ended) api_.multi_poll(multi_, nullptr, 0, active_.empty() ? kSleepMs : kLookMs, nullptr);
  }
}

/// Whether something was begun.
bool Reactor::take_commands() {
  // Drops come first: whoever waits for one wants its memory back, and frees a place for what is begun.
  std::vector<Transfer*> drops;
  std::uint64_t wanted = 0;
  {
    const std::scoped_lock lock(mutex_);
    drops.swap(to_drop_);
    wanted = drops_wanted_;
    for (Transfer* const one : drops) std::erase(one->lane != nullptr ? one->lane->queue : queue_, one);
  }
  for (Transfer* const one : drops) {
    const auto is_it = [one](const auto& item) { return item.second == one; };
    if (std::any_of(active_.begin(), active_.end(), is_it)) release(*one);
  }
  std::vector<Transfer*> fresh;
  {
    const std::scoped_lock lock(mutex_);
    drops_done_ = std::max(drops_done_, wanted);
    dropped_.notify_all();
    take(queue_, limit_, fresh);
    for (auto& [server, lane] : lanes_) {
      take(lane.queue, lane.depth.limit() - std::min(lane.depth.limit(), lane.active), fresh);
    }
  }
  for (Transfer* const one : fresh) begin(*one);
  return !fresh.empty();
}

/// Ends transfers that have heard nothing for the time limit; whether there were any. libcurl's own limit has a
/// resolution of one second.
bool Reactor::end_stalled() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < std::chrono::milliseconds(kLookMs)) return false;
  looked_ = now;
  std::vector<Transfer*> stalled;
  for (const auto& [easy, transfer] : active_) {
    if (now - transfer->heard > transfer->settings.timeout || trickles(*transfer, now)) stalled.push_back(transfer);
  }
  for (Transfer* const one : stalled) finish(*one, curl::kTimedOut);
  look_at_lanes(now);
  return !stalled.empty();
}

void Reactor::look_at_lanes(std::chrono::steady_clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  for (auto& [server, lane] : lanes_) {
    std::uint64_t bytes = lane.bytes;
    for (const auto& [easy, transfer] : active_) bytes += transfer->lane == &lane ? transfer->answer.received : 0;
    lane.depth.look(now, bytes, 0, !lane.queue.empty());
  }
}

void Reactor::begin(Transfer& transfer) {
  transfer.answer = {};
  transfer.begun = transfer.heard = std::chrono::steady_clock::now();
  transfer.sent_at = std::chrono::nanoseconds(transfer.begun.time_since_epoch()).count();
  transfer.part = transfer.part_done = transfer.head_bytes = 0;
  transfer.sent = 0;
  transfer.counted_bytes = 0;
  if (idle_.empty()) {
    transfer.easy = api_.easy_init();
  } else {
    transfer.easy = idle_.back();
    idle_.pop_back();
    api_.easy_reset(transfer.easy);
  }
  active_[transfer.easy] = &transfer;
  if (transfer.lane != nullptr) ++transfer.lane->active;
  transfer.answer.at_once = transfer.lane != nullptr ? transfer.lane->active : active_.size();
  if (transfer.easy == nullptr) {
    finish(transfer, curl::kWriteError);  // judge.cpp reads this code, without `too_long`, as out of memory
    return;
  }
  set_options(transfer);
  if (api_.multi_add(multi_, transfer.easy) != 0) finish(transfer, curl::kWriteError);  // out of memory, as above
}

void Reactor::set_options(Transfer& transfer) {
  const HttpRequest& request = transfer.request;
  const auto set = [&](int option, auto value) { api_.easy_setopt(transfer.easy, option, value); };
  for (const std::string& header : request.headers) transfer.list = api_.list_append(transfer.list, header.c_str());
  // Do not wait for "100 Continue": with a store that sends none, each upload would wait a second.
  if (!request.payload.empty()) transfer.list = api_.list_append(transfer.list, "Expect:");
  transfer.error[0] = '\0';
  set(curl::kUrl, request.url.c_str());
  set(curl::kCustomRequest, request.method.c_str());
  set(curl::kHttpHeader, static_cast<const void*>(transfer.list));
  set(curl::kErrorBuffer, static_cast<char*>(transfer.error));
  set(curl::kNoSignal, 1L);  // a library has no right to the program's signals
  set(curl::kPathAsIs, 1L);  // a key may have "/../" in it, and the signature is of what is sent
  set(curl::kProtocols, curl::kHttpOrHttps);
  set(curl::kFollowLocation, 0L);  // fetch.cpp follows, and sends credentials to no other host
  set(curl::kNetrc, 0L);           // credentials come from settings alone
  set(curl::kTcpKeepAlive, 1L);
  set(curl::kBufferSize, kReadBuffer);
  set(curl::kConnectTimeoutMs, static_cast<long>(std::min<std::int64_t>(transfer.settings.timeout.count(), 10'000)));
  set(curl::kUserAgent, "penstock");
  set(curl::kHeaderFunction, static_cast<curl::Write>(on_header));
  set(curl::kHeaderData, static_cast<void*>(&transfer));
  set(curl::kSuppressConnectHeaders, 1L);  // that a proxy opened a tunnel is no answer of the server
  set(curl::kWriteFunction, static_cast<curl::Write>(on_body));
  set(curl::kWriteData, static_cast<void*>(&transfer));
  // By HTTP/2 all requests would share one connection, and what one connection carries is limited on its way.
  set(curl::kHttpVersion, curl::kHttp11);
  const std::string& ca_file = request.ca_file.empty() ? transfer.settings.ca_file : request.ca_file;
  if (!ca_file.empty()) set(curl::kCaInfo, ca_file.c_str());
  if (!transfer.settings.ca_folder.empty()) set(curl::kCaPath, transfer.settings.ca_folder.c_str());
  if (request.past_proxies) set(curl::kNoProxy, "*");
  if (request.method == "HEAD") set(curl::kNoBody, 1L);
  if (request.method == "PUT" || request.method == "POST") {
    const std::span<const std::byte> body =
        request.payload.empty() ? std::as_bytes(std::span(request.body)) : request.payload;
    set(curl::kPostFieldSize, static_cast<long long>(body.size()));
    set(curl::kPostFields, static_cast<const void*>(body.empty() ? "" : static_cast<const void*>(body.data())));
    set(curl::kProgressFunction, static_cast<curl::Progress>(on_progress));
    set(curl::kProgressData, static_cast<void*>(&transfer));
    set(curl::kNoProgress, 0L);
  }
}

/// Takes the transfer away from libcurl, which closes its connection unless the answer was read to its end.
void Reactor::release(Transfer& transfer) {
  if (transfer.easy != nullptr) {
    api_.multi_remove(multi_, transfer.easy);
    if (idle_.size() < kMostIdle) {
      idle_.push_back(transfer.easy);
    } else {
      api_.easy_cleanup(transfer.easy);
    }
  }
  active_.erase(transfer.easy);
  if (transfer.lane != nullptr) {
    --transfer.lane->active;
    transfer.lane->bytes += transfer.answer.received;
  }
  transfer.easy = nullptr;
  api_.list_free(std::exchange(transfer.list, nullptr));
}

void Reactor::finish(Transfer& transfer, curl::Code code) {
  transfer.answer.code = code;
  if (code != curl::kOk) {
    transfer.answer.problem = transfer.error[0] != '\0' ? transfer.error : api_.easy_strerror(code);
  }
  if (transfer.easy != nullptr) {
    Answer& answer = transfer.answer;
    api_.easy_getinfo(transfer.easy, curl::kStartTransferSeconds, &answer.first_byte_seconds);
    api_.easy_getinfo(transfer.easy, curl::kTotalSeconds, &answer.seconds);
    if (answer.first_byte_seconds <= 0) answer.first_byte_seconds = answer.seconds;
    api_.easy_getinfo(transfer.easy, curl::kConnectStatus, &answer.proxy_status);
    if (answer.status == 0 && answer.proxy_status >= 300) answer.status = answer.proxy_status;
    api_.easy_getinfo(transfer.easy, curl::kRetryAfterSeconds, &answer.asked_pause);
    double ready_seconds = 0;
    api_.easy_getinfo(transfer.easy, curl::kReadySeconds, &ready_seconds);
    answer.connected = ready_seconds > 0;
  }
  release(transfer);
  transfer.waiter->done(transfer.tag);
}

}  // namespace penstock::io::remote
