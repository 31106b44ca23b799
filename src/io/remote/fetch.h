#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/remote/reactor.h"
#include "penstock/error.h"
#include "penstock/report.h"

namespace penstock::io::remote {

/// What an answer means.
struct Verdict {
  enum class Kind : std::uint8_t { kDone, kAgain, kFail };
  Kind kind = Kind::kDone;
  std::string why = {};  ///< of kAgain, as part of a sentence
  std::optional<Error> error = {};
};

inline Verdict again(std::string why) { return {.kind = Verdict::Kind::kAgain, .why = std::move(why)}; }
inline Verdict fail(ErrorCode code, std::string message) {
  return {.kind = Verdict::Kind::kFail, .error = Error(code, std::move(message))};
}

/// A request that is tried until it succeeds or fails for good: what is asked, and where the answer goes.
struct Exchange {
  /// Called for each try, because signatures age and keys are renewed.
  std::function<HttpRequest()> request;
  std::vector<Scatter> into = {};  ///< the body; empty: it is answer.text
  std::size_t most_text = 64 * 1024;
  std::string name = {};  ///< for errors
  std::optional<std::uint64_t> offset = {};
  std::string bucket = {};  ///< the bucket of the object, whose region may have to be learnt
  std::string etag = {};    ///< of the version that is wanted, for errors
  bool follows = false;     ///< follow redirects
  bool patient = true;      ///< try again; if false, there is one try of at most a second
  bool writes = false;      ///< it is an upload: errors say "write"
  /// A text that the body of every good answer contains. A store may answer 200 and explain an error in the body.
  std::string_view expects = {};
  bool keys_forgotten = false;
  bool unsettled =
      false;  ///< a try that was no success may have been carried out: its answer was lost, or is no refusal
  /// Looks at an answer of status 2xx, 304 or 416; else 2xx is success. May throw Error.
  std::function<Verdict(const Answer&)> accept = {};

  Answer answer = {};               ///< the last one
  std::string redirected = {};      ///< where the last one came from, if not from the request's own URL
  std::optional<Error> error = {};  ///< why it failed
  std::string last_refusal = {};    ///< why the try before this one failed
  unsigned tries = 0;
  RemoteTraffic traffic = {};  ///< of all tries
};

/// What is asked and answered is noted as traffic of the calling thread (traffic.h).
///
/// Makes all requests at once. Each is tried again, after random pauses, while that may help and time is left
/// (Settings::retry_time). When one fails, the others are dropped and its error is thrown. kCancelled within 50 ms of a
/// stop (core::StopScope).
void run(std::span<Exchange> exchanges);
/// The same, but when one fails the others go on; `error` of each says why it failed.
void run_all(std::span<Exchange> exchanges);

}  // namespace penstock::io::remote
