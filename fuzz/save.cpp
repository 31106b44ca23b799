// Values made of the input's bytes, of every kind and with tensors of every type and layout, some shared: what is
// written is read back as it was, or writing is refused.

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "penstock/tensor.h"
#include "support/input.h"
#include "support/outcome.h"
#include "support/written.h"

namespace penstock::fuzz {
namespace {

constexpr std::size_t kMostDepth = 12;
constexpr std::size_t kMostValues = 200;

DType dtype_of(std::uint8_t byte) {
  const auto code = static_cast<DType::Code>(byte % (static_cast<unsigned>(DType::Code::kOpaque) + 1));
  switch (code) {
    case DType::Code::kBytes:
      return DType::with_descr(code, 3, "|S3");
    case DType::Code::kText:
      return DType::with_descr(code, 8, "<U2");
    case DType::Code::kVoid:
      return DType::with_descr(code, 5, "|V5");
    case DType::Code::kDateTime64:
      return DType::with_descr(code, 8, "<M8[25us]");
    case DType::Code::kTimeDelta64:
      return DType::with_descr(code, 8, "<m8[ns]");
    case DType::Code::kStructured:
      return DType::with_descr(code, 6, "[('a', '<f4'), ('b', '>i2')]");
    case DType::Code::kOpaque:
      return DType::with_descr(code, 16, "<f16");
    default:
      return code;
  }
}

class Builder {
 public:
  explicit Builder(Choices choices) : choices_(choices) {}

  Value build(std::size_t depth = 0) {
    if (++values_ > kMostValues || depth > kMostDepth) return {};
    Value out = choices_.below(2) == 0 ? leaf() : container(depth);
    // Some come again.
    made_.push_back(out);
    return out;
  }

 private:
  Value leaf() {
    switch (choices_.below(14)) {
      case 0:
        return {};
      case 1:
        return Value::boolean(choices_.flag());
      case 2:
        return Value::integer(static_cast<std::int64_t>(bits()));
      case 3:
        return Value::big_integer(digits());
      case 4:
        return Value::real(real());
      case 5: {
        const double first = real();
        return Value::complex({first, real()});
      }
      case 6:
        return Value::string(text());
      case 7:
        return Value::bytes(text());
      case 8:
        return Value::dtype(dtype_of(choices_.byte()));
      case 9:
        return made_.empty() ? Value() : made_[choices_.below(made_.size())];
      case 10:
        return Value::global(name());
      default:
        return Value::tensor(tensor());
    }
  }

  Value container(std::size_t depth) {
    switch (choices_.below(8)) {
      case 0:
        return Value::list(items(depth));
      case 1:
        return Value::tuple(items(depth));
      case 2:
        return size();
      case 3:
        return Value::set(items(depth));
      case 4:
        return object(depth);
      case 5: {
        std::vector<Value::Item> pairs;
        for (std::size_t n = choices_.below(4); n > 0; --n) {
          Value key = build(depth + 1);
          pairs.emplace_back(std::move(key), build(depth + 1));
        }
        return Value::dict(std::move(pairs), dict_type());
      }
      default: {
        std::vector<std::pair<std::string, Value>> pairs;
        for (std::size_t n = choices_.below(5); n > 0; --n) {
          std::string key = text();
          pairs.emplace_back(std::move(key), build(depth + 1));
        }
        return Value::dict(std::move(pairs), dict_type());
      }
    }
  }

  Value object(std::size_t depth) {
    std::string type = name();
    std::vector<Value> parts = items(depth);
    // Readers make a tensor of it, and an object only where its data is none.
    const bool plain_parameter =
        type.ends_with(".Parameter") && !parts.empty() && parts.front().is(Value::Kind::kTensor);
    if (plain_parameter) return parts.front();
    const bool jagged = type.ends_with("_rebuild_njt");
    std::optional<Value> state;
    if (choices_.flag()) state = build(depth + 1);
    // A state of None is none, and torch gives a jagged tensor attributes where it has none.
    if (state && state->is(Value::Kind::kNone)) state.reset();
    if (jagged && !state) state = Value::dict(std::vector<Value::Item>{});
    return Value::object(std::move(type), std::move(parts), std::move(state));
  }

  std::vector<Value> items(std::size_t depth) {
    std::vector<Value> out;
    for (std::size_t n = choices_.below(5); n > 0; --n) out.push_back(build(depth + 1));
    return out;
  }

  Value size() {
    std::vector<Value> out;
    for (std::size_t n = choices_.below(5); n > 0; --n) out.push_back(Value::integer(choices_.byte()));
    return Value::tuple(std::move(out), "torch.Size");
  }

  std::string dict_type() {
    constexpr auto kTypes =
        std::to_array<const char*>({"", "", "collections.OrderedDict", "collections.Counter", "my.Dict"});
    return kTypes[choices_.below(kTypes.size())];
  }

  /// Of what the writer of `.pt` knows, and of what it does not.
  std::string name() {
    constexpr auto kNames = std::to_array<const char*>(
        {"torch.device", "torch.marked_tensor", "torch.meta_tensor", "torch.nn.parameter.Parameter", "torch.quantized",
         "torch.sparse_coo_tensor", "torch.sparse_csr_tensor", "torch.nested_tensor", "torch.strided", "my.Thing",
         "torch.per_tensor_affine", "torch.nested._internal.nested_tensor._rebuild_njt"});
    return kNames[choices_.below(kNames.size())];
  }

  std::uint64_t bits() {
    std::uint64_t out = 0;
    for (std::size_t n = choices_.below(9); n > 0; --n) out = out << 8 | choices_.byte();
    return choices_.flag() ? ~out : out;
  }
  double real() {
    const std::uint64_t pattern = bits();
    double out = 0;
    std::memcpy(&out, &pattern, sizeof out);
    return out;
  }
  /// Of a number beyond 64 bits.
  std::string digits() {
    std::string out = choices_.flag() ? "-9" : "9";
    for (std::size_t n = 19 + choices_.below(30); n > 0; --n) out += static_cast<char>('0' + choices_.below(10));
    return out;
  }
  std::string text() {
    std::string out;
    for (std::size_t n = choices_.below(6); n > 0; --n) out += static_cast<char>(choices_.byte());
    return out;
  }

  Tensor tensor() {
    if (!tensors_.empty() && choices_.below(3) == 0) return narrowed(tensors_[choices_.below(tensors_.size())]);
    Shape shape;
    for (std::size_t n = choices_.below(4); n > 0; --n) shape.push_back(static_cast<std::int64_t>(choices_.below(5)));
    const DType dtype = dtype_of(choices_.byte());
    Tensor out = Tensor::empty(shape, dtype);
    for (std::size_t i = 0; i < out.nbytes(); ++i) {
      out.data()[i] = static_cast<std::byte>(dtype == DType::boolean ? i % 2 : i * 7 + 3);
    }
    if (choices_.below(4) == 0) out = expanded(out);
    if (dtype.is_floating() || dtype.is_complex()) out = out.with_requires_grad(choices_.below(8) == 1);
    tensors_.push_back(out);
    return narrowed(out);
  }

  Tensor expanded(const Tensor& tensor) {
    Shape shape = tensor.shape();
    Strides strides = tensor.strides();
    shape.push_back(static_cast<std::int64_t>(choices_.below(4)));
    strides.push_back(0);
    return {tensor.buffer(), tensor.dtype(), shape, strides, tensor.byte_offset()};
  }

  Tensor narrowed(Tensor tensor) {
    if (tensor.rank() == 0) return tensor;
    const std::size_t dim = choices_.below(tensor.rank());
    switch (choices_.below(5)) {
      case 1:
        return tensor.slice(dim, static_cast<std::int64_t>(choices_.below(3)), 5,
                            1 + static_cast<std::int64_t>(choices_.below(3)));
      case 2:
        return tensor.transpose(0, dim);
      case 3:
        return tensor.shape()[dim] == 0 ? tensor : tensor.select(dim, -1);
      default:
        return tensor;
    }
  }

  Choices choices_;
  std::size_t values_ = 0;
  std::vector<Value> made_;
  std::vector<Tensor> tensors_;
};

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::fuzz;
  const auto value = attempt([&] { return Builder(Choices(std::as_bytes(std::span(data, size)))).build(); });
  if (value.ok()) check_written(*value.value);
  return 0;
}
