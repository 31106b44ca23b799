// The members of Dataset that name a transform. A mistake that the call alone shows is refused here. What does not suit
// a sample is refused when that sample is read, because only then its type and shape are known.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "data/transform/transformed.h"
#include "penstock/dataset.h"
#include "penstock/error.h"

namespace penstock {

namespace {

using Keys = std::vector<std::string>;

using core::refuse;

void require_finite(double value, std::string_view what) {
  if (!std::isfinite(value)) refuse(core::format("{} is {}; it must be a finite number", what, value));
}

void require_sizes(const std::vector<std::int64_t>& values, std::string_view what) {
  for (const std::int64_t value : values) {
    if (value < 0) refuse(core::format("{} of {}; it must not be negative", what, value));
  }
}

void require_dims(std::size_t sizes, const std::vector<std::int64_t>& dims, std::string_view what) {
  if (sizes == 0) refuse(core::format("{} of no dimension; name a size for one or more", what));
  if (!dims.empty() && dims.size() != sizes) {
    refuse(core::format("{} has {} for {}; give one for each", what, core::counted(sizes, "size"),
                        core::counted(dims.size(), "dimension")));
  }
}

void require_scales(const Scales& scales, const Keys& keys) {
  if (!keys.empty())
    refuse("random_crop has keys beside scales, which name the parts that are cropped; leave the keys out");
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::string& name = scales[i].first;
    const std::int64_t scale = scales[i].second;
    if (scale < 1) {
      refuse(core::format("random_crop has a scale of {} for {}; it must be 1 or more", scale, core::quoted(name)));
    }
    const auto same = [&](const auto& other) { return other.first == name; };
    if (std::any_of(scales.begin(), scales.begin() + static_cast<std::ptrdiff_t>(i), same)) {
      refuse(core::format("random_crop has two scales for {}; give one", core::quoted(name)));
    }
  }
}

}  // namespace

Dataset Dataset::cast(const DType& dtype, Flag strict, const Keys& keys) const {
  return data::transformed(*this, data::CastOp{dtype, strict}, keys);
}

Dataset Dataset::scale(double factor, const Keys& keys) const {
  require_finite(factor, "scale's factor");
  return data::transformed(*this, data::ScaleOp{factor}, keys);
}

Dataset Dataset::normalize(std::vector<double> mean, std::vector<double> std, std::int64_t dim,
                           const Keys& keys) const {
  if (mean.empty() || std.empty() || (mean.size() != std.size() && mean.size() != 1 && std.size() != 1)) {
    refuse(core::format("normalize has {} and {}; give as many of both, or one", core::counted(mean.size(), "mean"),
                        core::counted(std.size(), "deviation")));
  }
  for (const double value : mean) require_finite(value, "a mean of normalize");
  for (const double value : std) {
    require_finite(value, "a std of normalize");
    if (value == 0) refuse("a std of normalize is 0, which would make every value infinite");
    if (value < 0) refuse(core::format("a std of normalize is {}; it must be greater than 0", value));
  }
  return data::transformed(*this, data::NormalizeOp{std::move(mean), std::move(std), dim}, keys);
}

Dataset Dataset::clamp(double low, double high, const Keys& keys) const {
  if (std::isnan(low) || std::isnan(high)) refuse(core::format("clamp to [{}, {}]; give numbers", low, high));
  if (low > high) refuse(core::format("clamp to [{}, {}]; the first must not be larger", low, high));
  return data::transformed(*this, data::ClampOp{low, high}, keys);
}

Dataset Dataset::permute(std::vector<std::int64_t> dims, const Keys& keys) const {
  return data::transformed(*this, data::PermuteOp{std::move(dims)}, keys);
}

Dataset Dataset::crop(std::vector<std::int64_t> begin, std::vector<std::int64_t> size, std::vector<std::int64_t> dims,
                      const Keys& keys) const {
  require_dims(size.size(), dims, "crop");
  require_sizes(begin, "crop from the place");
  require_sizes(size, "crop to the size");
  if (begin.size() != size.size()) {
    refuse(core::format("crop has {} for {}; give one for each", core::counted(begin.size(), "place"),
                        core::counted(size.size(), "size")));
  }
  return data::transformed(
      *this, data::CropOp{data::CropOp::Place::kAt, std::move(begin), std::move(size), std::move(dims)}, keys);
}

Dataset Dataset::center_crop(std::vector<std::int64_t> size, std::vector<std::int64_t> dims, const Keys& keys) const {
  require_dims(size.size(), dims, "center_crop");
  require_sizes(size, "center_crop to the size");
  return data::transformed(*this, data::CropOp{data::CropOp::Place::kCenter, {}, std::move(size), std::move(dims)},
                           keys);
}

Dataset Dataset::random_crop(std::vector<std::int64_t> size, std::vector<std::int64_t> dims, const Keys& keys,
                             const Scales& scales) const {
  require_dims(size.size(), dims, "random_crop");
  require_sizes(size, "random_crop to the size");
  data::CropOp op{data::CropOp::Place::kRandom, {}, std::move(size), std::move(dims)};
  if (scales.empty()) return data::transformed(*this, std::move(op), keys);
  require_scales(scales, keys);
  return data::cropped_together(*this, std::move(op), scales);
}

Dataset Dataset::flip(std::vector<std::int64_t> dims, const Keys& keys) const {
  return data::transformed(*this, data::FlipOp{std::move(dims), 1}, keys);
}

Dataset Dataset::random_flip(std::vector<std::int64_t> dims, double probability, const Keys& keys) const {
  if (!(probability >= 0 && probability <= 1)) {
    refuse(core::format("random_flip with probability {}; it must be from 0 to 1", probability));
  }
  return data::transformed(*this, data::FlipOp{std::move(dims), probability}, keys);
}

Dataset Dataset::pad(std::vector<std::int64_t> before, std::vector<std::int64_t> after, double value,
                     std::vector<std::int64_t> dims, const Keys& keys) const {
  require_dims(before.size(), dims, "pad");
  require_sizes(before, "pad by a size");
  require_sizes(after, "pad by a size");
  if (before.size() != after.size()) {
    refuse(core::format("pad has {} in front and {} behind; give as many of both", core::counted(before.size(), "size"),
                        core::counted(after.size(), "size")));
  }
  return data::transformed(*this, data::PadOp{std::move(before), std::move(after), value, std::move(dims)}, keys);
}

Dataset Dataset::one_hot(std::int64_t classes, const Keys& keys) const {
  if (classes < 1) refuse(core::format("one_hot of {} classes; there must be one or more", classes));
  return data::transformed(*this, data::OneHotOp{classes}, keys);
}

}  // namespace penstock
