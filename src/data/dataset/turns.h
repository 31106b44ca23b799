#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::data {

/// Weights of so many parts of a mixture as shares of 1. kInvalidArgument for weights that are negative, not finite, or
/// all zero, and for another number of them. `what` is "dataset".
std::vector<double> shares_of(std::size_t parts, std::string_view what, const std::vector<double>& weights);

/// Which part gives the next sample. After n samples each has given n times its share, up to less than one more or
/// less: of those that would not run ahead, the one whose next sample is due first. Where all have given just their
/// shares, which whole weights do soon, the turns begin anew, so that they repeat. Source: R. Tijdeman, The chairman
/// assignment problem, Discrete Mathematics 32 (1980).
class Turns {
 public:
  /// Beyond, products of shares are not exact enough to tell whether turns begin anew.
  static constexpr std::int64_t kMostPeriod = 1 << 20;

  explicit Turns(std::vector<double> shares);
  std::size_t next();
  /// After how many turns they begin anew; 0 while that has not happened.
  std::int64_t period() const noexcept { return period_; }

 private:
  /// The least first; of equal ones the one of the lower part.
  template <class Key>
  using Queue = std::priority_queue<std::pair<Key, std::size_t>, std::vector<std::pair<Key, std::size_t>>,
                                    std::greater<std::pair<Key, std::size_t>>>;

  void begin();
  bool runs_ahead(std::size_t i, std::int64_t count) const noexcept;
  std::int64_t first_turn(std::size_t i) const noexcept;
  bool is_balanced(std::size_t last) const noexcept;

  std::vector<double> shares_;
  std::vector<std::int64_t> given_;  ///< of each part, since the turns began anew
  Queue<std::int64_t> waiting_;      ///< parts that would run ahead, by the turn from which on they do not
  Queue<double> due_;                ///< the others, by when their next sample is due
  double ahead_ = 0;
  std::int64_t count_ = 0;
  std::int64_t period_ = 0;
};

}  // namespace penstock::data
