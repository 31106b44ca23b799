#include <numeric>

#include "core/format.h"
#include "penstock/error.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

class Sequential final : public Sampler {
 public:
  explicit Sequential(std::int64_t size) : size_(size) {}
  std::int64_t size() const noexcept override { return size_; }
  std::vector<std::int64_t> order(std::uint64_t, std::uint64_t) const override {
    std::vector<std::int64_t> out(static_cast<std::size_t>(size_));
    std::iota(out.begin(), out.end(), std::int64_t{0});
    return out;
  }

 private:
  std::int64_t size_;
};

}  // namespace

SamplerPtr sequential(std::int64_t size) {
  if (size < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the size of a sequential sampler is {}; it must be 0 or more", size));
  }
  return std::make_shared<Sequential>(size);
}

}  // namespace penstock
