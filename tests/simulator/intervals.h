#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace penstock::simulator {

/// A set of bytes by position, kept as half-open stretches.
class Intervals {
 public:
  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    auto at = stretches_.upper_bound(begin);
    if (at != stretches_.begin() && std::prev(at)->second >= begin) --at;
    while (at != stretches_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = stretches_.erase(at);
    }
    stretches_.emplace(begin, end);
  }

  void remove(std::uint64_t begin, std::uint64_t end) {
    auto at = stretches_.upper_bound(begin);
    if (at != stretches_.begin()) --at;
    while (at != stretches_.end() && at->first < end) {
      const auto [first, last] = *at;
      if (last <= begin) {
        ++at;
        continue;
      }
      at = stretches_.erase(at);
      if (first < begin) stretches_.emplace(first, begin);
      if (last > end) stretches_.emplace(end, last);
    }
  }

  /// Whether every byte is in it; true for no bytes.
  bool covers(std::uint64_t begin, std::uint64_t end) const {
    if (begin >= end) return true;
    const auto at = stretches_.upper_bound(begin);
    return at != stretches_.begin() && std::prev(at)->second >= end;
  }

  /// Makes [to, to + bytes) what [from, from + bytes) of `other`, which may be this set, is.
  void copy(const Intervals& other, std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
    const std::map<std::uint64_t, std::uint64_t> source = other.stretches_;
    remove(to, to + bytes);
    for (const auto& [first, last] : source) {
      const std::uint64_t begin = std::max(first, from);
      const std::uint64_t end = std::min(last, from + bytes);
      if (begin < end) add(to + (begin - from), to + (end - from));
    }
  }

 private:
  std::map<std::uint64_t, std::uint64_t> stretches_;
};

}  // namespace penstock::simulator
