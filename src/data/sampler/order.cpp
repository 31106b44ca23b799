#include <algorithm>
#include <numeric>
#include <utility>

#include "penstock/sampler.h"

namespace penstock {

Order::Order(std::vector<std::int64_t> indices)
    : indices_(std::make_shared<const std::vector<std::int64_t>>(std::move(indices))) {}
Order::Order(std::vector<std::uint32_t> indices)
    : indices_(std::make_shared<const std::vector<std::uint32_t>>(std::move(indices))) {}

Order Order::range(std::int64_t size) {
  Order out;
  out.indices_ = Range{size};
  return out;
}

std::int64_t Order::size() const noexcept {
  if (const auto* range = std::get_if<Range>(&indices_)) return range->size;
  if (const auto* narrow = std::get_if<Shared<std::uint32_t>>(&indices_)) {
    return static_cast<std::int64_t>((*narrow)->size());
  }
  return static_cast<std::int64_t>((*std::get_if<Shared<std::int64_t>>(&indices_))->size());
}

std::int64_t Order::operator[](std::int64_t position) const noexcept {
  std::int64_t out = 0;
  copy(position, {&out, 1});
  return out;
}

void Order::copy(std::int64_t position, std::span<std::int64_t> out) const noexcept {
  const auto from = [&](const auto& indices) {
    std::copy_n(indices.begin() + static_cast<std::ptrdiff_t>(position), out.size(), out.begin());
  };
  if (std::holds_alternative<Range>(indices_)) {
    std::iota(out.begin(), out.end(), position);
  } else if (const auto* narrow = std::get_if<Shared<std::uint32_t>>(&indices_)) {
    from(**narrow);
  } else {
    from(**std::get_if<Shared<std::int64_t>>(&indices_));
  }
}

std::vector<std::int64_t> Order::to_vector() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(size()));
  copy(0, out);
  return out;
}

}  // namespace penstock
