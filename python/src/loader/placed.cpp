// The rules of collation for tensors that are not Penstock's: C++ decides from their types and shapes where each goes
// in the batch, and torch puts them there.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bindings.h"
#include "data/collate/rule.h"
#include "data/dataset_impl.h"
#include "data/sample/scratch.h"
#include "interpreter/convert.h"
#include "penstock/collate.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

/// Samples of which nothing is known but their number.
class OthersSamples final : public detail::DatasetImpl {
 public:
  explicit OthersSamples(std::size_t size) : size_(static_cast<std::int64_t>(size)) {}
  std::int64_t size() const override { return size_; }
  std::string describe(std::int64_t) const override { return "of the batch"; }
  std::uint64_t read_bytes(std::int64_t) const override { return 0; }
  void fetch(std::span<const std::int64_t>, const data::Work&, std::span<data::Sample>) const override {
    throw Error(ErrorCode::kUnsupported, "these samples are not Penstock's to read");
  }

 private:
  std::int64_t size_;
};

data::StructurePtr structure_of(const std::vector<data::Leaf>& leaves) {
  auto out = std::make_shared<data::Structure>();
  out->leaves = leaves;
  return out;
}

data::TensorLayout layout_of(const std::string& dtype, const nb::handle shape) {
  const auto known = DType::from_name(dtype);
  const Shape sizes = shape_from(shape);
  return {known ? *known : DType::with_descr(DType::Code::kOpaque, 1, dtype), sizes, sizes.contiguous_strides()};
}

/// (the shape of the batch, the padded dimensions where lengths or a mask are asked for, the rows of the longest)
/// of one tensor of all samples; None where it is stacked.
Typed<std::optional<TupleOf<Sizes, ListOf<int>, int>>> placed(const Collate& collate,
                                                              const std::vector<std::string>& dtypes,
                                                              const nb::list& shapes, nb::handle key, nb::handle path) {
  const data::Leaf leaf{.path = name_from(path), .key = key.is_none() ? std::string() : name_from(key)};
  const data::StructurePtr structure = structure_of({leaf});
  std::vector<data::LayoutPtr> layouts;
  std::vector<data::Sample> samples;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    const auto layout = std::make_shared<data::Layout>();
    layout->structure = structure;
    layout->tensors.push_back(layout_of(dtypes[i], nb::object(shapes[i])));
    samples.emplace_back().layout = layouts.emplace_back(layout).get();
  }
  std::vector<std::int64_t> indices(samples.size());
  std::iota(indices.begin(), indices.end(), 0);
  const OthersSamples dataset(samples.size());
  const data::Fetched fetched{.dataset = dataset, .indices = indices, .samples = samples};
  const data::Column column(fetched, leaf);
  if (!collate.rule().takes(column)) return nb::none();
  data::BatchPlan plan;
  data::Arena arena;
  const data::Result result = collate.rule().place(column, plan, arena);
  const std::vector<std::size_t> dims = plan.derived.empty() ? std::vector<std::size_t>() : plan.derived.front().dims;
  return nb::make_tuple(tuple_of(plan.outputs[result.first].shape), nb::cast(dims), result.longest);
}

/// kKeyNotFound unless samples with these keys have all that the rule names.
void require_met(const Collate& collate, const nb::list& keys) {
  std::vector<data::Leaf> leaves;
  for (const nb::handle key : keys) leaves.push_back({.key = key.is_none() ? std::string() : name_from(key)});
  collate.rule().check(*structure_of(leaves));
}

}  // namespace

void bind_placed(nb::module_& module) {
  module.def("_placed", placed, nb::arg("collate"), nb::arg("dtypes"), nb::arg("shapes"), nb::arg("key").none(),
             nb::arg("path"));
  module.def("_require_met", require_met, nb::arg("collate"), nb::arg("keys"));
}

}  // namespace penstock::python
