#pragma once

/// For programs that use LibTorch: tensors both ways without a copy (`to_torch`, `from_torch`), checkpoints for modules
/// with `load_state_dict`, batches for torch::data with `TorchBatches`. Header-only. It is not part of penstock.h,
/// because it needs LibTorch's own headers: those that it uses, and not all of torch/torch.h, which takes half as long
/// again. It links nothing that the program does not link already.

#include <torch/data/datasets/stateful.h>
#include <torch/nn/module.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "penstock/error.h"
#include "penstock/flag.h"
#include "penstock/load.h"
#include "penstock/loader.h"
#include "penstock/save.h"
#include "penstock/tensor.h"
#include "penstock/text_view.h"

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

[[noreturn]] inline void throw_no_memory(const std::string& what) {
  throw Error(ErrorCode::kUnsupported, "found a torch tensor " + what + "; give one whose memory is there");
}

/// The first byte of the tensor's storage. kUnsupported when some elements have no memory: meta, fake, functional and
/// zero tensors have none, and torch lets programs free or shorten a storage under its tensors.
inline void* memory_of(const at::Tensor& tensor) try {
  if (!tensor.has_storage()) throw_no_memory("that has no storage");
  if (tensor.numel() == 0) return nullptr;
  const at::Storage& storage = tensor.storage();
  if (storage.device().type() != tensor.device().type()) throw_no_memory("that has no memory");
  const std::size_t needed = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size(),
                                                              static_cast<std::size_t>(tensor.storage_offset()));
  if (storage.nbytes() < needed) {
    throw_no_memory("whose storage was freed or resized: it has " + std::to_string(storage.nbytes()) +
                    " bytes, and the elements need " + std::to_string(needed));
  }
  if (tensor.is_meta() || storage.data() == nullptr) throw_no_memory("that has no memory");
  return storage.mutable_data();
} catch (const c10::Error& error) {
  throw_no_memory(std::string("that does not say where its elements lie (") + error.what_without_backtrace() + ")");
}

/// The same for the tensor `name` of the file that is to be read into it.
inline void require_memory(const at::Tensor& place, const std::string& path, const std::string& name) try {
  memory_of(place);
} catch (const Error& error) {
  throw error.within({.path = path, .tensor = name});
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

/// A torch tensor over the same memory, which lives as long as either. Read-only memory (a mapped file) is copied,
/// because torch has no read-only tensors. For a device tensor, the caller orders torch's work after work that is under
/// way.
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

/// A Tensor over the same memory, which lives as long as either; requires_grad is carried along as a flag. kUnsupported
/// for layouts other than strided, for lazy conj and neg bits (resolve them first), for devices other than cpu and
/// cuda, and for tensors without all of their memory (freed, shorter than the tensor needs, zero and fake tensors).
inline Tensor from_torch(const at::Tensor& tensor) {
  if (!tensor.defined()) detail::throw_no_memory("that is not defined");
  if (tensor.layout() != at::kStrided || tensor.is_conj() || tensor.is_neg() || tensor.is_quantized()) {
    throw Error(ErrorCode::kUnsupported,
                "found a torch tensor that is not its elements one by one (sparse, quantized, conj or neg), expected a "
                "strided one; call to_dense(), dequantize(), resolve_conj() or resolve_neg() on it");
  }
  const Device device = detail::from_torch(tensor.device());
  auto owner = std::make_shared<const at::Tensor>(tensor.detach());
  void* const data = detail::memory_of(*owner);
  const std::size_t bytes = data == nullptr ? 0 : owner->storage().nbytes();
  const Buffer buffer =
      device.type == DeviceType::kCpu ? Buffer::wrap(data, bytes, owner) : Buffer::wrap(data, bytes, device, owner);
  const std::size_t offset =
      data == nullptr ? 0 : static_cast<std::size_t>(owner->storage_offset()) * owner->element_size();
  return Tensor(buffer, from_torch(owner->scalar_type()), detail::shape_of(owner->sizes()),
                detail::shape_of(owner->strides()), offset)
      .with_requires_grad(tensor.requires_grad());
}

/// The same content as torch's own nested values: dicts with keys that are strings or integers, lists, tuples, numbers,
/// strings, None, and tensors as `to_torch` gives them. Shared parts stay shared. kUnsupported says which value torch
/// has no counterpart for, and where it lies; kLimit for content that holds itself.
inline c10::IValue to_ivalue(const Value& value);

struct LoadStateDictOptions {
  /// The part of the file that is the module's state dict, a key as of Archive::part ("model_state_dict"). Only its
  /// bytes are read. Empty: the whole file.
  std::string key = {};
  /// A prefix that the names in the file have before those of the module, as of Archive::with_prefix ("module.").
  std::string prefix = {};
  /// Require that the file has every parameter and buffer, and nothing else.
  Flag strict = true;
  /// Move the module to this device first.
  std::optional<at::Device> device = {};
  Flag verify = true;
};

/// Names that the file lacked, and names that the module lacks. Both lists are empty when `strict`.
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

/// A hint for a name that the file lacks: where the file may have it.
inline std::string elsewhere(const IncompatibleKeys& keys) {
  const std::string end = "." + keys.missing.front();
  for (const std::string& name : keys.unexpected) {
    if (name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0) {
      return "; it has \"" + name + "\": choose the part that is the module's by the options' key or prefix";
    }
  }
  return {};
}

inline void require_all(const IncompatibleKeys& keys, const std::string& path) {
  if (!keys.missing.empty()) {
    throw Error(ErrorCode::kKeyNotFound,
                "the file lacks what the module has: " + listed(keys.missing) + elsewhere(keys), {path});
  }
  if (!keys.unexpected.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the file has what the module lacks: " + listed(keys.unexpected), {path});
  }
}

inline Archive open_state_dict(TextView path, const LoadStateDictOptions& options) {
  Archive archive = open(path, {.verify = options.verify});
  if (!options.key.empty()) archive = archive.part(std::string_view(options.key));
  if (!options.prefix.empty()) archive = archive.with_prefix(options.prefix);
  const Value& content = archive.structure();
  if (!content.is(Value::Kind::kDict)) {
    throw Error(ErrorCode::kDTypeMismatch,
                "found " + (content.is(Value::Kind::kTensor) ? "a tensor by itself" : content.to_string()) +
                    ", expected a state dict, which is a dict of tensors by name; choose the part of the file that is "
                    "one by the options' key",
                {archive.path()});
  }
  return archive;
}

/// Keys whose values are no tensors and hold none.
inline void add_other_keys(const Value& state, std::vector<std::string>& out) {
  using Kind = Value::Kind;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto [key, item] = state.item(i);
    const bool may_hold_tensors = item.is(Kind::kTensor) || item.is(Kind::kObject) || item.size() > 0;
    if (!may_hold_tensors) out.push_back(key.is(Kind::kString) ? key.as_string() : key.to_string());
  }
}

}  // namespace detail

/// Reads a state dict (`.pt` of Python, `.safetensors`) into the module's parameters and buffers. On the CPU the bytes
/// go straight into their memory, and are converted where dtypes differ. requires_grad stays as the module has it.
/// Names and shapes are checked before anything changes: kKeyNotFound (missing), kInvalidArgument (unexpected),
/// kShapeMismatch, kDTypeMismatch (no dict), kUnsupported (parameters without memory: meta, freed). Of tied parameters,
/// the tensor of the last one counts.
inline IncompatibleKeys load_state_dict(torch::nn::Module& module, TextView path,
                                        const LoadStateDictOptions& options = {}) {
  const Archive archive = detail::open_state_dict(path, options);
  IncompatibleKeys keys;
  std::vector<std::pair<std::size_t, at::Tensor>> found;
  const auto entries = archive.entries();
  std::unordered_map<std::string_view, std::size_t> positions;
  for (std::size_t i = 0; i < entries.size(); ++i) positions.emplace(entries[i].name, i);
  std::vector<bool> wanted(entries.size(), false);
  for (const auto& [name, tensor] : detail::tensors_of(module)) {
    const auto at = positions.find(name);
    if (at == positions.end()) {
      keys.missing.push_back(name);
      continue;
    }
    const Shape shape = detail::shape_of(tensor.sizes());
    const Shape& stored = entries[at->second].shape;
    if (stored != shape) {
      throw Error(ErrorCode::kShapeMismatch,
                  "the file has shape " + stored.to_string() + " where the module has " + shape.to_string(),
                  {.path = archive.path(), .tensor = name});
    }
    wanted[at->second] = true;
    found.emplace_back(at->second, tensor);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!wanted[i]) keys.unexpected.push_back(entries[i].name);
  }
  detail::add_other_keys(archive.structure(), keys.unexpected);
  if (options.strict) detail::require_all(keys, archive.path());
  const torch::NoGradGuard no_grad;
  if (options.device) module.to(*options.device);
  std::vector<Placement> placements;
  std::unordered_map<const void*, std::size_t> placed;
  std::vector<std::pair<std::size_t, at::Tensor>> elsewhere;
  for (const auto& [index, parameter] : found) {
    // Moving a module replaces the memory behind its parameters' handles, not the handles.
    const at::Tensor place = parameter.detach();
    detail::require_memory(place, archive.path(), entries[index].name);
    if (!place.is_cpu()) {
      elsewhere.emplace_back(index, place);
      continue;
    }
    const Placement placement{index, from_torch(place)};
    const auto [at, is_new] = placed.try_emplace(placement.to.data(), placements.size());
    if (is_new || place.numel() == 0) {
      placements.push_back(placement);
    } else {
      placements[at->second] = placement;
    }
  }
  for (const auto& [index, place] : elsewhere) place.copy_(to_torch(archive.entry(index).load()));
  archive.load_into(placements, {.verify = options.verify});
  return keys;
}

/// The parameters and buffers of a module by name, as Python's `state_dict()` has them. Tensors share the module's
/// memory. The errors of `from_torch`, with the parameter's name.
inline Value state_dict(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, Value>> items;
  for (const auto& [name, tensor] : detail::tensors_of(module)) {
    try {
      items.emplace_back(name, from_torch(tensor.detach()));
    } catch (const Error& error) {
      throw error.within({.tensor = name});
    }
  }
  return Value::dict(std::move(items), "OrderedDict");
}

/// Writes the parameters and buffers of a module by name: a state dict that `load_state_dict` reads, here and in
/// Python. The extension of the path chooses the format (`.pt`, `.safetensors`, `.npz`). Tensors of devices are copied
/// to the host. Tied parameters stay tied in a `.pt`, and are kUnsupported in `.safetensors`. The errors of `save`, and
/// those of `from_torch` with the parameter's name.
inline void save_state_dict(const torch::nn::Module& module, TextView path, const SaveOptions& options = {}) try {
  save(state_dict(module), path, options);
} catch (const Error& error) {
  throw error.within({.path = std::string(std::string_view(path))});
}

namespace detail {

[[noreturn]] inline void throw_no_ivalue(const Value& value, const std::string& place) {
  throw Error(ErrorCode::kUnsupported, "torch has no value for " + value.to_string() +
                                           (place.empty() ? std::string() : ", which lies at " + place) +
                                           "; leave it out of the samples, or take batches from the DataLoader itself");
}

inline std::string joined(const std::string& place, const std::string& step) {
  return place.empty() ? step : place + "." + step;
}

/// A value as torch's own. Dicts, lists and tuples that several ways lead to are made once, and stay shared.
class IValueMaker {
 public:
  c10::IValue value_of(const Value& value, const std::string& place, int depth) {
    constexpr int kDeepest = 1000;
    if (depth == kDeepest) {
      throw Error(ErrorCode::kLimit, "the content nests deeper than 1000 levels, or holds itself, at " + place);
    }
    switch (value.kind()) {
      case Value::Kind::kNone:
        return {};
      case Value::Kind::kBool:
        return value.as_bool();
      case Value::Kind::kInt:
        return value.as_int();
      case Value::Kind::kFloat:
        return value.as_float();
      case Value::Kind::kComplex:
        return c10::complex<double>(value.as_complex());
      case Value::Kind::kString:
        return value.as_string();
      case Value::Kind::kTensor:
        return to_torch(value.as_tensor());
      case Value::Kind::kDict:
      case Value::Kind::kList:
      case Value::Kind::kTuple:
        return container_of(value, place, depth + 1);
      default:
        throw_no_ivalue(value, place);
    }
  }

 private:
  c10::IValue container_of(const Value& value, const std::string& place, int depth) {
    if (const auto found = made_.find(value.node_id()); found != made_.end()) return found->second;
    c10::IValue made = value.is(Value::Kind::kDict) ? dict_of(value, place, depth) : sequence_of(value, place, depth);
    made_.emplace(value.node_id(), made);
    return made;
  }

  c10::IValue dict_of(const Value& value, const std::string& place, int depth) {
    const auto are = [&value](Value::Kind kind) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (!value.item(i).first.is(kind)) return false;
      }
      return true;
    };
    const bool by_text = are(Value::Kind::kString);
    if (!by_text && !are(Value::Kind::kInt)) throw_no_ivalue(value, place);
    c10::impl::GenericDict out(by_text ? c10::TypePtr(c10::StringType::get()) : c10::TypePtr(c10::IntType::get()),
                               c10::AnyType::get());
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto [key, item] = value.item(i);
      const std::string step = by_text ? key.as_string() : std::to_string(key.as_int());
      out.insert(by_text ? c10::IValue(step) : c10::IValue(key.as_int()), value_of(item, joined(place, step), depth));
    }
    return out;
  }

  c10::IValue sequence_of(const Value& value, const std::string& place, int depth) {
    std::vector<c10::IValue> items;
    for (std::size_t i = 0; i < value.size(); ++i) {
      items.push_back(value_of(value[i], joined(place, std::to_string(i)), depth));
    }
    if (value.is(Value::Kind::kTuple)) return c10::ivalue::Tuple::create(std::move(items));
    c10::impl::GenericList out(c10::AnyType::get());
    for (c10::IValue& item : items) out.push_back(std::move(item));
    return out;
  }

  std::unordered_map<const void*, c10::IValue> made_;  ///< by the containers' nodes, which the whole value keeps
};

/// The tensors of a batch that is nothing but tensors, in order.
inline void add_tensors(const Value& value, const std::string& place, std::vector<at::Tensor>& out) {
  if (value.is(Value::Kind::kTensor)) {
    out.push_back(to_torch(value.as_tensor()));
  } else if (value.is(Value::Kind::kTuple) || value.is(Value::Kind::kList)) {
    for (std::size_t i = 0; i < value.size(); ++i) add_tensors(value[i], joined(place, std::to_string(i)), out);
  } else {
    throw Error(
        ErrorCode::kUnsupported,
        "found " + value.to_string() + (place.empty() ? std::string() : " at " + place) +
            " in a batch, and TorchBatches gives tensors without their keys and nothing else; TorchValues gives "
            "dicts, numbers and strings too");
  }
}

/// What TorchBatches and TorchValues have in common: a DataLoader as one of torch::data's datasets.
template <class Self, class Content>
class TorchLoader : public torch::data::datasets::StatefulDataset<Self, Content> {
 public:
  TorchLoader(const Dataset& dataset, const LoaderOptions& options)
      : loader_(std::make_shared<DataLoader>(dataset, options)) {}

  c10::optional<Content> get_batch(std::size_t) override {
    const std::optional<Batch> batch = loader_->next();
    if (!batch) return c10::nullopt;
    return Self::content_of(batch->value);
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
  std::shared_ptr<DataLoader> loader_;
};

}  // namespace detail

inline c10::IValue to_ivalue(const Value& value) { return detail::IValueMaker().value_of(value, {}, 0); }

/// Batches of a DataLoader for torch::data::make_data_loader. Give torch's loader no workers, because the DataLoader
/// has its own. A batch is its tensors in order: {images, labels} for zip(). Samples with keys, numbers or strings do
/// not fit into a vector of tensors and are kUnsupported; TorchValues takes them. The batch size that torch::data asks
/// for is ignored; that of the LoaderOptions counts.
class TorchBatches : public detail::TorchLoader<TorchBatches, std::vector<at::Tensor>> {
 public:
  using TorchLoader::TorchLoader;

  static std::vector<at::Tensor> content_of(const Value& batch) {
    std::vector<at::Tensor> out;
    detail::add_tensors(batch, {}, out);
    return out;
  }
};

/// The same with everything in a batch, as torch's own nested values: batch.toGenericDict().at("image").toTensor().
class TorchValues : public detail::TorchLoader<TorchValues, c10::IValue> {
 public:
  using TorchLoader::TorchLoader;

  static c10::IValue content_of(const Value& batch) { return to_ivalue(batch); }
};

}  // namespace penstock
