// A batch is fetched and planned as for the host first. That plan tells which columns are stacked, and for these each
// sample's conversion is replaced by its first part, which may be none at all: then the payload is moved as it lies,
// like that of a dataset without transforms. Behind the copy, the steps that are left run on the whole column with the
// kernels of penstock/ops.h, which give the bits that the host gives.

#include "data/batch/device_steps.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "penstock/ops.h"

namespace penstock::data {

namespace {

constexpr std::size_t kKeptSteps = 64;

/// The values of a normalize step as a tensor that is broadcast over the batch.
Tensor broadcast_along(const std::vector<double>& values, std::int64_t dim, const Tensor& batch, const DType& dtype) {
  std::vector<std::int64_t> sizes(batch.shape().rank(), 1);
  if (values.size() > 1) sizes[static_cast<std::size_t>(dim) + 1] = static_cast<std::int64_t>(values.size());
  const Tensor host = Tensor::of(values).to(dtype).reshape(Shape(std::span<const std::int64_t>(sizes)));
  return host.to(batch.device());
}

const Placement* placement_of(const BatchPlan& plan, std::uint32_t tensor) {
  const auto found = std::find_if(plan.placements.begin(), plan.placements.end(),
                                  [&](const Placement& one) { return one.tensor == tensor; });
  return found == plan.placements.end() ? nullptr : &*found;
}

}  // namespace

/// A sample's layout and conversions, cut in two.
struct DeviceSteps::Cut {
  struct CutTensor {
    const Conversion* from = nullptr;             ///< null: the tensor has no conversion
    std::optional<DeviceSplit> split = {};        ///< none: nothing is left to the device
    std::unique_ptr<const Conversion> here = {};  ///< null: the payload is moved as it lies
    std::optional<TensorLayout> between = {};     ///< what goes to the device
  };

  LayoutPtr from;
  std::vector<CutTensor> parts;  ///< one for each tensor
  /// The layout of samples of which the tensors in `chosen` are cut.
  std::vector<bool> chosen = {};
  LayoutPtr to = {};

  explicit Cut(const Sample& sample) : from(sample.layout->shared_from_this()), parts(from->tensors.size()) {
    for (std::size_t t = 0; t < parts.size(); ++t) {
      parts[t].from = sample.payloads[t].conversion;
      if (parts[t].from != nullptr) cut(parts[t], sample.payloads[t].in_large_file());
    }
  }

  bool is_of(const Sample& sample) const {
    if (sample.layout != from.get()) return false;
    for (std::size_t t = 0; t < parts.size(); ++t) {
      if (sample.payloads[t].conversion != parts[t].from) return false;
    }
    return true;
  }

 private:
  static void cut(CutTensor& part, bool in_file) {
    const TensorLayout& input = part.from->input();
    part.split = split_for_device(part.from->ops(), input);
    if (!part.split) return;
    // A large file's payload may lie there in another order than its conversion is given, which only that knows.
    if (part.split->here.empty() && !in_file) {
      part.between = input;
      return;
    }
    if (part.split->here.empty()) part.split->here.emplace_back(CastOp{input.dtype});
    part.here = std::make_unique<const Conversion>(part.split->here, input, part.from->keeps_order());
    part.between = part.here->output();
  }
};

/// The values that normalize steps take, on a device.
struct DeviceSteps::Parameters {
  std::vector<Op> steps;
  DType dtype;
  std::size_t rank = 0;
  Device device;
  std::vector<Tensor> values = {};  ///< a mean and a deviation for each of them
};

DeviceSteps::DeviceSteps() = default;
DeviceSteps::~DeviceSteps() = default;

DeviceSteps::CutPtr DeviceSteps::cut_of(const Sample& sample) {
  if (!of_batch_.empty() && of_batch_.back()->is_of(sample)) return of_batch_.back();
  const auto known = std::find_if(cuts_.begin(), cuts_.end(), [&](const CutPtr& one) { return one->is_of(sample); });
  if (known != cuts_.end()) return *known;
  if (cuts_.size() == kKeptSteps) cuts_.erase(cuts_.begin());
  return cuts_.emplace_back(std::make_shared<Cut>(sample));
}

bool DeviceSteps::leaves_the_same(const Placement& placement, const Output& output) const {
  // The kernels' results lie in C order.
  const bool stacked = placement.slots.empty() && !placement.padding && placement.order == SlotOrder::kRows;
  const Cut::CutTensor& first = of_batch_.front()->parts[placement.tensor];
  if (!stacked || !first.split || output.shape.rank() != first.between->shape.rank() + 1) return false;
  return std::all_of(of_batch_.begin(), of_batch_.end(), [&](const CutPtr& cut) {
    const Cut::CutTensor& part = cut->parts[placement.tensor];
    if (&part == &first) return true;
    return part.split && part.between->dtype == first.between->dtype && part.split->there == first.split->there;
  });
}

Sample DeviceSteps::changed(const Sample& sample, Cut& cut, const std::vector<bool>& chosen, Arena& arena) const {
  if (cut.chosen != chosen) {
    auto to = std::make_shared<Layout>(*cut.from);
    for (const Left& left : left_) to->tensors[left.tensor] = *cut.parts[left.tensor].between;
    cut.to = std::move(to);
    cut.chosen = chosen;
  }
  const std::span<Payload> payloads = arena.array<Payload>(cut.parts.size());
  std::copy_n(sample.payloads, payloads.size(), payloads.begin());
  for (const Left& left : left_) payloads[left.tensor].conversion = cut.parts[left.tensor].here.get();
  return {cut.to.get(), {payloads.data()}};
}

bool DeviceSteps::take(Fetched& fetched, const BatchPlan& plan, Arena& arena) {
  left_.clear();
  of_batch_.clear();
  if (!fetched.columns.empty()) return false;  // rows as they are
  const Layout& first = *fetched.samples[0].layout;
  const auto converts = [](const Payload& payload) { return payload.conversion != nullptr; };
  const std::span<const Payload> payloads(fetched.samples[0].payloads, first.tensors.size());
  if (plan.by_sample || std::none_of(payloads.begin(), payloads.end(), converts)) return false;
  for (const Sample& sample : fetched.samples) of_batch_.push_back(cut_of(sample));
  for (std::size_t i = 0; i < plan.results.size(); ++i) {
    const Leaf& leaf = first.structure->leaves[i];
    if (leaf.kind != LeafKind::kTensor || plan.results[i].kind != Result::Kind::kTensor) continue;
    const Placement* const placement = placement_of(plan, leaf.number);
    const std::uint32_t output = plan.results[i].first;
    if (placement == nullptr || !leaves_the_same(*placement, plan.outputs[output])) continue;
    left_.push_back({leaf.number, output});
  }
  if (left_.empty()) return false;
  std::vector<bool> chosen(first.tensors.size());
  for (const Left& left : left_) chosen[left.tensor] = true;
  const std::span<Sample> samples = arena.array<Sample>(fetched.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = changed(fetched.samples[i], *of_batch_[i], chosen, arena);
  }
  const auto uniform = [&](const Sample& sample) { return sample.layout == samples[0].layout; };
  fetched.samples = samples;
  fetched.uniform = std::all_of(samples.begin(), samples.end(), uniform);
  return true;
}

const DeviceSteps::Parameters& DeviceSteps::parameters(const std::vector<Op>& steps, const Tensor& batch) {
  const auto known = std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameters& one) {
    return one.dtype == batch.dtype() && one.rank == batch.shape().rank() && one.device == batch.device() &&
           one.steps == steps;
  });
  if (known != parameters_.end()) return *known;
  Parameters made{.steps = steps, .dtype = batch.dtype(), .rank = batch.shape().rank(), .device = batch.device()};
  DType dtype = batch.dtype();
  for (const Op& op : steps) {
    if (const auto* const cast = std::get_if<CastOp>(&op)) dtype = cast->dtype;
    const auto* const normalize = std::get_if<NormalizeOp>(&op);
    if (normalize == nullptr) continue;
    // They are rounded to the tensor's type, as on the host (element_plan.cpp).
    made.values.push_back(broadcast_along(normalize->mean, normalize->dim, batch, dtype));
    made.values.push_back(broadcast_along(normalize->std, normalize->dim, batch, dtype));
  }
  if (parameters_.size() == kKeptSteps) parameters_.erase(parameters_.begin());
  return parameters_.emplace_back(std::move(made));
}

Tensor DeviceSteps::run(const std::vector<Op>& steps, const Tensor& batch) {
  const Parameters& known = parameters(steps, batch);
  auto value = known.values.begin();
  // A step in place would be computed beside its operand and copied over it, which takes longer.
  Tensor out = batch;
  for (const Op& op : steps) {
    if (const auto* const cast = std::get_if<CastOp>(&op)) {
      out = out.to(cast->dtype);
    } else if (const auto* const scale = std::get_if<ScaleOp>(&op)) {
      out = out * scale->factor;
    } else {
      out = out - *value++;
      out = out / *value++;
    }
  }
  return out;
}

DeviceSteps::Made DeviceSteps::run(const BatchPlan& plan, const Buffer& block) {
  Made made(plan.outputs.size());
  for (const Left& left : left_) {
    const Output& output = plan.outputs[left.output];
    const Tensor batch(block, output.dtype, output.shape, output.strides, static_cast<std::size_t>(output.offset));
    made[left.output] = run(of_batch_.front()->parts[left.tensor].split->there, batch);
  }
  return made;
}

}  // namespace penstock::data
