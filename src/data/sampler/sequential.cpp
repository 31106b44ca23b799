#include "core/format.h"
#include "penstock/error.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

class Sequential final : public SamplerInterface {
 public:
  explicit Sequential(std::int64_t size) : size_(size) {}
  std::int64_t size() const noexcept override { return size_; }
  std::string_view kind() const noexcept override { return "sequential"; }
  Order order(std::uint64_t, std::uint64_t) const override { return Order::range(size_); }

 private:
  std::int64_t size_;
};

}  // namespace

Sampler sampler::sequential(Integer size) {
  if (size < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the size of a sequential sampler is {}; it must be 0 or more", size));
  }
  return Sequential(size);
}

}  // namespace penstock
