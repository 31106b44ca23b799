// What a service gave is kept until shortly before it ends, so that a request rarely waits for one, and so that a
// service which fails meanwhile is not noticed.

#include "io/remote/key_service.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "io/remote/fetch.h"
#include "io/remote/settings.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// Keys are fetched anew so long before they end.
constexpr std::chrono::minutes kEarly{5};
/// That a machine has no metadata service is believed so long.
constexpr std::chrono::minutes kNone{1};
/// A service that failed while keys are still good is asked again after this, or a tenth of the time that is left.
constexpr std::chrono::seconds kAgain{10};

Exchange asked(const HttpRequest& request, const std::string& name, bool patient) {
  Exchange exchange;
  exchange.name = name;
  exchange.request = [&] { return request; };
  exchange.patient = patient;
  run_all({&exchange, 1});
  return exchange;
}

}  // namespace

std::string ask_service(const HttpRequest& request, const std::string& name, bool patient) {
  Exchange exchange = asked(request, name, patient);
  if (exchange.error) throw *exchange.error;
  return std::move(exchange.answer.text);
}

std::optional<std::string> ask_metadata(const HttpRequest& request, const std::string& base, bool waits,
                                        std::string& why_none) {
  Exchange exchange = asked(request, base, false);
  const long status = exchange.answer.status;
  const bool may_pass = exchange.answer.connected && (status < 200 || status == 429 || status >= 500);
  if (exchange.error && may_pass && waits) exchange = asked(request, base, true);
  if (!exchange.error) return std::move(exchange.answer.text);
  const ErrorCode code = exchange.error->code();
  if (code == ErrorCode::kCancelled || code == ErrorCode::kUnsupported) throw *exchange.error;
  if (may_pass) throw exchange.error->prefixed("the keys of this machine's role cannot be had: ");
  why_none = core::format("the machine's metadata service gave none ({})", exchange.error->message());
  return std::nullopt;
}

Keys KeptKeys::get(std::span<const char* const> places, Fetch fetch, std::string& why_none) {
  const std::scoped_lock lock(mutex_);
  std::string asked;
  for (const char* const name : places) asked.append(variable(name)).push_back('\n');
  const Clock::time_point now = Clock::now();
  const bool is_known = keys_ && asked == asked_;
  why_none = why_none_;
  if (is_known && now < until_) return *keys_;
  const bool is_good = is_known && !keys_->empty() && now < ends_;
  const auto later = [&] { return now + std::min<Clock::duration>(kAgain, (ends_ - now) / 10); };
  std::optional<FetchedKeys> found;
  why_none.clear();
  try {
    found = fetch(!is_good, why_none);
  } catch (const Error& error) {
    if (!is_good || error.code() == ErrorCode::kCancelled) throw;
  }
  if (!found && is_good) {
    until_ = later();
    return *keys_;
  }
  asked_ = std::move(asked);
  why_none_ = why_none;
  keys_ = found ? found->keys : Keys{};
  forgotten_ = false;
  ends_ = !found ? now + kNone : found->ends.value_or(Clock::time_point::max());
  until_ = found && found->ends ? std::max(*found->ends - kEarly, later()) : ends_;
  return *keys_;
}

bool KeptKeys::forget() {
  const std::scoped_lock lock(mutex_);
  if (keys_) forgotten_ = !keys_->empty();
  keys_.reset();
  return forgotten_;
}

}  // namespace penstock::io::remote
