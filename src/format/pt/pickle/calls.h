#pragma once

// The callables of the table: each turns its arguments, which are hostile, into a value. kCorrupt where they are not
// what the callable takes.

#include <cstdint>
#include <optional>
#include <string_view>

#include "format/pt/pickle/world.h"

namespace penstock::format::pickle {

// Python's own types (python_calls.cpp).
Cell* call_ordered_dict(const Call& call);
Cell* call_defaultdict(const Call& call);
Cell* call_counter(const Call& call);
Cell* call_set(const Call& call);
Cell* call_frozenset(const Call& call);
Cell* call_list(const Call& call);
Cell* call_tuple(const Call& call);
Cell* call_dict(const Call& call);
Cell* call_complex(const Call& call);
Cell* call_bytes(const Call& call);
Cell* call_bytearray(const Call& call);
Cell* call_encode(const Call& call);
Cell* call_reconstructor(const Call& call);
Cell* call_newobj(const Call& call);
Cell* call_first_argument(const Call& call);

// torch (torch_rebuild.cpp, torch_composites.cpp).
Cell* call_size(const Call& call);
Cell* call_device(const Call& call);
Cell* call_get_layout(const Call& call);
Cell* call_rebuild_tensor(const Call& call);
Cell* call_rebuild_tensor_v2(const Call& call);
Cell* call_rebuild_tensor_v3(const Call& call);
Cell* call_rebuild_parameter(const Call& call);
Cell* call_parameter(const Call& call);
Cell* call_rebuild_from_type(const Call& call);
Cell* call_rebuild_device_tensor(const Call& call);
Cell* call_tensor_class(const Call& call);
Cell* call_rebuild_qtensor(const Call& call);
Cell* call_rebuild_sparse(const Call& call);
Cell* call_rebuild_nested(const Call& call);
Cell* call_rebuild_meta(const Call& call);
Cell* call_rebuild_wrapper(const Call& call);

// NumPy (numpy_calls.cpp).
Cell* call_numpy_dtype(const Call& call);
Cell* call_numpy_scalar(const Call& call);
Cell* call_numpy_reconstruct(const Call& call);
Cell* call_numpy_frombuffer(const Call& call);

/// Whether the callable calls another one. Those do not call each other, so that no file makes calls nest.
bool makes_calls(const Cell& callable);

// Checks that the callables share; `what` names the argument in the error.
[[noreturn]] void bad_argument(const Call& call, std::string_view what, std::string_view expected);
void require_count(const Call& call, std::size_t least, std::size_t most);
const Cell& require(const Call& call, std::size_t index, Value::Kind kind, std::string_view what);
std::int64_t require_int(const Call& call, std::size_t index, std::string_view what);
bool require_flag(const Call& call, std::size_t index, std::string_view what);
/// A list or tuple of integers; no more than Shape::kMaxRank.
Shape require_shape(const Call& call, std::size_t index, std::string_view what);
/// The same of a cell anywhere, or nothing.
std::optional<Shape> shape_of(const Cell& cell);

const StorageView& require_storage(const Call& call, std::size_t index);
/// Hooks are functions: they stay behind. torch writes an empty OrderedDict.
void require_hooks(const Call& call, std::size_t index);

/// A tensor of `dtype` over `view`: sizes and strides not negative, every element inside the view. kCorrupt otherwise.
/// Offset and strides are in elements.
TensorEntry checked_view(const StorageView& view, const DType& dtype, std::int64_t offset, const Shape& shape,
                         const Strides& strides);

/// The same of a tensor by itself, which one of a quantized dtype cannot be.
TensorEntry plain_view(const StorageView& view, const DType& dtype, std::int64_t offset, const Shape& shape,
                       const Strides& strides);

}  // namespace penstock::format::pickle
