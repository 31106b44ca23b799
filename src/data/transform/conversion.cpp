#include "data/transform/conversion.h"

#include <algorithm>
#include <utility>

#include "penstock/error.h"

namespace penstock::data {

std::string_view name_of(const Op& op) noexcept {
  return std::visit([](const auto& one) { return one.name(); }, op);
}

std::uint32_t draws_of(const Op& op) noexcept {
  return std::visit(
      [](const auto& one) -> std::uint32_t {
        if constexpr (requires { one.first_draw; }) return one.draws();
        return 0;
      },
      op);
}

bool is_random(const Op& op) noexcept { return draws_of(op) > 0; }

namespace {

/// How many keys the step wants.
std::uint32_t keys_of(const Op& op) noexcept {
  return std::visit(
      [](const auto& one) -> std::uint32_t {
        if constexpr (requires { one.key; }) return one.draws() > 0 ? one.key + 1 : 0;
        return 0;
      },
      op);
}

/// The op, and `set` called with it where random numbers may decide what it does.
Op with_draws(Op op, auto set) {
  std::visit(
      [&](auto& one) {
        if constexpr (requires { one.first_draw; }) set(one);
      },
      op);
  return op;
}

}  // namespace

Op with_key(Op op, std::uint32_t key) {
  return with_draws(std::move(op), [key](auto& one) { one.key = key; });
}

Op behind(Op op, std::uint32_t draws) {
  return with_draws(std::move(op), [draws](auto& one) { one.first_draw = draws; });
}

Conversion::Conversion(std::vector<Op> ops, const TensorLayout& input, bool keeps_order)
    : ops_(std::move(ops)), input_(input), input_extent_(input.extent()), keeps_order_(keeps_order) {
  for (const Op& op : ops_) keys_ = std::max(keys_, keys_of(op));
  std::span<const Op> rest(ops_);
  const TensorLayout* layout = &input_;
  while (!rest.empty()) {
    if (const auto* one_hot = std::get_if<OneHotOp>(&rest.front())) {
      passes_.push_back(make_one_hot_pass(*one_hot, *layout));
      rest = rest.subspan(1);
    } else {
      passes_.push_back(make_element_pass(rest, *layout, keeps_order));
    }
    layout = &passes_.back()->output();
    // The memory between passes has two halves: a pass reads one and fills the other.
    if (!rest.empty()) between_ = std::max(between_, 2 * ((layout->nbytes + 63) & ~std::uint64_t{63}));
  }
}

const TensorLayout& Conversion::output() const noexcept { return passes_.empty() ? input_ : passes_.back()->output(); }

Conversion::Drawn Conversion::draw(const std::uint64_t* keys) const {
  Drawn out;
  if (keys_ == 0) return out;
  out.reserve(passes_.size());
  for (const auto& pass : passes_) out.push_back(pass->draw(keys));
  return out;
}

std::optional<Refused> Conversion::run(const std::byte* from, std::byte* to, std::byte* between,
                                       const Drawn& drawn) const noexcept {
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    std::byte* const target = i + 1 == passes_.size() ? to : between + (i % 2) * (between_ / 2);
    const Walk* const walk = drawn.empty() || !drawn[i] ? nullptr : &*drawn[i];
    if (auto refused = passes_[i]->run(from, target, walk)) {
      refused->pass = static_cast<std::uint32_t>(i);
      return refused;
    }
    from = target;
  }
  return std::nullopt;
}

void Conversion::throw_refused(const Refused& refused) const {
  throw Error(ErrorCode::kInvalidArgument, passes_[refused.pass]->explain(refused));
}

}  // namespace penstock::data
