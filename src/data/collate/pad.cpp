// Samples are padded at the ends of some of their dimensions, and stacked. The batch is decided from headers: each
// sample gets a slot of one shape, into which its bytes are read, and what lies beyond them is filled afterwards.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "data/collate/rule.h"

namespace penstock {

namespace {

using data::Column;

/// The sizes that padded dimensions get.
struct PadSizes {
  std::vector<std::int64_t> sizes = {};  ///< empty: the longest of the batch
  bool cuts = false;                     ///< what is longer is cut; else it is an error
};

/// The padded dimensions of one column, and their sizes in the slot.
struct Padded {
  std::vector<std::size_t> dims;
  Shape lengths;

  bool has(std::size_t dim) const { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }
};

class Pad final : public detail::CollateRule {
 public:
  Pad(PadOptions options, PadSizes to) : options_(std::move(options)), to_(std::move(to)) {
    if (!options_.dims.empty() && options_.dim != 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("found dim {} beside dims; name all dimensions in dims", options_.dim));
    }
  }

  void check(const data::Structure& structure) const override { data::require_keys(structure, options_.keys, "pad"); }

  bool takes(const Column& column) const override { return padded_dims(column).has_value(); }

  data::Result place(const Column& column, data::BatchPlan& plan, data::Arena&) const override {
    data::require_one_dtype(column);
    Padded padded{.dims = padded_dims(column).value(), .lengths = {}};
    check_shapes(column, padded);
    return add_outputs(column, plan, padded);
  }

 private:
  /// The dimensions to pad, or nothing when the column is to be stacked.
  std::optional<std::vector<std::size_t>> padded_dims(const Column& column) const {
    const std::vector<std::string>& keys = options_.keys;
    if (!keys.empty() && std::find(keys.begin(), keys.end(), column.leaf().key) == keys.end()) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(column[0].shape.rank());
    std::vector<std::size_t> out;
    for (const std::int64_t given : wanted_dims()) {
      const std::int64_t dim = given < 0 ? given + rank : given;
      if (dim < 0 || dim >= rank) {
        // Scalars and labels beside what is padded have fewer dimensions; a sample that is a tensor is what is meant.
        if (keys.empty() && !column.leaf().path.empty()) return std::nullopt;
        throw Error(ErrorCode::kShapeMismatch,
                    core::format("dimension {} cannot be padded, because {} has shape {}{}", given,
                                 column.fetched().describe(0), column[0].shape.to_string(), column.where()));
      }
      out.push_back(static_cast<std::size_t>(dim));
    }
    require_different(out, column);
    return out;
  }

  /// As they were given, negative ones counting from the last.
  std::vector<std::int64_t> wanted_dims() const {
    if (!options_.dims.empty()) return options_.dims;
    if (to_.cuts || to_.sizes.empty()) return {options_.dim};
    std::vector<std::int64_t> last;
    for (std::size_t i = 0; i < to_.sizes.size(); ++i)
      last.push_back(static_cast<std::int64_t>(i) - std::ssize(to_.sizes));
    return last;
  }

  /// Whether dimensions or sizes were given as a list.
  bool is_list() const noexcept { return !options_.dims.empty() || (!to_.sizes.empty() && !to_.cuts); }

  static void require_different(std::vector<std::size_t> dims, const Column& column) {
    std::sort(dims.begin(), dims.end());
    const auto twice = std::adjacent_find(dims.begin(), dims.end());
    if (twice == dims.end()) return;
    throw Error(ErrorCode::kInvalidArgument,
                core::format("dims name dimension {} of a tensor of shape {} twice{}; name each once", *twice,
                             column[0].shape.to_string(), column.where()));
  }

  /// Checks the dimensions that stay for equality, and finds the sizes of the others in the slot.
  void check_shapes(const Column& column, Padded& padded) const {
    for (const std::size_t dim : padded.dims) padded.lengths.push_back(column[0].shape[dim]);
    for (std::size_t i = 1; i < column.size() && !column.uniform(); ++i) {
      if (!fits(column[i].shape, column[0].shape, padded)) throw_other_shape(column, i, padded);
      for (std::size_t d = 0; d < padded.dims.size(); ++d) {
        padded.lengths[d] = std::max(padded.lengths[d], column[i].shape[padded.dims[d]]);
      }
    }
    if (!to_.sizes.empty()) {
      if (!to_.cuts) require_room(column, padded);
      padded.lengths = Shape(to_.sizes);
    }
    for (std::size_t i = 0; i < column.size(); ++i) require_sources(column, i, padded);
  }

  [[noreturn]] static void throw_other_shape(const Column& column, std::size_t position, const Padded& padded) {
    std::string dims;
    for (const std::size_t dim : padded.dims) dims += (dims.empty() ? "" : " and ") + std::to_string(dim);
    data::throw_shapes_differ(
        column, position,
        core::format("padding changes {} {} alone", padded.dims.size() == 1 ? "dimension" : "dimensions", dims),
        "make the other dimensions equal, or keep the tensors apart with ragged");
  }

  static bool fits(const Shape& a, const Shape& b, const Padded& padded) {
    if (a.rank() != b.rank()) return false;
    for (std::size_t d = 0; d < a.rank(); ++d) {
      if (a[d] != b[d] && !padded.has(d)) return false;
    }
    return true;
  }

  void require_room(const Column& column, const Padded& padded) const {
    for (std::size_t i = 0; i < column.size(); ++i) {
      for (std::size_t d = 0; d < padded.dims.size(); ++d) {
        const std::int64_t own = column[i].shape[padded.dims[d]];
        if (own <= to_.sizes[d]) continue;
        throw Error(
            ErrorCode::kShapeMismatch,
            core::format("{} has shape {}{}, which is larger than the {} to pad dimension {} to; choose a larger "
                         "size, cut it with crop or center_crop, or pad to the longest of the batch with pad",
                         column.fetched().describe(i), column[i].shape.to_string(), column.where(), to_.sizes[d],
                         padded.dims[d]));
      }
    }
  }

  /// Mirroring and repeating need elements to take.
  void require_sources(const Column& column, std::size_t position, const Padded& padded) const {
    const std::int64_t needed = options_.mode == PadMode::kReflect ? 2 : options_.mode == PadMode::kReplicate ? 1 : 0;
    for (std::size_t d = 0; d < padded.dims.size(); ++d) {
      const std::int64_t own = column[position].shape[padded.dims[d]];
      if (own >= padded.lengths[d] || own >= needed) continue;
      throw Error(
          ErrorCode::kShapeMismatch,
          core::format("{} has {} along dimension {}{}; padding by {} needs {} or more, padding with a constant none",
                       column.fetched().describe(position), core::counted(static_cast<std::uint64_t>(own), "element"),
                       padded.dims[d], column.where(),
                       options_.mode == PadMode::kReflect ? "reflection" : "replication", needed));
    }
  }

  data::Result add_outputs(const Column& column, data::BatchPlan& plan, const Padded& padded) const {
    const data::TensorLayout& first = column[0];
    const auto batch = static_cast<std::int64_t>(column.size());
    data::Padding padding{.slot = first.shape, .mode = options_.mode};
    for (std::size_t d = 0; d < padded.dims.size(); ++d) padding.slot[padded.dims[d]] = padded.lengths[d];
    if (options_.mode == PadMode::kConstant) padding.value = data::element_bytes(options_.value, first.dtype);

    const std::uint32_t values = plan.add(first.dtype, padding.slot.prepend(batch));
    const std::uint64_t slot_bytes = (plan.bytes - plan.outputs[values].offset) / column.size();
    plan.placements.push_back({.tensor = column.leaf().number,
                               .offset = plan.outputs[values].offset,
                               .pitch = slot_bytes,
                               .slots = {},
                               .padding = padding});
    plan.payload += slot_bytes * column.size();
    if (!options_.lengths && !options_.mask) return {.kind = data::Result::Kind::kTensor, .first = values};

    const auto derive = [&](data::Derived::Kind kind, const DType& dtype, const Shape& shape) {
      plan.derived.push_back({.kind = kind,
                              .output = plan.add(dtype, shape),
                              .number = column.leaf().number,
                              .dims = padded.dims,
                              .lengths = padded.lengths});
    };
    Shape each{batch};
    if (is_list()) each.push_back(std::ssize(padded.dims));
    if (options_.lengths) derive(data::Derived::Kind::kLengths, DType::int64, each);
    if (options_.mask) derive(data::Derived::Kind::kMask, DType::boolean, padded.lengths.prepend(batch));
    return {.kind = data::Result::Kind::kPadded, .first = values, .lengths = options_.lengths, .mask = options_.mask};
  }

  PadOptions options_;
  PadSizes to_;
};

void require_size(std::int64_t length) {
  if (length >= 0) return;
  throw Error(ErrorCode::kInvalidArgument, core::format("the length to pad to is {}; it must be 0 or more", length));
}

}  // namespace

Collate collate::pad(const PadOptions& options) { return Collate(std::make_shared<Pad>(options, PadSizes{})); }

Collate collate::pad_to(Integer length, const PadOptions& options) {
  require_size(length);
  if (!options.dims.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found one length to pad {} to; give a size for each, as a list",
                             core::counted(options.dims.size(), "dimension of dims", "dimensions of dims")));
  }
  return Collate(std::make_shared<Pad>(options, PadSizes{.sizes = {length}, .cuts = true}));
}

Collate collate::pad_to(const std::vector<std::int64_t>& sizes, const PadOptions& options) {
  for (const std::int64_t size : sizes) require_size(size);
  const std::size_t dims = options.dims.empty() ? sizes.size() : options.dims.size();
  if (sizes.empty() || sizes.size() != dims) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found {} to pad {} to; give one for each", core::counted(sizes.size(), "size"),
                             core::counted(dims, "dimension")));
  }
  return Collate(std::make_shared<Pad>(options, PadSizes{.sizes = sizes}));
}

}  // namespace penstock
