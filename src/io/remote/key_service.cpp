// What a service gave is kept until shortly before it ends, so that a request rarely waits for one, and so that a
// service which fails meanwhile is not noticed.

#include "io/remote/key_service.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "io/remote/fetch.h"
#include "io/remote/settings.h"
#include "io/remote/small_file.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// Keys are fetched anew so long before they end.
constexpr std::chrono::minutes kEarly{5};
/// That a machine has no metadata service is believed so long.
constexpr std::chrono::minutes kNone{1};
/// A service that failed while keys are still good is asked again after this, or a tenth of the time that is left.
constexpr std::chrono::seconds kAgain{10};
/// Keys that have ended are used so long: by the clock of the store they may be good, and else it says so.
constexpr std::chrono::seconds kLeast{1};

Exchange asked(const HttpRequest& request, const KeyService& service, bool patient) {
  Exchange exchange;
  exchange.name = service.name;
  exchange.terms.keys = service.settings;
  exchange.request = [&] { return request; };
  exchange.is_whole = service.is_whole;
  exchange.patient = patient;
  run_all({&exchange, 1});
  return exchange;
}

}  // namespace

std::string ask_service(const HttpRequest& request, const KeyService& service, bool patient) {
  Exchange exchange = asked(request, service, patient);
  if (exchange.error) throw exchange.error->prefixed("no keys could be had: ");
  return std::move(exchange.answer.text);
}

std::optional<std::string> ask_metadata(const HttpRequest& request, const KeyService& service, bool waits,
                                        std::string& why_none) {
  Exchange exchange = asked(request, service, false);
  const long status = exchange.answer.status;
  const bool may_pass = exchange.answer.connected && (exchange.may_pass || status < 200 || status >= 500);
  if (exchange.error && may_pass && waits) exchange = asked(request, service, true);
  if (!exchange.error) return std::move(exchange.answer.text);
  const ErrorCode code = exchange.error->code();
  if (code == ErrorCode::kCancelled || code == ErrorCode::kUnsupported) throw *exchange.error;
  if (may_pass) throw exchange.error->prefixed("the keys of this machine's role cannot be had: ");
  why_none = core::format("the machine's metadata service gave none ({})", exchange.error->message());
  return std::nullopt;
}

std::string text_of_setting(const char* name) {
  const std::string file = path_variable(name);
  if (file.empty()) return {};
  std::string text(core::trimmed(text_of(file).value_or("")));
  if (!text.empty()) return text;
  throw Error(ErrorCode::kPermission, core::format("{} names a file that cannot be read, or is empty", name), {file});
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
  const auto later = [&] { return now + std::clamp<Clock::duration>((ends_ - now) / 10, kLeast, kAgain); };
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
