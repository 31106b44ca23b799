// Dense tensors as torch pickles them (torch/_utils.py, torch/_tensor.py), and the small torch types around them.

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "core/view.h"
#include "format/elsewhere.h"
#include "format/pt/pickle/calls.h"
#include "penstock/error.h"

namespace penstock::format::pickle {

namespace {

using Kind = Value::Kind;

using core::corrupt;

/// {'conj': True, 'neg': True}, each optional.
void apply_metadata(const Call& call, std::size_t index, TensorEntry& tensor) {
  if (index >= call.arguments.size()) return;
  const Cell& metadata = *call.arguments[index];
  if (metadata.is(Kind::kNone)) return;
  if (!metadata.is(Kind::kDict)) bad_argument(call, "metadata", "a dict");
  for (std::size_t i = 0; i < metadata.items.size(); i += 2) {
    const Cell& key = *metadata.items[i];
    const Cell& value = *metadata.items[i + 1];
    if (!key.is(Kind::kString) || (key.text != "conj" && key.text != "neg")) continue;
    if (!value.is(Kind::kBool)) bad_argument(call, "metadata", "made of True and False");
    (key.text == "conj" ? tensor.encoding.conjugate : tensor.encoding.negative) = value.boolean;
  }
  if (tensor.encoding.conjugate && !tensor.dtype.is_complex())
    bad_argument(call, "metadata", "fit for a tensor that is not complex");
}

TensorEntry rebuild(const Call& call, const DType& dtype) {
  return plain_view(require_storage(call, 0), dtype, require_int(call, 1, "offset"), require_shape(call, 2, "size"),
                    require_shape(call, 3, "stride"));
}

bool is_state_of_empty_tensor(const Cell& state) {
  return state.is(Kind::kTuple) && state.items.size() == 4 && state.items[0]->role == Role::kStorage;
}

/// The class of the storages of torch.FloatTensor, torch.cuda.FloatTensor, ...; none for torch.Tensor.
std::optional<StorageType> storage_type_of(std::string_view tensor_class) {
  constexpr std::string_view kTensor = "Tensor";
  tensor_class.remove_suffix(kTensor.size());
  return storage_type(core::format("{}Storage", tensor_class));
}

/// Whether tensors can be of that class: a name that stands for values of another kind would make them those.
bool may_be_tensor_class(const Cell& type) {
  const std::string_view name = type.type_name;
  if (name == kParameterName) return true;
  if (type.role == Role::kStorageType || is_own_name(name) || name.starts_with("numpy.")) return false;
  const KnownName* known = find_known(name);
  return known == nullptr || known->handler == nullptr || known->handler == call_tensor_class;
}

/// The same tensor again under another mark, sharing the storage.
Cell* with_mark(World& world, const Cell& data, bool requires_grad, std::string_view type_name = {}) {
  TensorEntry tensor = world.tensor_of(data);
  tensor.requires_grad = requires_grad;
  Cell* cell = world.make_tensor(std::move(tensor));
  cell->type_name = type_name;
  return cell;
}

}  // namespace

TensorEntry checked_view(const StorageView& view, const DType& dtype, std::int64_t offset, const Shape& shape,
                         const Strides& strides) {
  if (shape.rank() != strides.rank()) {
    corrupt(core::format("a tensor of {} with {}", core::counted(shape.rank(), "dimension"),
                         core::counted(strides.rank(), "stride")));
  }
  if (offset < 0) corrupt(core::format("a tensor starts at element {} of its storage", offset));
  for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] < 0) corrupt(core::format("a tensor's dimension {} has size {}", dim, shape[dim]));
    if (strides[dim] < 0) corrupt(core::format("a tensor's dimension {} has stride {}", dim, strides[dim]));
  }
  TensorEntry tensor{.dtype = dtype, .shape = shape, .strides = strides, .storage = view.storage};
  const auto itemsize = static_cast<std::int64_t>(dtype.itemsize());
  constexpr std::string_view kExtent = "the extent of a tensor";
  const std::int64_t numel = shape.numel();
  (void)core::checked_mul(numel, itemsize, kExtent);
  tensor.byte_offset = view.offset;
  if (numel == 0) {
    // An offset that no element is at may be anywhere, and is kept where it could be one.
    const auto begin = core::try_mul<std::uint64_t>(static_cast<std::uint64_t>(offset), dtype.itemsize());
    if (begin && *begin <= view.nbytes) tensor.byte_offset += *begin;
    return tensor;
  }
  const auto extent = core::view_extent(shape, strides);
  if (!extent) core::throw_overflow(kExtent);
  const std::int64_t end = core::checked_mul(core::checked_add(offset, *extent, kExtent), itemsize, kExtent);
  if (static_cast<std::uint64_t>(end) > view.nbytes) {
    corrupt(core::format("a tensor {} of shape {}, strides {} and offset {} takes {} of a storage that has {}",
                         dtype.name(), shape.to_string(), strides.to_string(), offset, core::counted(end, "byte"),
                         view.nbytes));
  }
  tensor.byte_offset += static_cast<std::uint64_t>(offset * itemsize);
  return tensor;
}

TensorEntry plain_view(const StorageView& view, const DType& dtype, std::int64_t offset, const Shape& shape,
                       const Strides& strides) {
  if (is_quantized(dtype.code())) {
    corrupt(
        core::format("a tensor {} has no scale and zero point, without which its elements mean nothing", dtype.name()));
  }
  return checked_view(view, dtype, offset, shape, strides);
}

Cell* call_rebuild_tensor(const Call& call) {
  require_count(call, 4, 4);
  return call.world.make_tensor(rebuild(call, DType(require_storage(call, 0).dtype)));
}

Cell* call_rebuild_tensor_v2(const Call& call) {
  require_count(call, 6, 7);
  TensorEntry tensor = rebuild(call, DType(require_storage(call, 0).dtype));
  tensor.requires_grad = require_flag(call, 4, "requires_grad");
  require_hooks(call, 5);
  apply_metadata(call, 6, tensor);
  return call.world.make_tensor(std::move(tensor));
}

Cell* call_rebuild_tensor_v3(const Call& call) {
  require_count(call, 7, 8);
  TensorEntry tensor = rebuild(call, dtype_of(require(call, 6, Kind::kDType, "dtype")));
  tensor.requires_grad = require_flag(call, 4, "requires_grad");
  require_hooks(call, 5);
  apply_metadata(call, 7, tensor);
  return call.world.make_tensor(std::move(tensor));
}

Cell* call_rebuild_parameter(const Call& call) {
  const bool with_state = call.name().ends_with("_with_state");
  require_count(call, with_state ? 4 : 3, with_state ? 4 : 3);
  const Cell& data = *call.arguments[0];
  const bool requires_grad = require_flag(call, 1, "requires_grad");
  require_hooks(call, 2);
  // A parameter may be sparse, quantized or of a subclass.
  if (data.is(Kind::kObject) && (data.role == Role::kPlain || data.role == Role::kSealed)) {
    Cell* parameter = call.world.make_object(kParameterName, call.arguments.first(2));
    parameter->role = Role::kSealed;
    if (with_state) parameter->state = call.arguments[3];
    return parameter;
  }
  require(call, 0, Kind::kTensor, "data");
  Cell* parameter = with_mark(call.world, data, requires_grad, kParameterName);
  if (with_state) parameter->state = call.arguments[3];
  return parameter;
}

/// torch.nn.Parameter(data[, requires_grad]), and Variable(data) of the first versions, whose mark comes with BUILD.
Cell* call_parameter(const Call& call) {
  if (call.arguments.empty()) return call.world.make_object(call.name(), call.arguments);
  require_count(call, 1, 2);
  require(call, 0, Kind::kTensor, "data");
  const bool requires_grad = call.arguments.size() > 1 ? require_flag(call, 1, "requires_grad") : true;
  return with_mark(call.world, *call.arguments[0], requires_grad, call.name());
}

/// Whether the object has its class in itself, so that nothing has to say it once more.
bool says_class(const Cell& made, const Cell& type) {
  if (type.type_name == "torch.Tensor") return true;
  if (made.type_name == "torch.wrapper_subclass") return made.items[0]->type_name == type.type_name;
  constexpr std::string_view kModule = "torch.nested._internal.nested_tensor.";
  return made.type_name == core::format("{}_rebuild_njt", kModule) &&
         type.type_name == core::format("{}NestedTensor", kModule);
}

/// (function, class, its arguments, state): a tensor with attributes, or of a subclass. Around an object that does not
/// say its class, an object kSubclassName (data, class) does.
Cell* call_rebuild_from_type(const Call& call) {
  require_count(call, 4, 4);
  const Cell& function = require(call, 0, Kind::kGlobal, "function");
  const Cell& type = require(call, 1, Kind::kGlobal, "class");
  const Cell& arguments = require(call, 2, Kind::kTuple, "arguments");
  if (makes_calls(function)) bad_argument(call, "function", "one that makes a tensor");
  Cell* made = call.world.call(call.arguments[0], arguments.items);
  if (!made->is(Kind::kTensor) && !made->is(Kind::kObject)) bad_argument(call, "function", "one that makes a tensor");
  if (type.type_name != "torch.Tensor" && !may_be_tensor_class(type)) bad_argument(call, "class", "one of tensors");
  if (made->is(Kind::kObject) && !says_class(*made, type)) {
    Cell* const parts[] = {made, call.arguments[1]};
    made = call.world.make_object(kSubclassName, parts);
    made->role = Role::kSealed;
  } else if (made->is(Kind::kTensor) && type.type_name != "torch.Tensor") {
    made->type_name = type.type_name;
  }
  if (!call.arguments[3]->is(Kind::kNone)) made->state = call.arguments[3];
  return made;
}

/// (data, dtype, device, requires_grad): a tensor of a device that is kept in host memory.
Cell* call_rebuild_device_tensor(const Call& call) {
  require_count(call, 4, 4);
  const Cell& data = require(call, 0, Kind::kTensor, "data");
  const DType dtype = dtype_of(require(call, 1, Kind::kDType, "dtype"));
  const bool requires_grad = require_flag(call, 3, "requires_grad");
  // Kept in another dtype than its own: the parts are given as they are.
  if (call.world.tensor_of(data).dtype != dtype) return call.world.make_object(call.name(), call.arguments);
  return with_mark(call.world, data, requires_grad);
}

/// torch.FloatTensor(): empty, its BUILD brings the storage.
Cell* call_tensor_class(const Call& call) {
  Cell* object = call.world.make_object(call.name(), call.arguments);
  if (call.arguments.empty()) object->role = Role::kEmptyTensor;
  return object;
}

void build_empty_tensor(World& world, Cell* object, Cell* state) {
  if (!is_state_of_empty_tensor(*state)) corrupt("the state of a tensor is not (storage, offset, size, stride)");
  const Cell& offset = *state->items[1];
  const auto shape = shape_of(*state->items[2]);
  const auto strides = shape_of(*state->items[3]);
  if (!offset.is(Kind::kInt) || !shape || !strides) corrupt("offset, size or stride of a tensor are not all integers");
  const StorageView& view = world.views()[state->items[0]->ref];
  if (const auto type = storage_type_of(object->type_name); type && type->dtype != view.dtype) {
    corrupt(core::format("a {} has a storage of {}", object->type_name, DType(view.dtype).name()));
  }
  const Cell* made = world.make_tensor(plain_view(view, DType(view.dtype), offset.integer, *shape, *strides));
  object->kind = Kind::kTensor;
  object->role = Role::kTensor;
  object->ref = made->ref;
  object->type_name = {};
}

/// torch 0.1 to 0.3: (requires_grad, volatile, hooks). Otherwise attributes.
void build_tensor(World& world, Cell* tensor, Cell* state) {
  const auto& items = state->items;
  if (is_state_of_empty_tensor(*state)) corrupt("BUILD gives elements to a tensor that has some already");
  if (state->is(Kind::kTuple) && items.size() == 3 && items[0]->is(Kind::kBool) && items[1]->is(Kind::kBool)) {
    world.tensor_of(*tensor).requires_grad = items[0]->boolean;
  } else {
    tensor->state = state;
  }
}

Cell* call_size(const Call& call) {
  require_count(call, 0, 1);
  Cell* size = call.world.make(Kind::kTuple, "torch.Size");
  if (call.arguments.empty()) return size;
  const Cell& from = *call.arguments[0];
  if (!from.is(Kind::kTuple) && !from.is(Kind::kList)) bad_argument(call, "size", "a tuple of integers");
  call.world.arena().charge(from.items.size());
  for (Cell* item : from.items) {
    if (!item->is(Kind::kInt)) bad_argument(call, "size", "a tuple of integers");
    size->items.push_back(item);
  }
  return size;
}

Cell* call_device(const Call& call) {
  require_count(call, 1, 2);
  require(call, 0, Kind::kString, "device");
  if (call.arguments.size() == 2 && !call.arguments[1]->is(Kind::kNone)) (void)require_int(call, 1, "index");
  Cell* device = call.world.make_object(call.name(), call.arguments);
  device->role = Role::kSealed;
  return device;
}

/// ('torch.sparse_coo',): the layout of that name.
Cell* call_get_layout(const Call& call) {
  require_count(call, 1, 1);
  const Cell& name = require(call, 0, Kind::kString, "layout");
  if (!name.text.starts_with("torch.") || find_known(name.text) == nullptr)
    bad_argument(call, "layout", "one of torch's");
  return call.world.make(Kind::kGlobal, name.text);
}

}  // namespace penstock::format::pickle
