// Writes the pickle of a `.pt`. A first pass over the value finds its tensors, so that those that share memory share a
// storage in the file. A second pass pickles, and writes each tensor as the call of torch's function that makes it.
// When objects were written whose parts a reader checks, the pickle is read once more before it counts as good.

#include "format/pt/content.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/format.h"
#include "format/elsewhere.h"
#include "format/pt/pickle/pickle_writer.h"
#include "format/pt/pickle/read_pickle.h"
#include "format/pt/pickle/world.h"
#include "format/pt/storages.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

using Kind = Value::Kind;
using pickle::PickleWriter;
using enum DType::Code;

/// Several values a byte; in memory a row of bytes.
bool is_packed(DType::Code code) { return code == kQUInt4x2 || code == kQUInt2x4; }

bool is_known_with(std::string_view prefix, std::string_view name) {
  return name.starts_with(prefix) && pickle::find_known(name) != nullptr;
}

bool is_scheme(std::string_view name) { return is_known_with("torch.per_", name); }

/// The composite tensors of torch_composites.cpp: their layout, and how many tensors their items begin with.
struct Composite {
  std::string_view type_name;
  std::string_view layout;  ///< sparse: its name; empty: nested
  std::size_t tensors;
};
constexpr Composite kComposites[] = {
    {"torch.sparse_coo_tensor", "torch.sparse_coo", 2}, {"torch.sparse_csr_tensor", "torch.sparse_csr", 3},
    {"torch.sparse_csc_tensor", "torch.sparse_csc", 3}, {"torch.sparse_bsr_tensor", "torch.sparse_bsr", 3},
    {"torch.sparse_bsc_tensor", "torch.sparse_bsc", 3}, {"torch.nested_tensor", {}, 4},
};

bool flag_of(const PickleWriter& out, const Value& value) {
  if (!value.is(Kind::kBool)) out.unsupported("a part of the tensor is not True or False, where torch has one of them");
  return value.as_bool();
}

/// Whether the items are tensors, and of sparse ones then the size, which a COO tensor may say more behind.
bool has_its_parts(const Value& value, const Composite& kind) {
  const bool coo = kind.tensors == 2;
  if (value.size() != 4 && !(coo && value.size() == 3)) return false;
  for (std::size_t i = 0; i < kind.tensors; ++i) {
    if (!value[i].is(Kind::kTensor)) return false;
  }
  return kind.tensors == 4 || value[kind.tensors].is(Kind::kTuple) || value[kind.tensors].is(Kind::kList);
}

constexpr std::string_view kJagged = "torch.nested._internal.nested_tensor._rebuild_njt";

/// The function that makes a tensor, which its attributes are set on afterwards.
struct Function {
  std::string_view module;
  std::string_view name;
};

/// Has the storages that a pickle declares, but none of their bytes.
class Declared final : public pickle::Outside {
 public:
  explicit Declared(Index& index) : index_(index) {}
  std::uint32_t storage(std::string_view /*key*/, std::uint64_t nbytes, std::uint64_t /*itemsize*/) override {
    index_.storages.push_back({.stored_bytes = nbytes, .nbytes = nbytes, .resident = {}});
    return static_cast<std::uint32_t>(index_.storages.size() - 1);
  }

 private:
  Index& index_;
};

/// Values come from anywhere: an object may have other parts than torch gives it. Which ones a reader takes is decided
/// in one place, so it is asked.
void require_readable(std::string_view pickle) {
  Index index;
  Declared storages(index);
  try {
    pickle::read_pickle(std::as_bytes(std::span(pickle)), 0, index, storages);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;
    throw Error(ErrorCode::kUnsupported,
                core::format("the value holds what no reader of .pt takes: {}", error.message()));
  }
}

class Pickler {
 public:
  /// `unloaded`: of the tensors of `root` that are not loaded; or null.
  PtPickle run(const Value& root, const Unloaded* unloaded);

 private:
  void collect(const Value& root);
  void write_tensor(PickleWriter& out, const Value& value);
  bool write_object(PickleWriter& out, const Value& value);
  bool write_name(PickleWriter& out, const Value& value);
  void write_dense(PickleWriter& out, const Value& value, const Value& owner, const Value& marks);
  void write_marked(PickleWriter& out, const Value& value);
  void write_parameter(PickleWriter& out, const Value& value);
  void write_composite(PickleWriter& out, const Value& value, const Composite& kind);
  void write_quantized(PickleWriter& out, const Value& value);
  void write_meta(PickleWriter& out, const Value& value);
  void write_device(PickleWriter& out, const Value& value);
  void write_jagged(PickleWriter& out, const Value& value);
  void open_call(PickleWriter& out, const Value& owner, Function function);
  void close_call(PickleWriter& out, const Value& owner);
  void write_storage_id(PickleWriter& out, std::size_t storage, bool untyped);
  const PlacedTensor& place_of(const Value& tensor) const {
    const std::optional<std::size_t> entry = tensor.entry_index();
    return plan_.tensors[entry ? tensors_.size() + *entry : positions_.at(tensor.node_id())];
  }
  TensorFacts facts(const Value& tensor) const { return facts_of(tensor, entries_); }

  std::span<const TensorEntry> entries_;                    ///< of tensors that are not loaded
  std::vector<Tensor> tensors_;                             ///< that are
  std::unordered_map<const void*, std::size_t> positions_;  ///< of tensors, by node
  StoragePlan plan_;
  std::vector<std::int64_t> keys_;     ///< of each storage, in order of first use; -1: not used yet
  std::vector<std::size_t> in_order_;  ///< storages by key
  std::vector<Value> marks_;           ///< made on the way and kept: the writer knows values by their address
};

PtPickle Pickler::run(const Value& root, const Unloaded* unloaded) {
  collect(root);
  plan_ = plan_storages(tensors_);
  if (unloaded != nullptr) {
    entries_ = unloaded->entries;
    plan_.add(entries_, unloaded->storage_bytes);
  }
  keys_.assign(plan_.storages.size(), -1);
  PickleWriter writer([this](PickleWriter& out, const Value& leaf) { write_tensor(out, leaf); },
                      [this](PickleWriter& out, const Value& leaf) { return write_object(out, leaf); });
  PtPickle pickle{writer.write(root), {}};
  if (writer.wants_proof()) require_readable(pickle.text);
  for (const std::size_t storage : in_order_) pickle.storages.push_back(plan_.storages[storage]);
  return pickle;
}

/// Finds the tensors, each node once. Iterative: a value may be deep.
void Pickler::collect(const Value& root) {
  std::unordered_set<const void*> seen;
  std::vector<Value> open{root};
  while (!open.empty()) {
    const Value value = std::move(open.back());
    open.pop_back();
    if (value.node_id() == nullptr || !seen.insert(value.node_id()).second) continue;
    if (auto state = value.state()) open.push_back(std::move(*state));
    if (value.entry_index()) continue;
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

void Pickler::write_storage_id(PickleWriter& out, std::size_t storage, bool untyped) {
  const PlannedStorage& planned = plan_.storages[storage];
  if (keys_[storage] < 0) {
    keys_[storage] = static_cast<std::int64_t>(in_order_.size());
    in_order_.push_back(storage);
  }
  out.mark();
  out.push_text("storage");
  if (untyped) {
    out.push_global("torch.storage", "UntypedStorage");
  } else {
    out.push_global("torch", storage_class(planned.dtype.code()));
  }
  out.push_text(std::to_string(keys_[storage]));
  out.push_text("cpu");
  const std::size_t itemsize = untyped ? 1 : planned.dtype.itemsize();
  out.push_integer(static_cast<std::int64_t>(planned.nbytes / itemsize));
  out.push_tuple(5);
  out.push_persistent();
}

/// `function` is called with the tuple that is written next; then comes close_call.
void Pickler::open_call(PickleWriter& out, const Value& owner, Function function) {
  const bool has_attributes = owner.state().has_value();
  if (has_attributes) {
    out.push_global("torch._tensor", "_rebuild_from_type_v2");
    out.mark();
  }
  out.push_global(function.module, function.name);
  if (has_attributes) out.push_global("torch", "Tensor");
}

void Pickler::close_call(PickleWriter& out, const Value& owner) {
  if (const auto state = owner.state()) {
    out.value(*state);
    out.push_tuple(4);
  }
  out.reduce();
}

void Pickler::write_tensor(PickleWriter& out, const Value& value) {
  const std::string_view type = value.type_name();
  if (type == pickle::kStorageName) {
    const std::size_t storage = place_of(value).storage;
    write_storage_id(out, storage, plan_.storages[storage].mixed || storage_class(facts(value).dtype.code()).empty());
    out.memoize();
  } else if (type == pickle::kParameterName) {
    write_parameter(out, value);
  } else {
    write_dense(out, value, value, Value());
  }
}

/// `marks`: None, or the flags of operations yet to be done.
void Pickler::write_dense(PickleWriter& out, const Value& value, const Value& owner, const Value& marks) {
  const TensorFacts tensor = facts(value);
  const DType& dtype = tensor.dtype;
  try {
    require_torch_dtype(dtype);
  } catch (const Error& error) {
    out.unsupported(error.message());
  }
  const PlacedTensor& placed = place_of(value);
  const bool untyped = plan_.storages[placed.storage].mixed || storage_class(dtype.code()).empty();
  open_call(out, owner, {"torch._utils", untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2"});
  out.mark();
  write_storage_id(out, placed.storage, untyped);
  out.push_integer(placed.offset);
  out.push_integers(tensor.shape.dims());
  out.push_integers(tensor.strides.dims());
  // Others than these have no gradient in torch, which refuses the mark; a parameter has its own.
  const bool may_require = dtype.is_floating() || dtype.is_complex();
  out.push_boolean(tensor.requires_grad && may_require && value.type_name() != pickle::kParameterName);
  out.push_empty_ordered_dict();
  if (untyped) out.push_global("torch", dtype.name());
  if (!marks.is(Kind::kNone)) out.value(marks);
  out.push_tuple(6U + (untyped ? 1U : 0U) + (marks.is(Kind::kNone) ? 0U : 1U));
  close_call(out, owner);
}

void Pickler::write_marked(PickleWriter& out, const Value& value) {
  if (value.size() != 3 || !value[0].is(Kind::kTensor)) out.unsupported("the marked tensor is not (tensor, conj, neg)");
  std::vector<std::pair<std::string, Value>> marks;
  if (flag_of(out, value[1])) marks.emplace_back("conj", Value::boolean(true));
  if (flag_of(out, value[2])) marks.emplace_back("neg", Value::boolean(true));
  const Value flags = Value::dict(std::move(marks));
  marks_.push_back(flags);
  write_dense(out, value[0], value, flags);
}

/// A tensor with that type name, or an object (data, requires_grad).
void Pickler::write_parameter(PickleWriter& out, const Value& value) {
  const auto state = value.state();
  out.push_global("torch._utils", state ? "_rebuild_parameter_with_state" : "_rebuild_parameter");
  if (state) out.mark();
  bool requires_grad = false;
  if (value.is(Kind::kTensor)) {
    const TensorFacts tensor = facts(value);
    write_dense(out, value, Value(), Value());
    requires_grad = tensor.requires_grad && (tensor.dtype.is_floating() || tensor.dtype.is_complex());
  } else if (value.size() == 2) {
    out.value(value[0]);
    requires_grad = flag_of(out, value[1]);
  } else {
    out.unsupported("the parameter is not (data, requires_grad)");
  }
  out.push_boolean(requires_grad);
  out.push_empty_ordered_dict();
  if (state) out.value(*state);
  out.push_tuple(state ? 4 : 3);
  out.reduce();
}

bool Pickler::write_object(PickleWriter& out, const Value& value) {
  if (value.is(Kind::kGlobal)) return write_name(out, value);
  struct Row {
    std::string_view type_name;
    void (Pickler::*write)(PickleWriter&, const Value&);
  };
  static constexpr Row kRows[] = {
      {"torch.device", &Pickler::write_device},       {"torch.marked_tensor", &Pickler::write_marked},
      {"torch.meta_tensor", &Pickler::write_meta},    {pickle::kParameterName, &Pickler::write_parameter},
      {"torch.quantized", &Pickler::write_quantized}, {kJagged, &Pickler::write_jagged},
  };
  const std::string& type = value.type_name();
  const auto is_of_type = [&type](const auto& row) { return row.type_name == type; };
  if (const auto* row = std::find_if(std::begin(kRows), std::end(kRows), is_of_type); row != std::end(kRows)) {
    (this->*row->write)(out, value);
    return true;
  }
  const auto* kind = std::find_if(std::begin(kComposites), std::end(kComposites), is_of_type);
  if (kind == std::end(kComposites)) return false;
  write_composite(out, value, *kind);
  return true;
}

bool Pickler::write_name(PickleWriter& out, const Value& value) {
  constexpr std::string_view kTorch = "torch.";
  const std::string_view name = value.type_name();
  if (is_scheme(name)) {
    out.push_global("torch", name.substr(kTorch.size()));
    return true;
  }
  constexpr auto kLayouts = std::to_array<std::string_view>({"torch.strided", "torch.jagged", "torch._mkldnn"});
  const bool is_layout = std::find(kLayouts.begin(), kLayouts.end(), name) != kLayouts.end();
  if (!is_layout && !is_known_with("torch.sparse_", name)) return false;
  out.push_global("torch.serialization", "_get_layout");
  out.push_text(name);
  out.push_tuple(1);
  out.reduce();
  return true;
}

void Pickler::write_device(PickleWriter& out, const Value& value) {
  if (value.state()) out.refuse("the device has attributes, which torch's devices do not");
  out.push_global("torch", "device");
  for (std::size_t i = 0; i < value.size(); ++i) out.value(value[i]);
  out.push_tuple(value.size());
  out.reduce();
}

/// Items: dtype, size, strides, requires_grad.
void Pickler::write_meta(PickleWriter& out, const Value& value) {
  if (value.size() != 4) out.unsupported("the meta tensor is not (dtype, size, strides, requires_grad)");
  open_call(out, value, {"torch._utils", "_rebuild_meta_tensor_no_storage"});
  out.mark();
  for (std::size_t i = 0; i < value.size(); ++i) out.value(value[i]);
  out.push_tuple(4);
  close_call(out, value);
}

/// Items: what its constructor takes, by name. torch wants the class named, and attributes even if there are none.
void Pickler::write_jagged(PickleWriter& out, const Value& value) {
  constexpr std::string_view kModule = "torch.nested._internal.nested_tensor";
  if (value.size() != 1) out.unsupported("the jagged tensor is not its parts by name");
  marks_.push_back(value.state().value_or(Value::dict(std::vector<std::pair<std::string, Value>>{})));
  const Value attributes = marks_.back();
  out.push_global("torch._tensor", "_rebuild_from_type_v2");
  out.mark();
  out.push_global(kModule, "_rebuild_njt");
  out.push_global(kModule, "NestedTensor");
  out.value(value[0]);
  out.push_tuple(1);
  out.value(attributes);
  out.push_tuple(4);
  out.reduce();
}

void Pickler::write_composite(PickleWriter& out, const Value& value, const Composite& kind) {
  const bool sparse = !kind.layout.empty();
  if (!has_its_parts(value, kind)) {
    out.unsupported(core::format("the parts of a {} are not those that torch makes one of", kind.type_name));
  }
  open_call(out, value, {"torch._utils", sparse ? "_rebuild_sparse_tensor" : "_rebuild_nested_tensor"});
  if (sparse) out.value(Value::global(std::string(kind.layout)));
  if (value.size() > 3) out.mark();
  for (std::size_t i = 0; i < value.size(); ++i) out.value(value[i]);
  out.push_tuple(value.size());
  if (sparse) out.push_tuple(2);
  close_call(out, value);
}

/// Items: values, scheme, scales, zero points, axis or None, size.
void Pickler::write_quantized(PickleWriter& out, const Value& value) {
  const bool complete = value.size() == 6 && value[0].is(Kind::kTensor) && value[1].is(Kind::kString);
  if (!complete || !is_quantized(facts(value[0]).dtype.code())) {
    out.unsupported("the quantized tensor is not (values, scheme, scales, zero points, axis, size)");
  }
  const TensorFacts tensor = facts(value[0]);
  const PlacedTensor& placed = place_of(value[0]);
  if (plan_.storages[placed.storage].mixed) {
    out.unsupported(core::format("a quantized tensor {} that shares its memory with tensors of other dtypes; clone it",
                                 tensor.dtype.name()));
  }
  open_call(out, value, {"torch._utils", "_rebuild_qtensor"});
  out.mark();
  write_storage_id(out, placed.storage, false);
  out.push_integer(placed.offset);
  Shape size = tensor.shape;
  if (is_packed(tensor.dtype.code())) {
    std::vector<std::int64_t> dims;
    for (std::size_t i = 0; i < value[5].size(); ++i) dims.push_back(out.integer_of(value[5][i]));
    size = Shape(dims);
  }
  out.push_integers(size.dims());
  const Strides strides = size == tensor.shape ? tensor.strides : size.contiguous_strides();
  out.push_integers(strides.dims());
  const bool per_channel = !value[4].is(Kind::kNone);
  if (per_channel) out.mark();
  out.push_global("torch", per_channel ? "per_channel_affine" : "per_tensor_affine");  // as torch tags them
  out.value(value[2]);
  out.value(value[3]);
  if (per_channel) out.value(value[4]);
  out.push_tuple(per_channel ? 4 : 3);
  out.push_boolean(tensor.requires_grad);
  out.push_empty_ordered_dict();
  out.push_tuple(7);
  close_call(out, value);
}

}  // namespace

void require_torch_dtype(const DType& dtype) {
  if (is_quantized(dtype.code())) {
    throw Error(ErrorCode::kUnsupported,
                core::format("a tensor {} is saved with its scale alone: {}", dtype.name(), elsewhere(dtype)));
  }
  if (pickle::torch_dtype(dtype.name())) return;
  throw Error(ErrorCode::kUnsupported, core::format("torch has no dtype {}: {}", dtype.name(), elsewhere(dtype)));
}

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
    case kQUInt4x2:
      return "QUInt4x2Storage";
    case kQUInt2x4:
      return "QUInt2x4Storage";
    default:
      return {};
  }
}

PtPickle pickle_for_torch(const Value& value) { return Pickler().run(value, nullptr); }

PtPickle pickle_for_torch(const Unloaded& content) { return Pickler().run(content.structure, &content); }

}  // namespace penstock::format
