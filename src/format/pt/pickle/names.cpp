// The tables of names: what a `.pt` may say without being listed as unknown.

#include <algorithm>
#include <array>

#include "format/pt/pickle/calls.h"

namespace penstock::format::pickle {

namespace {

using enum DType::Code;

// Sorted by name, for binary search. Functions of torch as in torch/_utils.py and torch/_weights_only_unpickler.py.
constexpr auto kKnown = std::to_array<KnownName>({
    {"_codecs.encode", call_encode},
    {"builtins.bool", nullptr},
    {"builtins.bytearray", call_bytearray},
    {"builtins.bytes", call_bytes},
    {"builtins.complex", call_complex},
    {"builtins.dict", call_dict},
    {"builtins.float", nullptr},
    {"builtins.frozenset", call_frozenset},
    {"builtins.int", nullptr},
    {"builtins.list", call_list},
    {"builtins.object", nullptr},
    {"builtins.range", nullptr},
    {"builtins.set", call_set},
    {"builtins.slice", nullptr},
    {"builtins.str", nullptr},
    {"builtins.tuple", call_tuple},
    {"collections.Counter", call_counter},
    {"collections.OrderedDict", call_ordered_dict},
    {"collections.defaultdict", call_defaultdict},
    {"copyreg.__newobj__", call_newobj},
    {"copyreg._reconstructor", call_reconstructor},
    {"numpy.core._internal._reconstruct", call_numpy_reconstruct},
    {"numpy.core.multiarray._reconstruct", call_numpy_reconstruct},
    {"numpy.core.multiarray.scalar", call_numpy_scalar},
    {"numpy.core.numeric._frombuffer", call_numpy_frombuffer},
    {"numpy.dtype", call_numpy_dtype},
    {"numpy.matrix", nullptr},
    {"numpy.memmap", nullptr},
    {"numpy.ndarray", nullptr},
    {"numpy.recarray", nullptr},
    {"torch.BFloat16Tensor", call_tensor_class},
    {"torch.BoolTensor", call_tensor_class},
    {"torch.ByteTensor", call_tensor_class},
    {"torch.CharTensor", call_tensor_class},
    {"torch.DoubleTensor", call_tensor_class},
    {"torch.FloatTensor", call_tensor_class},
    {"torch.HalfTensor", call_tensor_class},
    {"torch.IntTensor", call_tensor_class},
    {"torch.LongTensor", call_tensor_class},
    {"torch.ShortTensor", call_tensor_class},
    {"torch.Size", call_size},
    {"torch.Tensor", call_tensor_class},
    {"torch._mkldnn", nullptr},
    {"torch._sparse_coo_tensor", nullptr},
    {"torch._tensor._rebuild_from_type", call_rebuild_from_type},
    {"torch._tensor._rebuild_from_type_v2", call_rebuild_from_type},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", call_rebuild_device_tensor},
    {"torch._utils._rebuild_device_tensor_from_numpy", call_rebuild_device_tensor},
    {"torch._utils._rebuild_meta_tensor_no_storage", call_rebuild_meta},
    {"torch._utils._rebuild_nested_tensor", call_rebuild_nested},
    {"torch._utils._rebuild_parameter", call_rebuild_parameter},
    {"torch._utils._rebuild_parameter_with_state", call_rebuild_parameter},
    {"torch._utils._rebuild_qtensor", call_rebuild_qtensor},
    {"torch._utils._rebuild_sparse_tensor", call_rebuild_sparse},
    {"torch._utils._rebuild_tensor", call_rebuild_tensor},
    {"torch._utils._rebuild_tensor_v2", call_rebuild_tensor_v2},
    {"torch._utils._rebuild_tensor_v3", call_rebuild_tensor_v3},
    {"torch._utils._rebuild_wrapper_subclass", call_rebuild_wrapper},
    {"torch._utils._rebuild_xla_tensor", call_rebuild_device_tensor},
    {"torch.autograd.variable.Variable", call_parameter},
    {"torch.channels_last", nullptr},
    {"torch.channels_last_3d", nullptr},
    {"torch.contiguous_format", nullptr},
    {"torch.device", call_device},
    {"torch.jagged", nullptr},
    {"torch.jit._pickle.build_boollist", call_first_argument},
    {"torch.jit._pickle.build_doublelist", call_first_argument},
    {"torch.jit._pickle.build_intlist", call_first_argument},
    {"torch.jit._pickle.build_tensor_from_id", nullptr},
    {"torch.jit._pickle.build_tensorlist", call_first_argument},
    {"torch.jit._pickle.restore_type_tag", call_first_argument},
    {"torch.nn.parameter.Buffer", nullptr},
    {"torch.nn.parameter.Parameter", call_parameter},
    {"torch.per_channel_affine", nullptr},
    {"torch.per_channel_affine_float_qparams", nullptr},
    {"torch.per_channel_symmetric", nullptr},
    {"torch.per_tensor_affine", nullptr},
    {"torch.per_tensor_symmetric", nullptr},
    {"torch.preserve_format", nullptr},
    {"torch.serialization._get_layout", call_get_layout},
    {"torch.sparse_bsc", nullptr},
    {"torch.sparse_bsr", nullptr},
    {"torch.sparse_coo", nullptr},
    {"torch.sparse_csc", nullptr},
    {"torch.sparse_csr", nullptr},
    {"torch.strided", nullptr},
});
static_assert(std::is_sorted(kKnown.begin(), kKnown.end(),
                             [](const KnownName& a, const KnownName& b) { return a.name < b.name; }));

constexpr auto kOwnNames = std::to_array<std::string_view>(
    {kObjectsName, "torch.device", "torch.marked_tensor", "torch.meta_tensor", "torch.nested_tensor", "torch.quantized",
     "torch.sparse_bsc_tensor", "torch.sparse_bsr_tensor", "torch.sparse_coo_tensor", "torch.sparse_csc_tensor",
     "torch.sparse_csr_tensor", "torch.wrapper_subclass", kParameterName, kStorageName, kSubclassName});

struct StorageClass {
  std::string_view name;  // before "Storage"
  StorageType type;
};
constexpr auto kStorageClasses = std::to_array<StorageClass>({
    {"Float", {kFloat32}},
    {"Double", {kFloat64}},
    {"Half", {kFloat16}},
    {"BFloat16", {kBFloat16}},
    {"Long", {kInt64}},
    {"Int", {kInt32}},
    {"Short", {kInt16}},
    {"Char", {kInt8}},
    {"Byte", {kUInt8}},
    {"Bool", {kBool}},
    {"ComplexDouble", {kComplex128}},
    {"ComplexFloat", {kComplex64}},
    {"ComplexHalf", {kComplex32}},
    {"QInt8", {kQInt8}},
    {"QInt32", {kQInt32}},
    {"QUInt8", {kQUInt8}},
    {"QUInt4x2", {kQUInt4x2}},
    {"QUInt2x4", {kQUInt2x4}},
    {"Untyped", {kUInt8, true}},
    {"_Untyped", {kUInt8, true}},
});

// torch's dtypes that no other library has: their bytes are kept, and their values not interpreted.
constexpr auto kOpaqueDTypes =
    std::to_array<std::string_view>({"bits1x8", "bits2x4", "bits4x2", "int1", "int2", "int3", "int4", "int5", "int6",
                                     "int7", "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7"});
struct Renamed {
  std::string_view module;
  std::string_view name;  // empty: every name
  std::string_view to_module;
  std::string_view to_name;
};
// From Lib/_compat_pickle.py, what data files have; torch's own from torch/serialization.py (load_module_mapping).
constexpr auto kRenamed = std::to_array<Renamed>({
    {"__builtin__", "unicode", "builtins", "str"},
    {"__builtin__", "long", "builtins", "int"},
    {"__builtin__", "xrange", "builtins", "range"},
    {"__builtin__", "unichr", "builtins", "chr"},
    {"__builtin__", "", "builtins", ""},
    {"copy_reg", "", "copyreg", ""},
    {"exceptions", "", "builtins", ""},
    {"UserDict", "", "collections", ""},
    {"UserList", "", "collections", ""},
    {"cPickle", "", "pickle", ""},
    {"torch.tensor", "", "torch._tensor", ""},
    {"numpy._core", "", "numpy.core", ""},
});
constexpr std::string_view kNewNumpy = "numpy._core.";
constexpr std::string_view kOldNumpy = "numpy.core.";

}  // namespace

std::string_view canonical_name(std::string_view module, std::string_view name, CellArena& arena) {
  for (const Renamed& row : kRenamed) {
    if (row.module != module || (!row.name.empty() && row.name != name)) continue;
    module = row.to_module;
    if (!row.to_name.empty()) name = row.to_name;
    break;
  }
  std::string_view package;
  if (module.starts_with(kNewNumpy)) {
    package = kOldNumpy;
    module.remove_prefix(kNewNumpy.size());
  }
  char* const out = arena.allocate_text(package.size() + module.size() + 1 + name.size());
  char* end = out;
  for (const std::string_view part : {package, module, std::string_view("."), name}) {
    end = std::copy(part.begin(), part.end(), end);
  }
  return {out, end};
}

const KnownName* find_known(std::string_view name) noexcept {
  const auto row =
      std::lower_bound(kKnown.begin(), kKnown.end(), name,
                       [](const KnownName& known, std::string_view wanted) { return known.name < wanted; });
  return row != kKnown.end() && row->name == name ? &*row : nullptr;
}

bool is_own_name(std::string_view name) noexcept {
  return std::find(kOwnNames.begin(), kOwnNames.end(), name) != kOwnNames.end();
}

std::optional<StorageType> storage_type(std::string_view name) noexcept {
  constexpr std::string_view kTorch = "torch.";
  constexpr std::string_view kStorage = "Storage";
  if (!name.starts_with(kTorch) || !name.ends_with(kStorage)) return std::nullopt;
  name.remove_suffix(kStorage.size());
  name.remove_prefix(kTorch.size());
  for (const std::string_view module : {"cuda.", "storage.", "xpu.", "mps."}) {
    if (name.starts_with(module)) name.remove_prefix(module.size());
  }
  for (const StorageClass& row : kStorageClasses) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::optional<DType> torch_dtype(std::string_view name) {
  if (std::find(kOpaqueDTypes.begin(), kOpaqueDTypes.end(), name) != kOpaqueDTypes.end()) {
    return DType::with_descr(kOpaque, 1, std::string(name));
  }
  const auto found = DType::from_name(name);  // also takes aliases and NumPy's descrs
  if (!found || found->name() != name) return std::nullopt;
  const bool foreign = found->code() == kFloat6E2M3 || found->code() == kFloat6E3M2;
  return foreign ? std::nullopt : found;
}

DType dtype_of(const Cell& cell) {
  return cell.dtype == kOpaque ? DType::with_descr(kOpaque, 1, std::string(cell.text)) : DType(cell.dtype);
}

}  // namespace penstock::format::pickle
