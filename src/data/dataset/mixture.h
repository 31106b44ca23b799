#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "penstock/mix.h"

namespace penstock::data {

/// The order of a mixture of datasets: which sample of which part each of its samples is. It keeps one period of the
/// turns (Turns), in a byte or two for each; only weights whose turns do not repeat within a million keep all of them.
/// Immutable; any thread.
class Mixture {
 public:
  /// `sizes` and `shares` of the parts. A part with a share has samples.
  Mixture(std::vector<std::int64_t> sizes, const std::vector<double>& shares, const MixOptions& options);

  std::int64_t size() const noexcept { return size_; }
  /// Sample i of the mixture, counted through the parts one behind the other.
  std::int64_t index(std::int64_t i) const noexcept;

 private:
  std::size_t part_at(std::int64_t turn) const noexcept;
  std::int64_t count_in(std::int64_t first, std::int64_t last, std::size_t part) const noexcept;
  void keep(std::size_t part);
  std::int64_t end_by_size(const std::vector<double>& shares, MixEnd end) const;

  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> begins_;  ///< of each part among all samples
  /// Which part has each turn of the period.
  std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>, std::vector<std::uint32_t>> turns_;
  std::int64_t period_ = 0;          ///< turns that are kept
  std::int64_t block_ = 0;           ///< turns for which `given_` has one entry
  std::vector<std::int64_t> given_;  ///< for each block, what each part has given in the period before it
  std::vector<std::int64_t> each_;   ///< what each part gives in a period
  std::int64_t size_ = 0;
};

}  // namespace penstock::data
