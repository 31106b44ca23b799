#pragma once

/// What Penstock asks of functions of programs, and how it keeps them: behind a pointer, so that they need not be
/// copied.

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/tensor.h"
#include "penstock/value.h"

namespace penstock {

class Generator;

namespace detail {

/// A function's argument or result that is a Value, or a Tensor in place of the Value that holds it.
template <class Type>
concept SampleLike = std::convertible_to<Type, Value> || std::convertible_to<Type, Tensor>;

template <SampleLike Result>
Value as_value(Result&& result) {
  if constexpr (std::convertible_to<Result, Value>) {
    return std::forward<Result>(result);
  } else {
    return Value::tensor(std::forward<Result>(result));
  }
}

/// The sample of a function that takes a Tensor; kDTypeMismatch says what it is otherwise, and what to take.
Tensor tensor_of(const Value& sample);

/// `function` with a sample that it takes as Value or as Tensor.
template <class Function, class... More>
decltype(auto) call_with(const Function& function, const Value& sample, More&... more) {
  if constexpr (std::is_invocable_v<const Function&, const Value&, More&...>) {
    return function(sample, more...);
  } else {
    return function(tensor_of(sample), more...);
  }
}

template <class Function, class... More>
concept TakesSample = std::is_invocable_v<const Function&, const Value&, More&...> ||
    std::is_invocable_v<const Function&, const Tensor&, More&...>;

template <class Function>
concept MapFunction = TakesSample<Function> || TakesSample<Function, Generator>;

template <class Function>
concept SampleMaker = SampleLike<std::invoke_result_t<const Function&, std::int64_t>>;

/// Makes a batch of the list of its samples.
template <class Function>
concept BatchMaker = SampleLike < std::invoke_result_t < const Function&,
        const std::vector<Value>
& >> ;

/// One object for all copies of what calls it, as std::function wants copies and a function may be move-only. Threads
/// call it at once, so as const.
template <class Function>
std::shared_ptr<const Function> kept(Function function) {
  return std::make_shared<const Function>(std::move(function));
}

}  // namespace detail
}  // namespace penstock
