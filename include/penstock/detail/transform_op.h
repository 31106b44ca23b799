#pragma once

// The native transforms as plain data: what a call of penstock/transforms.h asks for. The members there say what each
// of them means. One that may draw random numbers has `first_draw` and draws(), which is how many a sample takes.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/dtype.h"

namespace penstock {

/// Parts of a sample by name, and how many elements of each stand for one of a part of scale 1.
using Scales = std::vector<std::pair<std::string, std::int64_t>>;

namespace detail {

/// Dimensions as the user gave them; negative ones count from the end. Empty stands for the last dimensions, as many as
/// there are sizes.
using Dims = std::vector<std::int64_t>;

struct CastOp {
  static constexpr std::string_view name() noexcept { return "cast"; }
  DType dtype;
  bool strict = false;
  friend bool operator==(const CastOp&, const CastOp&) = default;
};
struct ScaleOp {
  static constexpr std::string_view name() noexcept { return "scale"; }
  double factor = 1;
  friend bool operator==(const ScaleOp&, const ScaleOp&) = default;
};
struct NormalizeOp {
  static constexpr std::string_view name() noexcept { return "normalize"; }
  std::vector<double> mean;
  std::vector<double> std;
  std::int64_t dim = 0;
  friend bool operator==(const NormalizeOp&, const NormalizeOp&) = default;
};
struct ClampOp {
  static constexpr std::string_view name() noexcept { return "clamp"; }
  double low = 0;
  double high = 0;
  friend bool operator==(const ClampOp&, const ClampOp&) = default;
};
struct PermuteOp {
  static constexpr std::string_view name() noexcept { return "permute"; }
  Dims dims;
  friend bool operator==(const PermuteOp&, const PermuteOp&) = default;
};
struct CropOp {
  enum class Place : std::uint8_t { kAt, kCenter, kRandom };
  Place place = Place::kAt;
  std::vector<std::int64_t> begin;  ///< where `place` is kAt
  std::vector<std::int64_t> size;
  Dims dims;
  Scales scales = {};            ///< of a random place: the parts that share it. Empty: each tensor has its own
  std::uint32_t first_draw = 0;  ///< how many random numbers of a sample the steps before it take
  /// Of a random place that several parts of a sample share: along each dimension it is one of room + 1, so many
  /// elements apart. Empty: the tensor has a place of its own, anywhere.
  std::vector<std::int64_t> room = {};
  std::int64_t scale = 1;
  constexpr std::string_view name() const noexcept {
    return place == Place::kAt ? "crop" : place == Place::kCenter ? "center_crop" : "random_crop";
  }
  std::uint32_t draws() const noexcept { return place == Place::kRandom ? static_cast<std::uint32_t>(size.size()) : 0; }
  friend bool operator==(const CropOp&, const CropOp&) = default;
};
struct FlipOp {
  Dims dims;
  double probability = 1;
  std::uint32_t first_draw = 0;  ///< as in CropOp
  constexpr std::string_view name() const noexcept { return probability < 1 ? "random_flip" : "flip"; }
  std::uint32_t draws() const noexcept { return probability < 1 ? 1 : 0; }
  friend bool operator==(const FlipOp&, const FlipOp&) = default;
};
struct PadOp {
  static constexpr std::string_view name() noexcept { return "pad"; }
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
  double value = 0;
  Dims dims;
  friend bool operator==(const PadOp&, const PadOp&) = default;
};
struct OneHotOp {
  static constexpr std::string_view name() noexcept { return "one_hot"; }
  std::int64_t classes = 0;
  friend bool operator==(const OneHotOp&, const OneHotOp&) = default;
};

using TransformOp = std::variant<CastOp, ScaleOp, NormalizeOp, ClampOp, PermuteOp, CropOp, FlipOp, PadOp, OneHotOp>;

}  // namespace detail
}  // namespace penstock
