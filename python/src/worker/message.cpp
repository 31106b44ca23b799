#include "worker/message.h"

#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "core/format.h"
#include "data/collate/batch_plan.h"
#include "data/sample/layout.h"
#include "data/sample/strides.h"
#include "data/sample/value_samples.h"
#include "penstock/buffer.h"
#include "penstock/dtype.h"
#include "value/graph.h"

namespace penstock::python {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t kDeepest = 500;
/// The place of a tensor that lies in the slot of its batch, and not in the payload.
constexpr std::uint64_t kInSlot = ~std::uint64_t{0};

constexpr std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Types of NumPy, and those that are known by name alone.
bool has_descr(DType::Code code) noexcept { return code >= DType::Code::kBytes; }

std::string descr_of(const DType& dtype) {
  if (!has_descr(dtype.code())) return {};
  return dtype.code() == DType::Code::kOpaque ? dtype.name() : dtype.numpy_descr();
}

data::TensorLayout layout_of(const Tensor& tensor) { return {tensor.dtype(), tensor.shape(), tensor.strides()}; }

/// Bytes from its first element to behind its last.
std::uint64_t extent_of(const Tensor& tensor) { return layout_of(tensor).extent(); }

/// The tensor, or a copy without its gaps where they are large. Its elements stay in their order.
Tensor as_it_travels(const Tensor& tensor) {
  const data::TensorLayout layout = layout_of(tensor);
  if (layout.dense || data::keeps_gaps(layout)) return tensor;
  const Strides strides = data::dense_strides(layout.shape, layout.strides);
  const Tensor out(Buffer::allocate(static_cast<std::size_t>(layout.nbytes)), layout.dtype, layout.shape, strides);
  out.copy_from(tensor);
  return out;
}

[[noreturn]] void throw_too_deep() {
  throw Error(ErrorCode::kLimit,
              core::format("found content that nests deeper than {} levels, or in circles, on its way to a worker "
                           "process; give samples without",
                           kDeepest));
}

[[noreturn]] void throw_broken() {
  throw Error(ErrorCode::kCorrupt,
              "a message of a worker process is damaged; does the program write to memory that it does not own?");
}

}  // namespace

void MessageWriter::write_number(std::uint64_t value) {
  structure_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void MessageWriter::write_real(double value) { structure_.append(reinterpret_cast<const char*>(&value), sizeof value); }

void MessageWriter::write_text(std::string_view bytes) {
  write_number(bytes.size());
  structure_.append(bytes);
}

void MessageWriter::write_value(const Value& value, std::uint32_t tensor, std::span<std::byte> slot) {
  slot_ = slot;
  before_it_ = tensor;
  write_value_at(value, 0);
  slot_ = {};
}

void MessageWriter::write_value_at(const Value& value, std::size_t depth) {
  if (depth > kDeepest) throw_too_deep();
  const Value::Kind kind = value.kind();
  write_number(static_cast<std::uint64_t>(kind));
  switch (kind) {
    case Value::Kind::kNone:
      return;
    case Value::Kind::kBool:
      return write_number(value.as_bool() ? 1 : 0);
    case Value::Kind::kInt:
      return write_number(static_cast<std::uint64_t>(value.as_int()));
    case Value::Kind::kFloat:
      return write_real(value.as_float());
    case Value::Kind::kComplex:
      write_real(value.as_complex().real());
      return write_real(value.as_complex().imag());
    case Value::Kind::kBigInt:
    case Value::Kind::kString:
      return write_text(value.as_string());
    case Value::Kind::kBytes:
      write_text(value.type_name());
      return write_text(value.as_string());
    case Value::Kind::kTensor:
      return write_tensor(value);
    case Value::Kind::kDType: {
      const DType dtype = value.as_dtype();
      write_number(static_cast<std::uint64_t>(dtype.code()));
      write_number(dtype.itemsize());
      return write_text(descr_of(dtype));
    }
    case Value::Kind::kDict:
      write_text(value.type_name());
      write_number(value.size());
      for (std::size_t i = 0; i < value.size(); ++i) {
        const Value::Item item = value.item(i);
        write_value_at(item.first, depth + 1);
        write_value_at(item.second, depth + 1);
      }
      break;
    case Value::Kind::kList:
    case Value::Kind::kTuple:
    case Value::Kind::kSet:
    case Value::Kind::kObject:
    case Value::Kind::kGlobal:
      write_text(value.type_name());
      write_number(kind == Value::Kind::kGlobal ? 0 : value.size());
      if (kind == Value::Kind::kGlobal) return;
      for (std::size_t i = 0; i < value.size(); ++i) write_value_at(value[i], depth + 1);
      break;
  }
  const std::optional<Value> state = value.state();
  write_number(state ? 1 : 0);
  if (state) write_value_at(*state, depth + 1);
}

void MessageWriter::write_tensor(const Value& value) {
  const Tensor& given = data::host_tensor(value);
  Tensor tensor = as_it_travels(given);
  const std::uint64_t bytes = extent_of(tensor);
  const bool in_slot = !slot_.empty() && before_it_ == 0 && tensor.is_contiguous() && bytes == slot_.size();
  --before_it_;
  write_number(static_cast<std::uint64_t>(tensor.dtype().code()));
  write_number(tensor.dtype().itemsize());
  write_text(descr_of(tensor.dtype()));
  write_number(tensor.rank());
  for (std::size_t dim = 0; dim < tensor.rank(); ++dim) {
    write_number(static_cast<std::uint64_t>(tensor.shape()[dim]));
    write_number(static_cast<std::uint64_t>(tensor.strides()[dim]));
  }
  write_number(given.requires_grad() ? 1 : 0);
  if (in_slot) {
    write_number(kInSlot);
    std::memcpy(slot_.data(), tensor.data(), slot_.size());
    return;
  }
  const std::byte* const data = bytes > 0 ? tensor.data() : nullptr;
  const std::less<> before;
  const bool is_placed = data != nullptr && !placed_.empty() && !before(data, placed_.data()) &&
                         before(data + (bytes - 1), placed_.data() + placed_.size());
  if (is_placed) return write_number(static_cast<std::uint64_t>(data - placed_.data()));
  write_number(payload_);
  places_.push_back(payload_);
  payload_ += aligned(bytes);
  tensors_.push_back(std::move(tensor));
}

void MessageWriter::write_error(const Error& error, std::string_view cause) {
  write_number(static_cast<std::uint64_t>(error.code()));
  write_text(error.message());
  write_text(error.path());
  write_text(error.tensor());
  for (const auto& field :
       {error.offset(), error.system_error() ? std::optional<std::uint64_t>(*error.system_error()) : std::nullopt,
        error.http_status() ? std::optional<std::uint64_t>(*error.http_status()) : std::nullopt}) {
    write_number(field ? 1 : 0);
    write_number(field.value_or(0));
  }
  write_text(cause);
}

void MessageWriter::take_back(const Mark& mark) {
  structure_.resize(mark.structure);
  tensors_.resize(mark.tensors);
  places_.resize(mark.tensors);
  payload_ = mark.payload;
}

void MessageWriter::place_in(std::span<std::byte> placed) noexcept {
  placed_ = placed;
  payload_ = aligned(placed.size());
}

MessageExtent MessageWriter::extent(std::uint64_t payload_at) const noexcept {
  const std::uint64_t first = kMessageBegin + aligned(structure_.size());
  return {structure_.size(), payload_at >= first ? payload_at : first, payload_};
}

void MessageWriter::put(std::span<std::byte> block, const MessageExtent& extent) const {
  std::memset(block.data(), 0, kMessageBegin);
  std::memcpy(block.data() + kMessageBegin, structure_.data(), structure_.size());
  std::byte* const payload = block.data() + extent.payload_at;
  if (!placed_.empty() && placed_.data() != payload) std::memcpy(payload, placed_.data(), placed_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    const auto bytes = static_cast<std::size_t>(extent_of(tensor));
    if (bytes > 0) std::memcpy(payload + places_[i], tensor.data(), bytes);
  }
}

MessageReader::MessageReader(std::span<std::byte> block, const MessageExtent& extent, std::shared_ptr<const void> owner)
    : cursor_({}), owner_(std::move(owner)) {
  const std::size_t size = block.size();
  if (extent.payload_at < kMessageBegin || extent.payload_at > size || extent.payload > size - extent.payload_at ||
      extent.structure > extent.payload_at - kMessageBegin) {
    throw_broken();
  }
  cursor_ = core::Cursor(block.subspan(kMessageBegin, static_cast<std::size_t>(extent.structure)));
  payload_ = block.subspan(static_cast<std::size_t>(extent.payload_at), static_cast<std::size_t>(extent.payload));
}

Value MessageReader::value(const Buffer& slot) {
  slot_ = slot;
  Value out = value_at(0);
  slot_ = {};
  return out;
}

Value MessageReader::value_at(std::size_t depth) {
  if (depth > kDeepest) throw_too_deep();
  const std::uint64_t number_of_kind = number();
  if (number_of_kind > static_cast<std::uint64_t>(Value::Kind::kGlobal)) throw_broken();
  const auto kind = static_cast<Value::Kind>(number_of_kind);
  switch (kind) {
    case Value::Kind::kNone:
      return {};
    case Value::Kind::kBool:
      return Value::boolean(number() != 0);
    case Value::Kind::kInt:
      return Value::integer(static_cast<std::int64_t>(number()));
    case Value::Kind::kFloat:
      return Value::real(real());
    case Value::Kind::kComplex: {
      const double part = real();
      return Value::complex({part, real()});
    }
    case Value::Kind::kBigInt:
      return Value::big_integer(std::string(text()));
    case Value::Kind::kString:
      return Value::string(std::string(text()));
    case Value::Kind::kBytes:
      return bytes();
    case Value::Kind::kTensor:
      return Value::tensor(tensor());
    case Value::Kind::kDType: {
      const auto code = static_cast<DType::Code>(number());
      const auto itemsize = static_cast<std::size_t>(number());
      const std::string descr(text());
      return Value::dtype(has_descr(code) ? DType::with_descr(code, itemsize, descr) : DType(code));
    }
    default:
      break;
  }
  std::string type_name(text());
  const std::uint64_t count = number();
  if (kind == Value::Kind::kGlobal) return Value::global(std::move(type_name));
  std::vector<Value::Item> pairs;
  std::vector<Value> items;
  for (std::uint64_t i = 0; i < count; ++i) {
    Value first = value_at(depth + 1);
    if (kind == Value::Kind::kDict) {
      Value second = value_at(depth + 1);
      pairs.emplace_back(std::move(first), std::move(second));
    } else {
      items.push_back(std::move(first));
    }
  }
  std::optional<Value> state;
  if (number() != 0) state.emplace(value_at(depth + 1));
  switch (kind) {
    case Value::Kind::kDict:
      return Value::dict(std::move(pairs), std::move(type_name));
    case Value::Kind::kList:
      return Value::list(std::move(items));
    case Value::Kind::kTuple:
      return Value::tuple(std::move(items), std::move(type_name));
    case Value::Kind::kSet:
      return Value::set(std::move(items), std::move(type_name));
    default:
      return Value::object(std::move(type_name), std::move(items), std::move(state));
  }
}

/// Of a bytearray too, which only a node can say.
Value MessageReader::bytes() {
  std::string type_name(text());
  std::string content(text());
  if (type_name.empty()) return Value::bytes(std::move(content));
  ValueGraph graph;
  ValueGraph::Node* const node = graph.add(Value::Kind::kBytes);
  node->type_name = std::move(type_name);
  node->scalar = std::move(content);
  return graph.seal(node);
}

Tensor MessageReader::tensor() {
  const auto code = static_cast<DType::Code>(number());
  const auto itemsize = static_cast<std::size_t>(number());
  const std::string descr(text());
  const DType dtype = has_descr(code) ? DType::with_descr(code, itemsize, descr) : DType(code);
  Shape shape;
  Strides strides;
  for (std::uint64_t rank = number(); rank > 0; --rank) {
    shape.push_back(static_cast<std::int64_t>(number()));
    strides.push_back(static_cast<std::int64_t>(number()));
  }
  const bool requires_grad = number() != 0;
  const std::uint64_t place = number();
  const std::uint64_t bytes = data::TensorLayout(dtype, shape, strides).extent();
  if (place == kInSlot) {
    if (bytes == 0 || bytes != slot_.size()) throw_broken();
    return Tensor(slot_, dtype, shape, strides).with_requires_grad(requires_grad);
  }
  if (place > payload_.size() || bytes > payload_.size() - place) throw_broken();
  std::byte* const data = payload_.data() + place;
  Buffer buffer = bytes == 0 ? Buffer::allocate(0) : Buffer::wrap(data, static_cast<std::size_t>(bytes), owner_);
  return Tensor(std::move(buffer), dtype, shape, strides).with_requires_grad(requires_grad);
}

ErrorRead MessageReader::error() {
  const auto code = static_cast<ErrorCode>(number());
  std::string message(text());
  ErrorContext context;
  context.path = std::string(text());
  context.tensor = std::string(text());
  std::optional<std::uint64_t> fields[3];
  for (auto& field : fields) {
    const bool is_there = number() != 0;
    const std::uint64_t value = number();
    if (is_there) field = value;
  }
  context.offset = fields[0];
  if (fields[1]) context.system_error = static_cast<int>(*fields[1]);
  if (fields[2]) context.http_status = static_cast<int>(*fields[2]);
  return {Error(code, std::move(message), std::move(context)), std::string(text())};
}

}  // namespace penstock::python
