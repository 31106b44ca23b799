#include <algorithm>
#include <cstring>

#include "core/format.h"
#include "data/transform/conversion.h"
#include "data/transform/walk.h"
#include "ops/convert.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

/// One_hot: a class number becomes a row of zeros with a one at its place, int64 as torch.nn.functional.one_hot has it.
class OneHotPass final : public Pass {
 public:
  OneHotPass(std::int64_t classes, const TensorLayout& input, TensorLayout output)
      : classes_(classes),
        from_(input.dtype.code()),
        width_(input.dtype.itemsize()),
        output_(std::move(output)),
        walk_(input.shape.dims(), views_of(input)) {}

  const TensorLayout& output() const noexcept override { return output_; }

  std::optional<Refused> run(const std::byte* from, std::byte* to, const Walk*) const noexcept override {
    if (output_.nbytes == 0) return std::nullopt;
    std::memset(to, 0, static_cast<std::size_t>(output_.nbytes));
    std::optional<Refused> refused;
    walk_.for_each([&](const Walk::Places& places) {
      for (std::int64_t i = 0; i < walk_.run() && !refused; ++i) {
        std::int64_t number = 0;
        const std::byte* const element = from + (places[0] + i * walk_.step(0)) * static_cast<std::int64_t>(width_);
        ops::convert(from_, element, DType::Code::kInt64, reinterpret_cast<std::byte*>(&number), 1);
        if (number < 0 || number >= classes_) {
          const bool is_unsigned = from_ == DType::Code::kUInt64;
          refused = Refused{.value = is_unsigned ? static_cast<double>(static_cast<std::uint64_t>(number))
                                                 : static_cast<double>(number)};
        } else {
          constexpr std::int64_t kOne = 1;
          std::memcpy(to + static_cast<std::size_t>(number) * sizeof kOne, &kOne, sizeof kOne);
        }
        to += static_cast<std::size_t>(classes_) * sizeof(std::int64_t);
      }
      return !refused;
    });
    return refused;
  }

  std::string explain(const Refused& refused) const override {
    return core::format("one_hot({}) found class {}; classes are counted from 0", classes_, refused.value);
  }

 private:
  static std::vector<View> views_of(const TensorLayout& input) {
    return {{.base = 0, .steps = {input.strides.begin(), input.strides.end()}}};
  }

  std::int64_t classes_;
  DType::Code from_;
  std::size_t width_;
  TensorLayout output_;
  Walk walk_;
};

}  // namespace

std::unique_ptr<const Pass> make_one_hot_pass(const OneHotOp& op, const TensorLayout& input) {
  if (!input.dtype.is_integer()) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("one_hot wants class numbers (integers), found {}", input.dtype.name()));
  }
  Shape shape = input.shape;
  shape.push_back(op.classes);
  TensorLayout output{DType::int64, shape, shape.contiguous_strides()};
  return std::make_unique<OneHotPass>(op.classes, input, std::move(output));
}

}  // namespace penstock::data
