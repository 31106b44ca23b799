#pragma once

// A request and what its answer means: what fetch.cpp tries, judge.cpp judges, and each kind of request makes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/remote/reactor.h"
#include "io/remote/values.h"
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

/// What the store's own part of the code adds to how its refusals are judged: what may make the next try succeed, and
/// what errors name.
struct StoreTerms {
  /// Forgets keys that ended. Whether others may come. Null: they do not end.
  bool (*renew_keys)() = nullptr;
  /// Notes where a bucket lies. Whether that is news. Null: there are no regions.
  bool (*learn_region)(const std::string& bucket, const std::string& region) = nullptr;
  std::string_view keys = {};      ///< what sets who asks: "AWS_ACCESS_KEY_ID or AWS_PROFILE"
  std::string_view endpoint = {};  ///< what sets who is asked: "AWS_ENDPOINT_URL"
};

/// A request that is tried until it succeeds or fails for good: what is asked, and where the answer goes.
struct Exchange {
  /// Called for each try, because signatures age and keys are renewed.
  std::function<HttpRequest()> request;
  ValuesPtr values = {};           ///< options of its location
  std::vector<Scatter> into = {};  ///< the body; empty: it is answer.text
  std::size_t most_text = 64 * 1024;
  std::string name = {};  ///< for errors
  std::optional<std::uint64_t> offset = {};
  std::string bucket = {};  ///< the bucket of the object, for errors
  StoreTerms terms = {};    ///< of its store; empty for the others
  std::string etag = {};    ///< of the version that is wanted, for errors
  bool follows = false;     ///< follow redirects
  bool patient = true;      ///< try again; if false, there is one try of at most a second
  bool writes = false;      ///< it is an upload: errors say "write"
  /// A text that the body of every good answer contains. A store may answer 200 and explain an error in the body.
  std::string_view expects = {};
  /// Whether the text of a good answer is all of it; others are asked for again.
  bool (*is_whole)(const std::string& text) = nullptr;
  bool may_pass = false;  ///< it failed by what another try may not meet
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

}  // namespace penstock::io::remote
