// Memory of the program becomes the payload of a sample. Read-only memory is taken for a mapping of a file, which may
// be cut under us: it is copied under guard, as rows of a mapped file are. All other memory stays as it is.
#include "data/sample/value_samples.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/format.h"
#include "data/sample/blame.h"
#include "data/sample/held_file.h"
#include "data/sample/value_layout.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

constexpr std::string_view kAdvice = "give tensors, numbers and texts, and dicts, lists and tuples of them";

TensorLayout layout_of_tensor(const Value& value) {
  const Tensor& tensor = host_tensor(value);
  TensorLayout out(tensor.dtype(), tensor.shape(), tensor.strides());
  out.requires_grad = tensor.requires_grad();
  return out;
}

bool is_like(const TensorLayout& layout, const Tensor& tensor) {
  return layout.dtype == tensor.dtype() && layout.shape == tensor.shape() && layout.strides == tensor.strides() &&
         layout.requires_grad == tensor.requires_grad();
}

bool is_like(const TensorLayout& a, const TensorLayout& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides && a.requires_grad == b.requires_grad;
}

/// Whether the layout is that of a tensor by itself.
bool is_single(const Layout& layout) {
  return layout.structure->root.kind == Structure::Node::Kind::kLeaf && layout.tensors.size() == 1;
}

const HeldFile* mapped_memory() {
  static const HeldFile file("<memory>");
  return &file;
}

}  // namespace

const Tensor& host_tensor(const Value& value) {
  if (value.entry_index()) {
    throw Error(ErrorCode::kUnsupported, "a tensor of the sample is not loaded; give what load() gives");
  }
  const Tensor& tensor = value.as_tensor();
  if (tensor.device().type == DeviceType::kCpu) return tensor;
  throw Error(ErrorCode::kDeviceMismatch,
              core::format("a tensor of the sample lies on {}, but batches are put together in host memory; leave it "
                           "there, and give the loader a device",
                           tensor.device().to_string()));
}

void collect_tensors(const Value& value, std::vector<Tensor>& out) {
  switch (value.kind()) {
    case Value::Kind::kTensor:
      out.push_back(value.as_tensor());
      break;
    case Value::Kind::kDict:
      for (std::size_t i = 0; i < value.size(); ++i) collect_tensors(value.item(i).second, out);
      break;
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      for (std::size_t i = 0; i < value.size(); ++i) collect_tensors(value[i], out);
      break;
    default:
      break;
  }
}

std::uint64_t tensor_bytes(const Value& value) {
  std::vector<Tensor> tensors;
  collect_tensors(value, tensors);
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

LayoutPtr layout_of_value(const Value& value, StructureInterner& interner) {
  return value_layout(value, {}, layout_of_tensor, kAdvice, interner);
}

const Layout* ValueSamples::layout(const Value& value, Scratch& scratch) {
  if (value.is(Value::Kind::kTensor) && last_ && is_single(*last_) && !value.entry_index()) {
    const Tensor& tensor = value.as_tensor();
    const bool here = tensor.device().type == DeviceType::kCpu;
    if (here && is_like(last_->tensors[0], tensor)) return last_.get();
  }
  LayoutPtr layout = layout_of_value(value, scratch.structures);
  const auto same = [](const TensorLayout& a, const TensorLayout& b) { return is_like(a, b); };
  const bool as_before =
      last_ && layout->structure == last_->structure && layout->scalars.empty() &&
      std::equal(layout->tensors.begin(), layout->tensors.end(), last_->tensors.begin(), last_->tensors.end(), same);
  if (!as_before) {
    if (last_) scratch.objects.push_back(std::move(last_));  // samples before this one have it
    last_ = std::move(layout);
  }
  return last_.get();
}

Sample ValueSamples::sample(const Value& value, std::size_t position, const void* dataset,
                            const ExpectedSlots& expected, Scratch& scratch) {
  const Layout* const layout = this->layout(value, scratch);
  const std::size_t first = scratch.tensors.size();
  collect_tensors(value, scratch.tensors);
  const std::span<Payload> payloads = scratch.arena.array<Payload>(layout->tensors.size());
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    Tensor& tensor = scratch.tensors[first + i];
    const TensorLayout& like = layout->tensors[i];
    const std::byte* const data = tensor.data();
    if (data == nullptr) {
      payloads[i] = {};
    } else if (tensor.read_only()) {
      payloads[i] = {.place = InMapping{data, mapped_memory()}};
    } else {
      payloads[i] = {.place = InMemory{data}};
    }
    const bool awaited = expected.dataset == dataset && expected.tensor == i && expected.bytes == like.nbytes;
    if (awaited && like.contiguous && !tensor.read_only()) {
      std::byte* const slot = expected.slot(position);
      if (data != slot) std::memcpy(slot, data, like.nbytes);  // else a worker process has put it there
      payloads[i].place = InMemory{slot};
      tensor = {};
    }
  }
  return {layout, {payloads.data()}};
}

namespace {

void require_payload(const Work& work) {
  if (!work.call.headers_only) return;
  throw Error(ErrorCode::kUnsupported,
              "a function of the program makes the samples, so that no header tells their lengths; take the lengths "
              "of the dataset below it, or give a list of lengths");
}

void fail_naming_file(const detail::DatasetImpl& dataset, std::int64_t index, Sample& out, std::size_t position,
                      const Error& error, const Work& work) {
  const bool is_file = dataset.samples_are_files();
  fail(out, position, is_file ? error.within({.path = dataset.describe(index)}) : error, work.call, work.scratch);
}

/// How many samples go together: their bytes stay in a near cache between the two processes, and in the slots' copy.
struct Together final : Scratch::State {
  static constexpr std::uint64_t kBytes = std::uint64_t{512} << 10;
  static constexpr std::size_t kMost = 64;

  std::size_t samples = 4;

  void learn(std::span<const Called> called) {
    std::uint64_t bytes = 0;
    for (const Called& one : called) bytes += tensor_bytes(one.value);
    const std::uint64_t each = std::max<std::uint64_t>(1, bytes / called.size());
    samples = std::clamp<std::size_t>(static_cast<std::size_t>(kBytes / each), 1, kMost);
  }
};

}  // namespace

void fetch_values_together(const detail::DatasetImpl& dataset, std::span<const std::int64_t> indices, const Work& work,
                           std::span<Sample> out, const MakeSeveral& make) {
  require_payload(work);
  auto& together = work.scratch.state<Together>(&dataset);
  auto& samples = work.scratch.state<ValueSamples>(&dataset);
  const bool expected = work.slots.dataset == &dataset;
  for (std::size_t first = 0; first < indices.size();) {
    work.call.check_cancelled();
    const std::size_t count = std::min(together.samples, indices.size() - first);
    std::vector<Called> called =
        make(indices.subspan(first, count), expected ? work.slots.from(first) : ExpectedSlots{});
    together.learn(called);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = first + i;
      try {
        if (called[i].error) throw *std::exchange(called[i].error, std::nullopt);
        out[at] = samples.sample(called[i].value, at, &dataset, work.slots, work.scratch);
      } catch (const Error& error) {
        fail_naming_file(dataset, indices[at], out[at], at, error, work);
      }
      called[i].value = {};
      work.figures.clock.lap(Stage::kCopy, indices[at]);
    }
    first += count;
  }
}

void fetch_values(const detail::DatasetImpl& dataset, std::span<const std::int64_t> indices, const Work& work,
                  std::span<Sample> out) {
  require_payload(work);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    work.call.check_cancelled();
    try {
      const Value value = dataset.value(indices[i], work);
      out[i] = work.scratch.state<ValueSamples>(&dataset).sample(value, i, &dataset, work.slots, work.scratch);
    } catch (const SampleError& error) {
      fail(out[i], i, error.error(), work.call, work.scratch);
    } catch (const Error& error) {
      fail_naming_file(dataset, indices[i], out[i], i, error, work);
    }
    work.figures.clock.lap(Stage::kCopy, indices[i]);
  }
}

}  // namespace penstock::data
