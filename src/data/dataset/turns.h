#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::data {

/// Weights of so many parts of a mixture as shares of 1. kInvalidArgument for weights that are negative, not finite, or
/// all zero, and for another number of them. `what` is "dataset".
std::vector<double> shares_of(std::size_t parts, std::string_view what, const std::vector<double>& weights);

/// Which part gives the next sample. After n samples each has given n times its share, up to less than one more or
/// less: of those that would not run ahead, the one whose next sample is due first. Source: R. Tijdeman, The chairman
/// assignment problem, Discrete Mathematics 32 (1980).
class Turns {
 public:
  explicit Turns(std::vector<double> shares);
  std::size_t next();
  /// Of part i, the last one of `next` included.
  std::int64_t given(std::size_t i) const { return given_[i]; }

 private:
  std::vector<double> shares_;
  std::vector<std::int64_t> given_;
  double ahead_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace penstock::data
