#pragma once

// For programs that use LibTorch: tensors both ways without a copy, checkpoints into modules, batches for torch::data.
// Header-only and not part of penstock.h: it needs LibTorch's own headers and links nothing but what the program links.

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/loader.h"
#include "penstock/tensor.h"

namespace penstock {

namespace detail {

struct TorchType {
  DType::Code code;
  at::ScalarType scalar;
};
/// The types that both have.
inline constexpr std::array kTorchTypes = {
    TorchType{DType::Code::kBool, at::kBool},
    TorchType{DType::Code::kUInt8, at::kByte},
    TorchType{DType::Code::kUInt16, at::kUInt16},
    TorchType{DType::Code::kUInt32, at::kUInt32},
    TorchType{DType::Code::kUInt64, at::kUInt64},
    TorchType{DType::Code::kInt8, at::kChar},
    TorchType{DType::Code::kInt16, at::kShort},
    TorchType{DType::Code::kInt32, at::kInt},
    TorchType{DType::Code::kInt64, at::kLong},
    TorchType{DType::Code::kFloat16, at::kHalf},
    TorchType{DType::Code::kBFloat16, at::kBFloat16},
    TorchType{DType::Code::kFloat32, at::kFloat},
    TorchType{DType::Code::kFloat64, at::kDouble},
    TorchType{DType::Code::kComplex32, at::kComplexHalf},
    TorchType{DType::Code::kComplex64, at::kComplexFloat},
    TorchType{DType::Code::kComplex128, at::kComplexDouble},
    TorchType{DType::Code::kFloat8E4M3FN, at::kFloat8_e4m3fn},
    TorchType{DType::Code::kFloat8E5M2, at::kFloat8_e5m2},
    TorchType{DType::Code::kFloat8E4M3FNUZ, at::kFloat8_e4m3fnuz},
    TorchType{DType::Code::kFloat8E5M2FNUZ, at::kFloat8_e5m2fnuz},
    TorchType{DType::Code::kFloat8E8M0FNU, at::kFloat8_e8m0fnu},
};

inline Shape shape_of(at::IntArrayRef sizes) { return Shape(std::span(sizes.data(), sizes.size())); }

inline at::Device to_torch(Device device) {
  if (device.type == DeviceType::kCpu) return {at::kCPU};
  return {at::kCUDA, static_cast<at::DeviceIndex>(device.index)};
}

inline Device from_torch(at::Device device) {
  if (device.is_cpu()) return {};
  if (device.is_cuda()) return {DeviceType::kCuda, device.index()};
  throw Error(ErrorCode::kUnsupported, "found a torch tensor on " + device.str() + ", expected one on cpu or cuda");
}

}  // namespace detail

/// torch's type of the same elements; kUnsupported for types that torch does not have (text, dates, structures).
inline at::ScalarType to_torch(const DType& dtype) {
  for (const detail::TorchType& row : detail::kTorchTypes) {
    if (row.code == dtype.code()) return row.scalar;
  }
  throw Error(ErrorCode::kUnsupported, "torch has no type for " + std::string(dtype.name()));
}

/// The DType of the same elements; kUnsupported for quantized and sub-byte types.
inline DType from_torch(at::ScalarType scalar) {
  for (const detail::TorchType& row : detail::kTorchTypes) {
    if (row.scalar == scalar) return {row.code};
  }
  throw Error(ErrorCode::kUnsupported, std::string("Penstock has no type for torch's ") + at::toString(scalar));
}

/// A torch tensor over the same memory, which lives as long as either. Read-only memory (a mapped file) is copied, as
/// torch knows no tensors that refuse to be written. Of a device tensor, work that is under way is ordered by the
/// caller.
inline at::Tensor to_torch(const Tensor& tensor) {
  const Tensor source = tensor.read_only() ? tensor.clone() : tensor;
  const at::IntArrayRef sizes(source.shape().dims().data(), source.shape().rank());
  const at::IntArrayRef strides(source.strides().dims().data(), source.strides().rank());
  const auto options = at::TensorOptions().dtype(to_torch(source.dtype())).device(detail::to_torch(source.device()));
  std::byte* const data = source.data();
  return at::from_blob(
             data, sizes, strides, [source](void*) {}, options)
      .set_requires_grad(tensor.requires_grad());
}

/// A Tensor over the same memory, which lives as long as either; requires_grad is carried along as a mark. kUnsupported
/// for layouts other than strided, for lazy conj and neg bits (resolve them first) and for other devices than cpu and
/// cuda.
inline Tensor from_torch(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || tensor.is_conj() || tensor.is_neg() || tensor.is_quantized()) {
    throw Error(ErrorCode::kUnsupported,
                "found a torch tensor that is not its elements one by one (sparse, quantized, conj or neg), expected a "
                "strided one; call to_dense(), dequantize(), resolve_conj() or resolve_neg() on it");
  }
  const Device device = detail::from_torch(tensor.device());
  auto owner = std::make_shared<const at::Tensor>(tensor.detach());
  const std::size_t bytes = owner->storage().nbytes();
  void* const data = owner->storage().mutable_data();
  const Buffer buffer =
      device.type == DeviceType::kCpu ? Buffer::wrap(data, bytes, owner) : Buffer::wrap(data, bytes, device, owner);
  const std::size_t offset = static_cast<std::size_t>(owner->storage_offset()) * owner->element_size();
  return Tensor(buffer, from_torch(owner->scalar_type()), detail::shape_of(owner->sizes()),
                detail::shape_of(owner->strides()), offset)
      .with_requires_grad(tensor.requires_grad());
}

struct LoadStateDictOptions {
  /// Every parameter and buffer is in the file, and nothing else is.
  bool strict = true;
  /// Moves the module there first.
  std::optional<at::Device> device = {};
  bool verify_checksums = true;
};

/// What a file lacked and what was left over, when that is allowed.
struct IncompatibleKeys {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
};

namespace detail {

inline std::vector<std::pair<std::string, at::Tensor>> tensors_of(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (const auto& item : module.named_parameters()) out.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) out.emplace_back(item.key(), item.value());
  return out;
}

inline std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "\"" : ", \"") + name + "\"";
  return out;
}

inline void require_all(const IncompatibleKeys& keys, const std::string& path) {
  if (!keys.missing.empty()) {
    throw Error(ErrorCode::kKeyNotFound, "the file lacks what the module has: " + listed(keys.missing), {path});
  }
  if (!keys.unexpected.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the file has what the module lacks: " + listed(keys.unexpected), {path});
  }
}

}  // namespace detail

/// Reads a state dict (`.pt` of Python, `.safetensors`) into the module's parameters and buffers, straight into their
/// memory on the CPU, converting where types differ. requires_grad stays as the module has it. Names and shapes are
/// checked before anything is touched: kKeyNotFound, kInvalidArgument (unexpected), kShapeMismatch.
inline IncompatibleKeys load_state_dict(torch::nn::Module& module, std::string_view path,
                                        const LoadStateDictOptions& options = {}) {
  const Archive archive = open(path, {.verify_checksums = options.verify_checksums});
  IncompatibleKeys keys;
  std::vector<std::pair<std::size_t, at::Tensor>> found;
  const auto entries = archive.entries();
  std::vector<bool> wanted(entries.size(), false);
  for (const auto& [name, tensor] : detail::tensors_of(module)) {
    const auto at = std::find_if(entries.begin(), entries.end(), [&](const TensorEntry& e) { return e.name == name; });
    if (at == entries.end()) {
      keys.missing.push_back(name);
      continue;
    }
    const Shape shape = detail::shape_of(tensor.sizes());
    if (at->shape != shape) {
      throw Error(ErrorCode::kShapeMismatch,
                  "the file has shape " + at->shape.to_string() + " where the module has " + shape.to_string(),
                  {.path = archive.path(), .tensor = name});
    }
    const auto index = static_cast<std::size_t>(at - entries.begin());
    wanted[index] = true;
    found.emplace_back(index, tensor);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!wanted[i]) keys.unexpected.push_back(entries[i].name);
  }
  if (options.strict) detail::require_all(keys, archive.path());
  const torch::NoGradGuard no_grad;
  if (options.device) module.to(*options.device);
  std::vector<Placement> placements;
  for (const auto& [index, parameter] : found) {
    // Moving a module replaces the memory behind its parameters' handles, not the handles.
    const at::Tensor place = parameter.detach();
    if (place.is_cpu()) {
      placements.push_back({index, from_torch(place)});
    } else {
      place.copy_(to_torch(archive.entry(index).load()));
    }
  }
  archive.load_into(placements, {.verify_checksums = options.verify_checksums});
  return keys;
}

/// Batches of a DataLoader for torch::data::make_data_loader (without workers of its own: the DataLoader has some).
/// A batch is its tensors in order: {images, labels} for zip(). The batch size that torch::data asks for is not looked
/// at; the loader's own counts.
class TorchBatches : public torch::data::datasets::StatefulDataset<TorchBatches, std::vector<at::Tensor>> {
 public:
  TorchBatches(const Dataset& dataset, const LoaderOptions& options)
      : loader_(std::make_shared<DataLoader>(dataset, options)) {}

  c10::optional<std::vector<at::Tensor>> get_batch(std::size_t) override {
    const std::optional<Batch> batch = loader_->next();
    if (!batch) return c10::nullopt;
    std::vector<at::Tensor> out;
    collect(batch->value, out);
    return out;
  }
  /// Batches in an epoch.
  c10::optional<std::size_t> size() const override { return static_cast<std::size_t>(loader_->size()); }
  void reset() override { loader_->restart(); }
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("position", c10::IValue(loader_->position().to_json()));
  }
  void load(torch::serialize::InputArchive& archive) override {
    c10::IValue position;
    archive.read("position", position);
    loader_->seek(LoaderPosition::from_json(position.toStringRef()));
  }
  DataLoader& loader() noexcept { return *loader_; }

 private:
  static void collect(const Value& value, std::vector<at::Tensor>& out) {
    if (value.is(Value::Kind::kTensor)) {
      out.push_back(to_torch(value.as_tensor()));
    } else if (value.is(Value::Kind::kDict)) {
      for (std::size_t i = 0; i < value.size(); ++i) collect(value.item(i).second, out);
    } else if (value.is(Value::Kind::kTuple) || value.is(Value::Kind::kList)) {
      for (std::size_t i = 0; i < value.size(); ++i) collect(value[i], out);
    }
  }

  std::shared_ptr<DataLoader> loader_;
};

}  // namespace penstock
