#include "penstock/visit.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <type_traits>

#include "penstock/error.h"
#include "support/errors.h"

namespace penstock {
namespace {

TEST(Visit, GivesTheElementsInTheirOwnType) {
  const auto sum = [](auto elements) {
    static_assert(std::is_const_v<typename decltype(elements)::element_type>);
    double out = 0;
    for (const auto& element : elements) {
      if constexpr (requires { static_cast<double>(element); }) {
        out += static_cast<double>(element);
      } else {
        out += element.real();
      }
    }
    return out;
  };
  EXPECT_EQ(visit(Tensor::of<std::int8_t>({1, -3}), sum), -2);
  EXPECT_EQ(visit(Tensor::of<bfloat16>({bfloat16(1.5F), bfloat16(2)}), sum), 3.5);
  EXPECT_EQ(visit(Tensor::of({true, true}), sum), 2);
  EXPECT_EQ(visit(Tensor::of<std::complex<double>>({{1, 2}}), sum), 1);
}

TEST(Visit, WritesWhereThatIsAsked) {
  const Tensor tensor = Tensor::of({1, 2, 3});
  visit_writable(tensor, [](auto elements) {
    if constexpr (std::is_same_v<typename decltype(elements)::element_type, int>) elements[1] = 7;
  });
  EXPECT_EQ(tensor.at<int>(1), 7);
  const std::vector<int> fixed = {1};
  EXPECT_EQ(test::code_of([&] { visit_writable(Tensor::view(fixed), [](auto) {}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([] { visit(Tensor::of({std::string("a")}), [](auto) {}); }), ErrorCode::kDTypeMismatch);
}

}  // namespace
}  // namespace penstock
