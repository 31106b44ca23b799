#include "io/remote/hedging.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace penstock::io::remote {

void Hedging::answered(std::string_view authority, Seconds first_byte, double share, Seconds transfer,
                       std::uint64_t bytes) noexcept try {
  constexpr std::size_t kBetweenLooks = 8;
  const std::scoped_lock lock(mutex_);
  saved_ = std::min(kMostSaved, saved_ + share);
  saved_bytes_ = std::min(kMostSavedBytes, saved_bytes_ + share * static_cast<double>(bytes));
  auto found = servers_.find(authority);
  if (found == servers_.end()) {
    // Nobody talks to so many for long; which of them are forgotten does not matter.
    if (servers_.size() == kMostServers) servers_.clear();
    found = servers_.emplace(authority, Server{}).first;
  }
  Server& server = found->second;
  server.transfers[server.answers % kRemembered] = transfer.count();
  server.seconds[server.answers++ % kRemembered] = first_byte.count();
  if (server.answers < kLeastAnswers || server.answers % kBetweenLooks != 0) return;
  std::array<double, kRemembered> sorted = server.seconds;
  const std::size_t known = std::min(server.answers, kRemembered);
  const auto sum = [known](const auto& of) {
    return std::accumulate(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(known), 0.0);
  };
  const double moving = sum(server.transfers);
  if (moving > sum(server.seconds) && moving > kLeastPatience.count() * static_cast<double>(known)) {
    server.patience.reset();
    return;
  }
  const auto late = sorted.begin() + static_cast<std::ptrdiff_t>(known * 95 / 100);
  std::nth_element(sorted.begin(), late, sorted.begin() + static_cast<std::ptrdiff_t>(known));
  server.patience = std::max(kLeastPatience, Seconds(*late));
} catch (...) {
  return;  // no memory for a server's name: it is not judged
}

std::optional<Hedging::Seconds> Hedging::patience(std::string_view authority) const {
  const std::scoped_lock lock(mutex_);
  const auto found = servers_.find(authority);
  return found == servers_.end() ? std::nullopt : found->second.patience;
}

bool Hedging::spend(std::uint64_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  const double counted = bytes > kLargeBytes ? static_cast<double>(bytes) : 0;
  if (saved_ < 1 || saved_bytes_ < counted) return false;
  saved_ -= 1;
  saved_bytes_ -= counted;
  return true;
}

}  // namespace penstock::io::remote
