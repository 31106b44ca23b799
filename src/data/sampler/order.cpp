#include <algorithm>
#include <numeric>
#include <utility>

#include "core/format.h"
#include "data/sampler/order_impl.h"
#include "penstock/error.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

class RangeOrder final : public detail::OrderImpl {
 public:
  explicit RangeOrder(std::int64_t size) : size_(size) {}
  std::int64_t size() const noexcept override { return size_; }
  void copy(std::int64_t position, std::span<std::int64_t> out) const noexcept override {
    std::iota(out.begin(), out.end(), position);
  }

 private:
  std::int64_t size_;
};

template <class T>
class Listed final : public detail::OrderImpl {
 public:
  explicit Listed(std::vector<T> indices) : indices_(std::move(indices)) {}
  std::int64_t size() const noexcept override { return static_cast<std::int64_t>(indices_.size()); }
  void copy(std::int64_t position, std::span<std::int64_t> out) const noexcept override {
    std::copy_n(indices_.begin() + static_cast<std::ptrdiff_t>(position), out.size(), out.begin());
  }

 private:
  std::vector<T> indices_;
};

}  // namespace

Order::Order(std::vector<std::int64_t> indices) : impl_(std::make_shared<Listed<std::int64_t>>(std::move(indices))) {}
Order::Order(std::vector<std::uint32_t> indices) : impl_(std::make_shared<Listed<std::uint32_t>>(std::move(indices))) {}

Order Order::range(Integer size) {
  if (size < 0) {
    throw Error(ErrorCode::kInvalidArgument, core::format("the size of an order is {}; it must be 0 or more", size));
  }
  return Order(std::make_shared<RangeOrder>(size));
}

std::int64_t Order::size() const noexcept { return impl_ ? impl_->size() : 0; }

std::int64_t Order::operator[](Integer position) const noexcept {
  std::int64_t out = 0;
  copy(position, {&out, 1});
  return out;
}

void Order::copy(Integer position, std::span<std::int64_t> out) const noexcept {
  if (impl_) impl_->copy(position, out);
}

std::vector<std::int64_t> Order::to_vector() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(size()));
  copy(0, out);
  return out;
}

}  // namespace penstock
