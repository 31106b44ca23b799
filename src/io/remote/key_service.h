#pragma once

// Services that give keys which end: how they are asked, and how long what they gave is used. credentials.cpp asks
// those of Amazon, azure_credentials.cpp those of Azure.

#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/remote/reactor.h"
#include "io/remote/signature.h"

namespace penstock::io::remote {

/// Who is asked for keys.
struct KeyService {
  std::string name = {};           ///< what errors call it: its URL
  std::string_view settings = {};  ///< what to check where it refuses
  /// Whether an answer is all of one, and not part of it or the page of somebody else: those are asked for again.
  bool (*is_whole)(const std::string& text) = nullptr;
};

/// The text that a service answers with, or the error of the request. `patient`: it is there for sure, so that it is
/// worth trying again.
std::string ask_service(const HttpRequest& request, const KeyService& service, bool patient);

/// The text of the file that a variable names, without white space around it; empty where the variable is not set.
/// kPermission where there is no such text.
std::string text_of_setting(const char* name);

/// What the metadata of a machine says. Nothing on a machine that has none, which is found out by waiting for it for a
/// second; `why_none` then says so. A service that was there and did not give a good answer is asked again (`waits`),
/// or its error is thrown: that it has no keys is not known.
std::optional<std::string> ask_metadata(const HttpRequest& request, const KeyService& service, bool waits,
                                        std::string& why_none);

struct FetchedKeys {
  Keys keys = {};
  std::optional<std::chrono::system_clock::time_point> ends = {};
};

/// Keys that services gave, used until five minutes before they end. While they are good, a service that fails is asked
/// again later. Thread-safe; a service is asked under its lock, so one is kept for each process (core/per_process.h).
class KeptKeys {
 public:
  using Clock = std::chrono::system_clock;
  /// `waits`: nothing else is at hand, so that it is worth trying again.
  using Fetch = std::optional<FetchedKeys> (*)(bool waits, std::string& why_none);

  /// `places`: the variables that say which service is asked; other values of them make it ask anew. Empty keys where
  /// there are none, with the reason in `why_none`.
  Keys get(std::span<const char* const> places, Fetch fetch, std::string& why_none);
  /// After a store refused them. Whether others may come; also for those of several requests at once that were refused
  /// after the first.
  bool forget();

 private:
  std::mutex mutex_;
  std::string asked_;
  std::optional<Keys> keys_;
  bool forgotten_ = false;  ///< there were some, and none were asked for since
  std::string why_none_;
  Clock::time_point until_{};  ///< they are taken without asking so long
  Clock::time_point ends_{};   ///< they are good so long
};

}  // namespace penstock::io::remote
