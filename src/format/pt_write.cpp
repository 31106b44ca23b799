#include "format/pt_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/pickle/pickle_writer.h"
#include "format/pickle/world.h"
#include "format/pt_storages.h"
#include "format/zip_writer.h"
#include "io/crc32.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

using Kind = Value::Kind;
using pickle::PickleWriter;
using enum DType::Code;

constexpr std::size_t kAlignment = 64;

/// torch's class for a storage of that type, or empty where it has none: such tensors lie in untyped storages.
std::string_view storage_class(DType::Code code) {
  switch (code) {
    case kFloat32:
      return "FloatStorage";
    case kFloat64:
      return "DoubleStorage";
    case kFloat16:
      return "HalfStorage";
    case kBFloat16:
      return "BFloat16Storage";
    case kInt64:
      return "LongStorage";
    case kInt32:
      return "IntStorage";
    case kInt16:
      return "ShortStorage";
    case kInt8:
      return "CharStorage";
    case kUInt8:
      return "ByteStorage";
    case kBool:
      return "BoolStorage";
    case kComplex64:
      return "ComplexFloatStorage";
    case kComplex128:
      return "ComplexDoubleStorage";
    case kQInt8:
      return "QInt8Storage";
    case kQUInt8:
      return "QUInt8Storage";
    case kQInt32:
      return "QInt32Storage";
    default:
      return {};
  }
}

bool is_quantized(DType::Code code) { return code >= kQInt8 && code <= kQUInt2x4; }

/// The composite tensors of torch_composites.cpp: their function, and how many of the items it takes.
struct Composite {
  std::string_view type_name;
  std::string_view layout;  ///< sparse: its name; empty: nested
};
constexpr Composite kComposites[] = {
    {"torch.sparse_coo_tensor", "torch.sparse_coo"}, {"torch.sparse_csr_tensor", "torch.sparse_csr"},
    {"torch.sparse_csc_tensor", "torch.sparse_csc"}, {"torch.sparse_bsr_tensor", "torch.sparse_bsr"},
    {"torch.sparse_bsc_tensor", "torch.sparse_bsc"}, {"torch.nested_tensor", {}},
};

class PtWriter {
 public:
  explicit PtWriter(const Value& value);
  void write(io::ByteSink& sink, std::string_view path) const;

 private:
  void collect(const Value& root);
  void tensor(PickleWriter& out, const Value& value);
  bool object(PickleWriter& out, const Value& value);
  void composite(PickleWriter& out, const Value& value, const Composite& kind);
  void quantized(PickleWriter& out, const Value& value);
  void view(PickleWriter& out, const Tensor& tensor, const PlacedTensor& placed, bool untyped);
  void storage_id(PickleWriter& out, std::size_t storage, bool untyped);

  std::vector<Tensor> tensors_;
  std::unordered_map<const void*, std::size_t> positions_;  ///< of tensors, by node
  StoragePlan plan_;
  std::vector<std::int64_t> keys_;     ///< of each storage, in order of first use; -1: not used yet
  std::vector<std::size_t> in_order_;  ///< storages by key
  std::string pickle_;
};

PtWriter::PtWriter(const Value& value) {
  collect(value);
  plan_ = plan_storages(tensors_);
  keys_.assign(plan_.storages.size(), -1);
  PickleWriter writer([this](PickleWriter& out, const Value& leaf) { tensor(out, leaf); },
                      [this](PickleWriter& out, const Value& leaf) { return object(out, leaf); });
  pickle_ = writer.write(value);
}

/// Finds the tensors, each node once. Iterative: a value may be deep.
void PtWriter::collect(const Value& root) {
  std::unordered_set<const void*> seen;
  std::vector<Value> open{root};
  while (!open.empty()) {
    const Value value = std::move(open.back());
    open.pop_back();
    if (value.node_id() == nullptr || !seen.insert(value.node_id()).second) continue;
    if (value.is(Kind::kTensor)) {
      positions_.emplace(value.node_id(), tensors_.size());
      tensors_.push_back(value.as_tensor());
    } else if (value.is(Kind::kDict)) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        Value::Item item = value.item(i);
        open.push_back(std::move(item.first));
        open.push_back(std::move(item.second));
      }
    } else {
      for (std::size_t i = 0; i < value.size(); ++i) open.push_back(value[i]);
    }
  }
}

void PtWriter::storage_id(PickleWriter& out, std::size_t storage, bool untyped) {
  const PlannedStorage& planned = plan_.storages[storage];
  if (keys_[storage] < 0) {
    keys_[storage] = static_cast<std::int64_t>(in_order_.size());
    in_order_.push_back(storage);
  }
  out.mark();
  out.text("storage");
  if (untyped) {
    out.global("torch.storage", "UntypedStorage");
  } else {
    out.global("torch", storage_class(planned.dtype.code()));
  }
  out.text(std::to_string(keys_[storage]));
  out.text("cpu");
  const std::size_t itemsize = untyped ? 1 : planned.dtype.itemsize();
  out.integer(static_cast<std::int64_t>(planned.bytes.nbytes() / itemsize));
  out.tuple(5);
  out.persistent_id();
}

/// storage, offset, size, stride.
void PtWriter::view(PickleWriter& out, const Tensor& tensor, const PlacedTensor& placed, bool untyped) {
  storage_id(out, placed.storage, untyped);
  out.integer(placed.offset);
  out.integers(tensor.shape().dims());
  out.integers(tensor.strides().dims());
}

void PtWriter::tensor(PickleWriter& out, const Value& value) {
  const Tensor& tensor = value.as_tensor();
  const DType& dtype = tensor.dtype();
  if (is_quantized(dtype.code())) {
    out.unsupported(
        fmt::format("a tensor {} without its scale cannot be saved as .pt; save its integers", dtype.name()));
  }
  if (!pickle::torch_dtype(dtype.name())) {
    out.unsupported(fmt::format("torch has no dtype {}: convert the tensor, or save as .npy", dtype.name()));
  }
  const bool is_parameter = value.type_name() == pickle::kParameterName;
  if (is_parameter) out.global("torch._utils", "_rebuild_parameter");
  const PlacedTensor& placed = plan_.tensors[positions_.at(value.node_id())];
  const bool untyped = plan_.storages[placed.storage].mixed || storage_class(dtype.code()).empty();
  out.global("torch._utils", untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
  out.mark();
  view(out, tensor, placed, untyped);
  // Others than these have no gradient in torch, which refuses the mark.
  const bool requires_grad = tensor.requires_grad() && (dtype.is_floating() || dtype.is_complex());
  out.boolean(requires_grad && !is_parameter);
  out.empty_ordered_dict();
  if (untyped) out.global("torch", dtype.name());
  out.tuple(untyped ? 7 : 6);
  out.reduce();
  if (!is_parameter) return;
  out.boolean(requires_grad);
  out.empty_ordered_dict();
  out.tuple(3);
  out.reduce();
}

bool PtWriter::object(PickleWriter& out, const Value& value) {
  const std::string& type = value.type_name();
  if (value.is(Kind::kGlobal)) return false;
  if (type == "torch.device") {
    out.global("torch", "device");
    for (std::size_t i = 0; i < value.size(); ++i) out.value(value[i]);
    out.tuple(value.size());
    out.reduce();
    return true;
  }
  if (type == "torch.quantized") {
    quantized(out, value);
    return true;
  }
  const auto kind = std::find_if(std::begin(kComposites), std::end(kComposites),
                                 [&type](const Composite& row) { return row.type_name == type; });
  if (kind == std::end(kComposites)) return false;
  composite(out, value, *kind);
  return true;
}

void PtWriter::composite(PickleWriter& out, const Value& value, const Composite& kind) {
  out.global("torch._utils", kind.layout.empty() ? "_rebuild_nested_tensor" : "_rebuild_sparse_tensor");
  if (!kind.layout.empty()) {
    out.global("torch.serialization", "_get_layout");
    out.text(kind.layout);
    out.tuple(1);
    out.reduce();
  }
  if (value.size() > 3) out.mark();
  for (std::size_t i = 0; i < value.size(); ++i) out.value(value[i]);
  out.tuple(value.size());
  if (!kind.layout.empty()) out.tuple(2);
  out.reduce();
}

/// Items: values, scheme, scales, zero points, axis or None, size.
void PtWriter::quantized(PickleWriter& out, const Value& value) {
  const bool complete = value.size() == 6 && value[0].is(Kind::kTensor) && value[1].is(Kind::kString);
  if (!complete || !is_quantized(value[0].as_tensor().dtype().code())) {
    out.unsupported("the quantized tensor is not (values, scheme, scales, zero points, axis, size)");
  }
  const Tensor& tensor = value[0].as_tensor();
  const PlacedTensor& placed = plan_.tensors[positions_.at(value[0].node_id())];
  if (plan_.storages[placed.storage].mixed || storage_class(tensor.dtype().code()).empty()) {
    out.unsupported(fmt::format("a quantized tensor {} cannot be saved", tensor.dtype().name()));
  }
  out.global("torch._utils", "_rebuild_qtensor");
  out.mark();
  view(out, tensor, placed, false);
  const bool per_channel = !value[4].is(Kind::kNone);
  if (per_channel) out.mark();
  out.global("torch", per_channel ? "per_channel_affine" : "per_tensor_affine");  // as torch tags them
  out.value(value[2]);
  out.value(value[3]);
  if (per_channel) out.value(value[4]);
  out.tuple(per_channel ? 4 : 3);
  out.boolean(false);
  out.empty_ordered_dict();
  out.tuple(7);
  out.reduce();
}

/// The archive's folder: the file's name without its extension, as torch does; "archive" where that is not plain ASCII.
std::string prefix_of(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.rfind('.'));
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c < '\x7f' && c != '\\'; });
  return std::string(plain && !name.empty() && name != "." && name != ".." ? name : "archive");
}

/// 40 digits that torch makes of names and CRCs, and that no reader checks.
std::string serialization_id(std::string_view pickle) {
  const std::uint32_t crc = io::crc32(0, std::as_bytes(std::span(pickle)));
  return fmt::format("{:020}{:020}", std::uint64_t{crc} * 0x9E3779B97F4A7C15U, crc);
}

void PtWriter::write(io::ByteSink& sink, std::string_view path) const {
  const std::string prefix = prefix_of(path) + "/";
  ZipWriter zip(sink, ZipStyle::kTorch, kAlignment);
  zip.add_text(prefix + "data.pkl", pickle_);
  zip.add_text(prefix + ".format_version", "1");
  zip.add_text(prefix + ".storage_alignment", std::to_string(kAlignment));
  zip.add_text(prefix + "byteorder", "little");
  for (std::size_t key = 0; key < in_order_.size(); ++key) {
    const Tensor bytes = plan_.storages[in_order_[key]].bytes.to(Device{});
    zip.add(fmt::format("{}data/{}", prefix, key), std::span<const std::byte>(bytes.data(), bytes.nbytes()));
  }
  zip.add_text(prefix + "version", "3\n");
  zip.add_text(prefix + ".data/serialization_id", serialization_id(pickle_));
  zip.finish();
}

}  // namespace

void write_pt(const Value& value, io::ByteSink& sink, const SaveOptions& /*options*/, std::string_view path) {
  PtWriter(value).write(sink, path);
}

}  // namespace penstock::format
