// Tensors that are several tensors (sparse, quantized, nested) or none (meta): objects of a readable name whose parts
// are entries that load.

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "format/pt/pickle/calls.h"
#include "penstock/error.h"

namespace penstock::format::pickle {

namespace {

using Kind = Value::Kind;
using enum DType::Code;

using core::corrupt;

/// A list that the pickle cannot lengthen any more, now that it has been checked.
Cell* settled(const Call& call, Cell* cell) {
  if (!cell->is(Kind::kList)) return cell;
  call.world.arena().charge(cell->items.size());
  Cell* list = call.world.make(Kind::kList);
  list->items = cell->items;
  return list;
}

Cell* make_sealed(const Call& call, std::string_view type_name, std::span<Cell* const> items) {
  Cell* object = call.world.make_object(type_name, items);
  object->role = Role::kSealed;
  for (Cell*& item : object->items) item = settled(call, item);
  return object;
}

const TensorEntry& require_tensor(const Call& call, const Cell& cell, std::string_view what) {
  if (!cell.is(Kind::kTensor)) bad_argument(call, what, "a tensor");
  return call.world.tensor_of(cell);
}

/// Values a byte of torch's packed quantized types.
std::int64_t packing(DType::Code code) {
  if (code == kQUInt4x2) return 2;
  return code == kQUInt2x4 ? 4 : 1;
}

/// Sub-byte types are packed along rows, whose ends are padded: as their bytes, one dimension.
TensorEntry packed_view(const Call& call, const StorageView& view, std::int64_t per_byte) {
  const Shape shape = require_shape(call, 2, "size");
  (void)shape.numel();
  if (require_int(call, 1, "offset") != 0 || require_shape(call, 3, "stride") != shape.contiguous_strides()) {
    throw Error(ErrorCode::kUnsupported, "a packed quantized tensor that is a view of another; save a copy of it");
  }
  std::int64_t bytes = 1;
  for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
    const bool last = dim + 1 == shape.rank();
    const std::int64_t whole = shape[dim] / per_byte + (shape[dim] % per_byte != 0 ? 1 : 0);
    bytes = core::checked_mul(bytes, last ? whole : shape[dim], "the size of a packed tensor");
  }
  return checked_view(view, DType(view.dtype), 0, Shape{bytes}, Shape{1});
}

/// Scales and zero points: a one-dimensional tensor, or a list of numbers in old files. Gives their number.
std::int64_t parameter_count(const Call& call, const Cell& cell, std::string_view what) {
  if (cell.is(Kind::kTensor)) return call.world.tensor_of(cell).shape.numel();
  if (!cell.is(Kind::kList) && !cell.is(Kind::kTuple)) bad_argument(call, what, "a tensor or list");
  for (const Cell* item : cell.items) {
    if (!item->is(Kind::kFloat) && !item->is(Kind::kInt)) bad_argument(call, what, "a list of numbers");
  }
  return static_cast<std::int64_t>(cell.items.size());
}

bool is_scheme(const Cell& cell) {
  return cell.is(Kind::kGlobal) && cell.type_name.starts_with("torch.per_") && find_known(cell.type_name) != nullptr;
}

void check_per_tensor(const Call& call, const Cell::Items& parameters) {
  if (parameters.size() != 3) bad_argument(call, "quantizer", "(scheme, scale, zero point)");
  const bool scale = parameters[1]->is(Kind::kFloat) || parameters[1]->is(Kind::kInt);
  if (!scale || !parameters[2]->is(Kind::kInt)) bad_argument(call, "scale or zero point", "a number");
}

void check_per_channel(const Call& call, const Cell::Items& parameters, const Shape& shape) {
  if (parameters.size() != 4) bad_argument(call, "quantizer", "(scheme, scales, zero points, axis)");
  const Cell& axis = *parameters[3];
  if (!axis.is(Kind::kInt) || axis.integer < 0 || static_cast<std::uint64_t>(axis.integer) >= shape.rank()) {
    bad_argument(call, "axis", "one of the tensor's dimensions");
  }
  const std::int64_t channels = shape[static_cast<std::size_t>(axis.integer)];
  const std::int64_t scales = parameter_count(call, *parameters[1], "scales");
  const std::int64_t zeros = parameter_count(call, *parameters[2], "zero points");
  if (scales != channels || zeros != channels) {
    corrupt(
        core::format("a quantized tensor of {} channels has {} scales and {} zero points", channels, scales, zeros));
  }
}

/// torch tags float_qparams as per_channel_affine: the zero points' dtype tells.
std::string_view scheme_of(const Call& call, const Cell::Items& parameters) {
  constexpr std::string_view kTorch = "torch.";
  const std::string_view scheme = parameters[0]->type_name.substr(kTorch.size());
  if (scheme != "per_channel_affine" || !parameters[2]->is(Kind::kTensor)) return scheme;
  const DType& zeros = call.world.tensor_of(*parameters[2]).dtype;
  return zeros.is_floating() ? "per_channel_affine_float_qparams" : scheme;
}

void require_rank(const Call& call, const TensorEntry& tensor, std::size_t rank, std::string_view what) {
  if (tensor.shape.rank() != rank)
    bad_argument(call, what, core::format("a tensor of {}", core::counted(rank, "dimension")));
}

/// (indices, values, size[, is_coalesced]): indices is (dimensions, n), values (n, ...).
void check_coo(const Call& call, const Cell::Items& data) {
  if (data.size() != 3 && data.size() != 4) bad_argument(call, "data", "(indices, values, size[, is_coalesced])");
  const TensorEntry& indices = require_tensor(call, *data[0], "indices");
  const TensorEntry& values = require_tensor(call, *data[1], "values");
  const auto size = shape_of(*data[2]);
  require_rank(call, indices, 2, "indices");
  if (!size) bad_argument(call, "size", "a tuple of integers");
  (void)size->numel();
  if (values.shape.rank() == 0 || values.shape[0] != indices.shape[1] ||
      indices.shape[0] + static_cast<std::int64_t>(values.shape.rank()) - 1 !=
          static_cast<std::int64_t>(size->rank())) {
    corrupt(core::format("a sparse tensor of size {} has indices {} and values {}", size->to_string(),
                         indices.shape.to_string(), values.shape.to_string()));
  }
}

/// (compressed indices, plain indices, values, size); batch dimensions come first in each.
void check_compressed(const Call& call, const Cell::Items& data) {
  if (data.size() != 4) bad_argument(call, "data", "(compressed indices, plain indices, values, size)");
  const TensorEntry& compressed = require_tensor(call, *data[0], "compressed indices");
  const TensorEntry& plain = require_tensor(call, *data[1], "plain indices");
  const TensorEntry& values = require_tensor(call, *data[2], "values");
  const auto size = shape_of(*data[3]);
  if (!size || size->rank() < 2) bad_argument(call, "size", "a tuple of two integers or more");
  (void)size->numel();
  const std::size_t rank = plain.shape.rank();
  const bool ranks_fit = rank >= 1 && compressed.shape.rank() == rank && values.shape.rank() >= rank;
  if (!ranks_fit || compressed.shape[rank - 1] < 1 || values.shape[rank - 1] != plain.shape[rank - 1]) {
    corrupt(core::format("a sparse tensor of size {} has compressed indices {}, plain indices {} and values {}",
                         size->to_string(), compressed.shape.to_string(), plain.shape.to_string(),
                         values.shape.to_string()));
  }
}

}  // namespace

/// (storage, offset, size, stride, (scheme, scale, zero point[, axis]), requires_grad, hooks). Items: values, scheme,
/// scales, zero points, axis or None, size.
Cell* call_rebuild_qtensor(const Call& call) {
  require_count(call, 7, 7);
  const StorageView& view = require_storage(call, 0);
  const Cell& parameters = require(call, 4, Kind::kTuple, "quantizer");
  const std::int64_t per_byte = packing(view.dtype);
  const Shape shape = require_shape(call, 2, "size");
  TensorEntry values = per_byte > 1 ? packed_view(call, view, per_byte)
                                    : checked_view(view, DType(view.dtype), require_int(call, 1, "offset"), shape,
                                                   require_shape(call, 3, "stride"));
  if (parameters.items.empty() || !is_scheme(*parameters.items[0])) {
    bad_argument(call, "quantizer", "a tuple that starts with one of torch's schemes");
  }
  const bool per_channel = parameters.items[0]->type_name.starts_with("torch.per_channel");
  if (per_channel) {
    check_per_channel(call, parameters.items, shape);
  } else {
    check_per_tensor(call, parameters.items);
  }
  values.requires_grad = require_flag(call, 5, "requires_grad");
  require_hooks(call, 6);
  Cell* scheme = call.world.make(Kind::kString);
  scheme->text = scheme_of(call, parameters.items);
  Cell* const axis = per_channel ? parameters.items[3] : call.world.make(Kind::kNone);
  Cell* const items[] = {call.world.make_tensor(std::move(values)),
                         scheme,
                         parameters.items[1],
                         parameters.items[2],
                         axis,
                         call.arguments[2]};
  return make_sealed(call, "torch.quantized", items);
}

Cell* call_rebuild_sparse(const Call& call) {
  require_count(call, 2, 2);
  const std::string_view layout = require(call, 0, Kind::kGlobal, "layout").type_name;
  const Cell& data = require(call, 1, Kind::kTuple, "data");
  if (layout == "torch.sparse_coo") {
    check_coo(call, data.items);
    return make_sealed(call, "torch.sparse_coo_tensor", data.items);
  }
  for (const std::string_view name :
       {"torch.sparse_csr_tensor", "torch.sparse_csc_tensor", "torch.sparse_bsr_tensor", "torch.sparse_bsc_tensor"}) {
    if (name != core::format("{}_tensor", layout)) continue;
    check_compressed(call, data.items);
    return make_sealed(call, name, data.items);
  }
  bad_argument(call, "layout", "a sparse one");
}

/// (buffer, sizes, strides, storage offsets): sizes and strides are (tensors, dimensions), offsets (tensors,).
Cell* call_rebuild_nested(const Call& call) {
  require_count(call, 4, 4);
  const TensorEntry& buffer = require_tensor(call, *call.arguments[0], "buffer");
  const TensorEntry& sizes = require_tensor(call, *call.arguments[1], "sizes");
  const TensorEntry& strides = require_tensor(call, *call.arguments[2], "strides");
  const TensorEntry& offsets = require_tensor(call, *call.arguments[3], "offsets");
  require_rank(call, buffer, 1, "buffer");
  require_rank(call, offsets, 1, "offsets");
  const std::int64_t tensors = offsets.shape[0];
  const bool empty = tensors == 0 && sizes.shape.numel() == 0;
  if (sizes.shape != strides.shape || (!empty && (sizes.shape.rank() != 2 || sizes.shape[0] != tensors))) {
    corrupt(core::format("a nested tensor of {} has sizes {} and strides {}", core::counted(tensors, "part"),
                         sizes.shape.to_string(), strides.shape.to_string()));
  }
  return make_sealed(call, "torch.nested_tensor", call.arguments);
}

/// (dtype, size, stride, requires_grad): no data anywhere.
Cell* call_rebuild_meta(const Call& call) {
  require_count(call, 4, 4);
  require(call, 0, Kind::kDType, "dtype");
  if (require_shape(call, 1, "size").rank() != require_shape(call, 2, "stride").rank()) {
    bad_argument(call, "stride", "as long as the size");
  }
  (void)require_flag(call, 3, "requires_grad");
  return make_sealed(call, "torch.meta_tensor", call.arguments);
}

Cell* call_rebuild_wrapper(const Call& call) {
  require_count(call, 8, 8);
  require(call, 1, Kind::kDType, "dtype");
  (void)require_shape(call, 2, "size");
  return make_sealed(call, "torch.wrapper_subclass", call.arguments);
}

}  // namespace penstock::format::pickle
