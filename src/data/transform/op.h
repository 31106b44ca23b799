#pragma once

// What the data layer asks of a step, whichever it is.

#include <cstdint>
#include <string_view>

#include "penstock/transforms.h"

namespace penstock::data {

using namespace detail::steps;  // whichever there are
using Op = detail::steps::TransformOp;

/// kInvalidArgument for a step that suits no sample. What does not suit one is refused when it is read, because only
/// then its type and shape are known.
void require_sound(const Op& op);
/// Whether random numbers decide what it does to a sample.
bool is_random(const Op& op) noexcept;
/// How many random numbers it draws for each sample.
std::uint32_t draws_of(const Op& op) noexcept;
/// The same op, but its random numbers follow the first `draws` of the sample, which earlier ops take.
Op behind(Op op, std::uint32_t draws);
/// The same op, drawing by that key of a sample.
Op with_key(Op op, std::uint32_t key);
/// "cast", "normalize": its name for users.
std::string_view name_of(const Op& op) noexcept;

}  // namespace penstock::data
