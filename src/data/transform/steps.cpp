// What is refused in the call that names a transform, because it suits no sample.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "data/transform/op.h"

namespace penstock {

namespace {

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

void require_scales(const Scales& scales) {
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

/// Of all others each suits some sample.
void check(const auto&) {}

void check(const data::ScaleOp& op) { require_finite(op.factor, "scale's factor"); }

void check(const data::NormalizeOp& op) {
  const std::size_t means = op.mean.size();
  const std::size_t deviations = op.std.size();
  if (means == 0 || deviations == 0 || (means != deviations && means != 1 && deviations != 1)) {
    refuse(core::format("normalize has {} and {}; give as many of both, or one", core::counted(means, "mean"),
                        core::counted(deviations, "deviation")));
  }
  for (const double value : op.mean) require_finite(value, "a mean of normalize");
  for (const double value : op.std) {
    require_finite(value, "a std of normalize");
    if (value == 0) refuse("a std of normalize is 0, which would make every value infinite");
    if (value < 0) refuse(core::format("a std of normalize is {}; it must be greater than 0", value));
  }
}

void check(const data::ClampOp& op) {
  if (std::isnan(op.low) || std::isnan(op.high)) {
    refuse(core::format("clamp to [{}, {}]; give numbers", op.low, op.high));
  }
  if (op.low > op.high) refuse(core::format("clamp to [{}, {}]; the first must not be larger", op.low, op.high));
}

void check(const data::CropOp& op) {
  const std::string_view name = op.name();
  require_dims(op.size.size(), op.dims, name);
  require_sizes(op.begin, core::format("{} from the place", name));
  require_sizes(op.size, core::format("{} to the size", name));
  if (op.place == data::CropOp::Place::kAt && op.begin.size() != op.size.size()) {
    refuse(core::format("crop has {} for {}; give one for each", core::counted(op.begin.size(), "place"),
                        core::counted(op.size.size(), "size")));
  }
  require_scales(op.scales);
}

void check(const data::FlipOp& op) {
  if (!(op.probability >= 0 && op.probability <= 1)) {
    refuse(core::format("random_flip with probability {}; it must be from 0 to 1", op.probability));
  }
}

void check(const data::PadOp& op) {
  require_dims(op.before.size(), op.dims, "pad");
  require_sizes(op.before, "pad by a size");
  require_sizes(op.after, "pad by a size");
  if (op.before.size() != op.after.size()) {
    refuse(core::format("pad has {} in front and {} behind; give as many of both",
                        core::counted(op.before.size(), "size"), core::counted(op.after.size(), "size")));
  }
}

void check(const data::OneHotOp& op) {
  if (op.classes < 1) refuse(core::format("one_hot of {} classes; there must be one or more", op.classes));
}

}  // namespace

void data::require_sound(const Op& op) {
  std::visit([](const auto& one) { check(one); }, op);
}

}  // namespace penstock
