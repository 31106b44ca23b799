#pragma once

// What `penstock bench` compares with: the same bytes with no library in between.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/tensor.h"

namespace penstock::cli {

/// What the machine does with the same bytes and no library in between.
struct Floor {
  std::string what = {};  ///< "open+fstat+read+close by 2 threads"
  double samples_per_second = 0;
  double bytes_per_second = 0;

  /// Not so where files are read by URL.
  bool is_measured() const noexcept { return !what.empty(); }
};

/// A floor is measured for at least this long, by several passes where one is shorter.
inline constexpr double kLeastFloorSeconds = 0.02;

/// Opens, stats, reads whole and closes each file of `paths`, in order, shared out over `threads`. There is at
/// least one.
Floor file_floor(const std::vector<std::string>& paths, std::size_t threads);
/// The same for copies by memcpy of `order`'s rows (dimension 0) of every tensor in `columns`.
Floor row_floor(const std::vector<Tensor>& columns, const std::vector<std::int64_t>& order, std::size_t threads);

}  // namespace penstock::cli
