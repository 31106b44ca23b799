// Permute, crop and flip change how an element's indices become its place in the source, and no bytes. Each of them
// changes all views alike: the one of the source, and those of parameters such as a mean for each channel. Random
// places come from the sample's own random numbers, so that they do not depend on which thread asks.

#include "data/transform/geometry.h"

#include <algorithm>

#include "core/format.h"
#include "ops/philox.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

std::string text_of(const std::vector<std::int64_t>& shape) { return Shape(std::span(shape)).to_string(); }

[[noreturn]] void throw_outside(std::string_view what, std::int64_t begin, std::int64_t size, std::size_t dim,
                                const std::vector<std::int64_t>& shape) {
  throw Error(ErrorCode::kShapeMismatch,
              core::format("{} asks for [{}, {}) of dimension {}, but the tensor has shape {}; pad it first or ask for "
                           "less",
                           what, begin, begin + size, dim, text_of(shape)));
}

}  // namespace

std::int64_t Draws::below(std::int64_t bound) noexcept {
  // Not exactly uniform: a value is off by at most 2^-53 of the bound, which no test can see.
  return std::min(static_cast<std::int64_t>(uniform() * static_cast<double>(bound)), bound - 1);
}

double Draws::uniform() noexcept { return ops::uniform_of(ops::philox(key_, next_++).low()); }

std::size_t checked_dim(std::int64_t dim, const std::vector<std::int64_t>& shape, std::string_view what) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (dim >= -rank && dim < rank) return static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
  throw Error(ErrorCode::kShapeMismatch,
              core::format("{} names dimension {}, but the tensor has shape {}", what, dim, text_of(shape)));
}

std::vector<std::size_t> checked_dims(const Dims& dims, std::size_t count, const std::vector<std::int64_t>& shape,
                                      std::string_view what) {
  std::vector<std::size_t> out;
  if (!dims.empty()) {
    for (const std::int64_t dim : dims) {
      const std::size_t found = checked_dim(dim, shape, what);
      if (std::find(out.begin(), out.end(), found) != out.end()) {
        throw Error(ErrorCode::kInvalidArgument, core::format("{} names dimension {} twice", what, found));
      }
      out.push_back(found);
    }
    return out;
  }
  if (count > shape.size()) {
    throw Error(ErrorCode::kShapeMismatch,
                core::format("{} is of {} dimensions, but the tensor has shape {}", what, count, text_of(shape)));
  }
  for (std::size_t dim = shape.size() - count; dim < shape.size(); ++dim) out.push_back(dim);
  return out;
}

Geometry::Geometry(const Shape& sizes, const Strides& strides) : shape(sizes.begin(), sizes.end()) {
  views.push_back({.base = 0, .steps = {strides.begin(), strides.end()}});
}

void Geometry::permute(const PermuteOp& op) {
  const std::vector<std::size_t> order = checked_dims(op.dims, 0, shape, "permute");
  if (order.size() != rank()) {
    throw Error(ErrorCode::kShapeMismatch, core::format("permute names {} dimensions, but the tensor has shape {}; "
                                                        "name each of them once",
                                                        order.size(), text_of(shape)));
  }
  std::vector<std::int64_t> moved;
  moved.reserve(order.size());
  for (const std::size_t dim : order) moved.push_back(shape[dim]);
  shape = std::move(moved);
  for (View& view : views) view.permute(order);
}

void Geometry::crop(const CropOp& op, Draws* draws) {
  const std::string_view what = op.name();
  const std::vector<std::size_t> dims = checked_dims(op.dims, op.size.size(), shape, what);
  if (draws != nullptr) draws->go_to(op.key, op.first_draw);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    std::int64_t& size = shape[dims[i]];
    const std::int64_t room = size - op.size[i];
    const std::int64_t asked = op.place == CropOp::Place::kAt ? op.begin[i] : 0;
    if (room < 0 || asked > room) throw_outside(what, asked, op.size[i], dims[i], shape);
    std::int64_t begin = asked;
    // torchvision rounds room / 2 to the nearest even number, so for a room of 3, 7, 11, ... the larger half is in
    // front.
    if (op.place == CropOp::Place::kCenter) begin = room / 2 + ((room % 4 == 3) ? 1 : 0);
    if (op.place == CropOp::Place::kRandom && draws != nullptr) {
      begin = op.room.empty() ? draws->below(room + 1) : draws->below(op.room[i] + 1) * op.scale;
    }
    for (View& view : views) view.begin_at(dims[i], begin);
    size = op.size[i];
  }
}

void Geometry::flip(const FlipOp& op, Draws* draws) {
  const std::vector<std::size_t> dims = checked_dims(op.dims, 1, shape, op.probability < 1 ? "random_flip" : "flip");
  if (draws != nullptr) draws->go_to(op.key, op.first_draw);
  if (op.probability < 1 && (draws == nullptr || draws->uniform() >= op.probability)) return;
  for (const std::size_t dim : dims) {
    for (View& view : views) view.flip(dim, shape[dim]);
  }
}

std::size_t Geometry::add_parameter(std::int64_t dim, std::size_t count) {
  View view{.base = 0, .steps = std::vector<std::int64_t>(rank(), 0)};
  if (count != 1) view.steps[checked_dim(dim, shape, "normalize")] = 1;
  views.push_back(std::move(view));
  return views.size() - 1;
}

}  // namespace penstock::data
