#pragma once

// Comparisons in one run: the ways take turns, so that what disturbs the machine disturbs all of them.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/format.h"

namespace penstock::bench {

/// Seconds that `body` takes.
template <class Body>
double seconds_of(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Way {
  std::string name;
  std::function<double()> seconds;  ///< does the work once
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Runs every way once a round and prints for each: its median and best rate (`amount` / seconds, in `unit`), and the
/// median over rounds of its rate against that of the first way in the same round.
inline void compare(const std::string& title, double amount, const std::string& unit, const std::vector<Way>& ways,
                    std::size_t rounds) {
  std::vector<std::vector<double>> rates(ways.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t w = 0; w < ways.size(); ++w) rates[w].push_back(amount / ways[w].seconds());
  }
  core::print("{} ({} rounds)\n", title, rounds);
  for (std::size_t w = 0; w < ways.size(); ++w) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < rounds; ++round) ratios.push_back(rates[w][round] / rates[0][round]);
    core::print("  {:<44} median {:>7.2f}  best {:>7.2f} {:<10} ratio {:.2f}\n", ways[w].name, median(rates[w]),
                *std::max_element(rates[w].begin(), rates[w].end()), unit, median(ratios));
  }
}

}  // namespace penstock::bench
