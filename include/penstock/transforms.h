#pragma once

/// What happens to tensors on their way into a batch: members that datasets and streams have alike.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/dtype.h"
#include "penstock/flag.h"
#include "penstock/integer.h"

namespace penstock {

/// Parts of a sample by name, and how many elements of each stand for one of a part of scale 1.
using Scales = std::vector<std::pair<std::string, std::int64_t>>;

// The transforms as plain data: what a member of Transforms asks for. One that may draw random numbers has `first_draw`
// and draws(), which is how many of them a sample takes.
namespace detail::steps {

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
  std::uint32_t key = 0;         ///< they are drawn by this one of the sample's keys
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
  std::uint32_t key = 0;         ///< as in CropOp
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

}  // namespace detail::steps

/// The native transforms. Each gives a dataset (or stream: `Self`) of the same samples, whose tensors are changed while
/// they are moved into the batch, in one pass over the bytes:
/// `rows("images.npy").permute({2, 0, 1}).cast(DType::float32).scale(1 / 255.0)`.
///
/// A loader with a device does there what makes elements larger. Values are those of PyTorch and torchvision for the
/// same steps on the host, bit for bit, in both cases. `keys` names the parts of a dict that are meant (by the key of
/// the innermost dict around them); without it all tensors are. Dimensions are those of a sample, negative ones count
/// from the end. Errors about the call itself are kInvalidArgument; those about a sample (kDTypeMismatch,
/// kShapeMismatch, kKeyNotFound) come when it is read, and name it.
template <class Self>
class Transforms {
 public:
  using Keys = std::vector<std::string>;

  /// The values in another type, by the rules of Tensor::to. `strict`: a value that the type has no number for (300 as
  /// uint8, NaN as int32, 1e300 as float32, 1+2i as float32) is kInvalidArgument instead of what the processor makes of
  /// it. Rounding, and the cutting off of a fraction, are allowed.
  Self cast(const DType& dtype, Flag strict = false, const Keys& keys = {}) const {
    return then(detail::steps::CastOp{dtype, strict}, keys);
  }
  /// x * factor. Floating-point tensors; cast others first. Computed in the tensor's type, as PyTorch does: float16 and
  /// bfloat16 in float32, and rounded.
  Self scale(double factor, const Keys& keys = {}) const { return then(detail::steps::ScaleOp{factor}, keys); }
  /// (x - mean[c]) / std[c], where c is the place along `dim`; one mean or deviation stands for all channels.
  /// Deviations are greater than 0. Floating-point tensors, as for scale.
  Self normalize(std::vector<double> mean, std::vector<double> std, Integer dim = 0, const Keys& keys = {}) const {
    return then(detail::steps::NormalizeOp{std::move(mean), std::move(std), dim}, keys);
  }
  /// The nearest value in [low, high]. NaN stays NaN. For integers the bounds must be numbers of their type.
  Self clamp(double low, double high, const Keys& keys = {}) const {
    return then(detail::steps::ClampOp{low, high}, keys);
  }
  /// Dimension i of the result is dimension dims[i]: {2, 0, 1} makes (channel, height, width) of (height, width,
  /// channel). Names every dimension.
  Self permute(std::vector<std::int64_t> dims, const Keys& keys = {}) const {
    return then(detail::steps::PermuteOp{std::move(dims)}, keys);
  }
  /// [begin[i], begin[i] + size[i]) of dimension dims[i]; without `dims`, of the last dimensions. kShapeMismatch where
  /// that reaches beyond the tensor.
  Self crop(std::vector<std::int64_t> begin, std::vector<std::int64_t> size, std::vector<std::int64_t> dims = {},
            const Keys& keys = {}) const {
    return then(
        detail::steps::CropOp{detail::steps::CropOp::Place::kAt, std::move(begin), std::move(size), std::move(dims)},
        keys);
  }
  /// The middle, as torchvision's center_crop; kShapeMismatch where the tensor is smaller.
  Self center_crop(std::vector<std::int64_t> size, std::vector<std::int64_t> dims = {}, const Keys& keys = {}) const {
    return then(detail::steps::CropOp{detail::steps::CropOp::Place::kCenter, {}, std::move(size), std::move(dims)},
                keys);
  }
  /// A crop at a place that is drawn for each sample from the loader's seed, the epoch and the sample's index: the same
  /// for any number of workers and in a resumed run. Datasets that are zipped draw alike where their random steps are
  /// alike, so that an image and its mask are cropped and flipped together. `get` draws as epoch 0 of seed 0.
  ///
  /// With `scales`, the parts that it names are cropped at one place, whatever their sizes and rates: `{{"audio", 160},
  /// {"mel", 1}}` for 160 elements of audio to one of mel. `size` counts at scale 1, so that each part keeps its scale
  /// times as much, from its scale times the place that was drawn. The place is one that all of these parts have room
  /// at. A name is the key of a part, as in `keys`, or its number where samples are tuples ("0"). Excludes `keys`;
  /// parts without a scale stay as they are. kInvalidArgument for a scale below 1, and a name that comes twice.
  Self random_crop(std::vector<std::int64_t> size, std::vector<std::int64_t> dims = {}, const Keys& keys = {},
                   const Scales& scales = {}) const {
    return then(
        detail::steps::CropOp{detail::steps::CropOp::Place::kRandom, {}, std::move(size), std::move(dims), scales},
        keys);
  }
  /// In the opposite order along these dimensions; without any, along the last.
  Self flip(std::vector<std::int64_t> dims = {}, const Keys& keys = {}) const {
    return then(detail::steps::FlipOp{std::move(dims)}, keys);
  }
  /// A flip of all these dimensions with this probability, drawn as for random_crop.
  Self random_flip(std::vector<std::int64_t> dims = {}, double probability = 0.5, const Keys& keys = {}) const {
    return then(detail::steps::FlipOp{std::move(dims), probability}, keys);
  }
  /// `before[i]` and `after[i]` elements of this value more along dims[i]; without `dims`, along the last dimensions.
  /// kInvalidArgument for a value that the type has no number for.
  Self pad(std::vector<std::int64_t> before, std::vector<std::int64_t> after, double value = 0,
           std::vector<std::int64_t> dims = {}, const Keys& keys = {}) const {
    return then(detail::steps::PadOp{std::move(before), std::move(after), value, std::move(dims)}, keys);
  }
  /// For class numbers (integers): a last dimension of `classes` more, int64, 1 at the class and 0 elsewhere, as
  /// torch.nn.functional.one_hot. kInvalidArgument for a class outside [0, classes).
  Self one_hot(Integer classes, const Keys& keys = {}) const { return then(detail::steps::OneHotOp{classes}, keys); }

 private:
  Self then(detail::steps::TransformOp op, const Keys& keys) const {
    return static_cast<const Self&>(*this).transformed(std::move(op), keys);
  }
};

}  // namespace penstock
