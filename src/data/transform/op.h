#pragma once

// The steps that a user names, as plain data. What each of them means is said where users meet them, in
// penstock/dataset.h; element_plan.cpp makes passes of them.

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "penstock/dtype.h"

namespace penstock::data {

/// Dimensions as the user gave them; negative ones count from the end. Empty stands for the last dimensions, as many as
/// there are sizes.
using Dims = std::vector<std::int64_t>;

struct CastOp {
  DType dtype;
  bool strict = false;
  friend bool operator==(const CastOp&, const CastOp&) = default;
};
struct ScaleOp {
  double factor = 1;
  friend bool operator==(const ScaleOp&, const ScaleOp&) = default;
};
struct NormalizeOp {
  std::vector<double> mean;
  std::vector<double> std;
  std::int64_t dim = 0;
  friend bool operator==(const NormalizeOp&, const NormalizeOp&) = default;
};
struct ClampOp {
  double low = 0;
  double high = 0;
  friend bool operator==(const ClampOp&, const ClampOp&) = default;
};
struct PermuteOp {
  Dims dims;
  friend bool operator==(const PermuteOp&, const PermuteOp&) = default;
};
struct CropOp {
  enum class Place : std::uint8_t { kAt, kCenter, kRandom };
  Place place = Place::kAt;
  std::vector<std::int64_t> begin;  ///< where `place` is kAt
  std::vector<std::int64_t> size;
  Dims dims;
  std::uint32_t first_draw = 0;  ///< how many random numbers of a sample the steps before it take
  /// Of a random place that several parts of a sample share: along each dimension it is one of room + 1, so many
  /// elements apart. Empty: the tensor has a place of its own, anywhere.
  std::vector<std::int64_t> room = {};
  std::int64_t scale = 1;
  friend bool operator==(const CropOp&, const CropOp&) = default;
};
struct FlipOp {
  Dims dims;
  double probability = 1;
  std::uint32_t first_draw = 0;  ///< as in CropOp
  friend bool operator==(const FlipOp&, const FlipOp&) = default;
};
struct PadOp {
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
  double value = 0;
  Dims dims;
  friend bool operator==(const PadOp&, const PadOp&) = default;
};
struct OneHotOp {
  std::int64_t classes = 0;
  friend bool operator==(const OneHotOp&, const OneHotOp&) = default;
};

using Op = std::variant<CastOp, ScaleOp, NormalizeOp, ClampOp, PermuteOp, CropOp, FlipOp, PadOp, OneHotOp>;

/// Whether random numbers decide what it does to a sample.
bool is_random(const Op& op) noexcept;
/// How many random numbers it draws for each sample.
std::uint32_t draws_of(const Op& op) noexcept;
/// The same op, but its random numbers follow the first `draws` of the sample, which earlier ops take.
Op behind(Op op, std::uint32_t draws);
/// "cast", "normalize": its name for users.
std::string_view name_of(const Op& op) noexcept;

}  // namespace penstock::data
