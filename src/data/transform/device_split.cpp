// Moves (permute, crop, flip) and arithmetic may change places, because arithmetic looks at one element at a time and
// the values of normalize move along with their dimension. So behind the cut all moves are still done here, where they
// make the sample smaller or cost nothing, and arithmetic is done there. What pad and one_hot give depends on what
// stands before them, and a strict cast must name the sample that it refuses: the cut lies behind these.

#include "data/transform/device_split.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "data/transform/conversion.h"
#include "data/transform/geometry.h"

namespace penstock::data {
namespace {

/// Whether a random move takes other places of a dimension for each sample, along which `view` has other values.
bool varies(const std::vector<std::size_t>& dims, const View& view) {
  return std::any_of(dims.begin(), dims.end(), [&](std::size_t dim) { return view.steps[dim] != 0; });
}

/// Takes the ops behind a cut one by one. Each `add` says whether the cut may lie before this op.
class Tail {
 public:
  explicit Tail(const TensorLayout& at_cut) : geometry_(at_cut.shape, at_cut.strides) {}

  bool add(const Op& op) {
    return std::visit([&](const auto& one) { return add(one, op); }, op);
  }

  std::vector<Op> moves() { return std::move(moves_); }

  std::vector<Op> arithmetic() {
    std::size_t view = 1;  // behind that of the source
    for (Op& op : arithmetic_) {
      if (auto* const normalize = std::get_if<NormalizeOp>(&op)) settle(*normalize, geometry_.views[view++]);
    }
    return std::move(arithmetic_);
  }

 private:
  bool add(const CastOp& cast, const Op& op) { return !cast.strict && leave(op); }
  bool add(const ScaleOp&, const Op& op) { return leave(op); }
  bool add(const NormalizeOp& normalize, const Op& op) {
    geometry_.add_parameter(normalize.dim, std::max(normalize.mean.size(), normalize.std.size()));
    return leave(op);
  }
  bool add(const PermuteOp& permute, const Op& op) {
    geometry_.permute(permute);
    return move(op);
  }
  bool add(const CropOp& crop, const Op& op) {
    const std::vector<std::size_t> dims = checked_dims(crop.dims, crop.size.size(), geometry_.shape, name_of(op));
    if (is_random(op) && parameter_varies(dims)) return false;
    geometry_.crop(crop, nullptr);
    return move(op);
  }
  bool add(const FlipOp& flip, const Op& op) {
    if (is_random(op) && parameter_varies(checked_dims(flip.dims, 1, geometry_.shape, name_of(op)))) return false;
    geometry_.flip(flip, nullptr);
    return move(op);
  }
  /// All others are done here.
  bool add(const auto&, const Op&) { return false; }

  bool leave(const Op& op) {
    arithmetic_.push_back(op);
    return true;
  }
  bool move(const Op& op) {
    moves_.push_back(op);
    return true;
  }

  bool parameter_varies(const std::vector<std::size_t>& dims) const {
    return std::any_of(geometry_.views.begin() + 1, geometry_.views.end(),
                       [&](const View& view) { return varies(dims, view); });
  }

  /// Writes the values in the order of the finished sample.
  void settle(NormalizeOp& op, const View& view) const {
    const auto moved = std::find_if(view.steps.begin(), view.steps.end(), [](std::int64_t step) { return step != 0; });
    const bool one = moved == view.steps.end();
    op.dim = one ? 0 : moved - view.steps.begin();
    const std::int64_t count = one ? 1 : geometry_.shape[static_cast<std::size_t>(op.dim)];
    const std::int64_t step = one ? 0 : *moved;
    for (std::vector<double>* const values : {&op.mean, &op.std}) {
      if (values->size() == 1) continue;
      std::vector<double> placed;
      for (std::int64_t i = 0; i < count; ++i)
        placed.push_back((*values)[static_cast<std::size_t>(view.base + i * step)]);
      *values = std::move(placed);
    }
  }

  Geometry geometry_;
  std::vector<Op> moves_;
  std::vector<Op> arithmetic_;
};

std::optional<DeviceSplit> split_at(std::size_t cut, const std::vector<Op>& ops, const TensorLayout& at_cut) {
  Tail tail(at_cut);
  for (std::size_t i = cut; i < ops.size(); ++i) {
    if (!tail.add(ops[i])) return std::nullopt;
  }
  DeviceSplit out{.here = {ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(cut)}, .there = tail.arithmetic()};
  for (Op& op : tail.moves()) out.here.push_back(std::move(op));
  return out;
}

}  // namespace

std::optional<DeviceSplit> split_for_device(const std::vector<Op>& ops, const TensorLayout& input) {
  std::size_t least = Conversion(ops, input).output().dtype.itemsize();
  std::optional<DeviceSplit> best;
  for (std::size_t cut = ops.size(); cut-- > 0;) {
    const Conversion before({ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(cut)}, input);
    const std::size_t size = before.output().dtype.itemsize();
    if (size >= least) continue;
    auto split = split_at(cut, ops, before.output());
    if (!split) return best;  // an earlier cut would leave the same op to the device
    best = std::move(split);
    least = size;
  }
  return best;
}

}  // namespace penstock::data
