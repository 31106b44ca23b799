#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "penstock/error.h"
#include "penstock/tensor.h"
#include "penstock/visit.h"
#include "support/errors.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Strings, TextsComeBack) {
  const std::vector<std::string> texts = {"cat", "", "\xC3\xA4\xF0\x9F\x98\x80", "a b"};
  const Tensor tensor = Tensor::of(texts);
  EXPECT_EQ(tensor.dtype().numpy_descr(), "<U3");
  EXPECT_EQ(tensor.shape(), Shape{4});
  EXPECT_EQ(tensor.strings(), texts);
  EXPECT_THAT(Tensor::of({"x", "yz"}).strings(), ElementsAre("x", "yz"));
  EXPECT_THAT(tensor.slice(0, 0, 4, 3).strings(), ElementsAre("cat", "a b"));
  EXPECT_THAT(tensor.reshape({2, 2}).transpose(0, 1).strings(), ElementsAre("cat", texts[2], "", "a b"));
}

TEST(Strings, AreNoNumbersThatAVisitorCouldTake) {
  EXPECT_EQ(test::code_of([] { visit(Tensor::of({"a"}), [](auto) {}); }), ErrorCode::kDTypeMismatch);
}

TEST(Strings, NoTextsAreOneCharacterWideAsInNumPy) {
  const Tensor tensor = Tensor::of(std::vector<std::string>());
  EXPECT_EQ(tensor.dtype().numpy_descr(), "<U1");
  EXPECT_THAT(tensor.strings(), IsEmpty());
}

TEST(Strings, BytesAreAsTheyAre) {
  constexpr std::array<unsigned char, 6> kBytes = {'a', 0xFF, 0, 'b', 0, 0};
  const auto type = DType::with_descr(DType::Code::kBytes, 3, "|S3");
  const Tensor tensor(Tensor::of(kBytes).buffer(), type, Shape{2});
  EXPECT_THAT(tensor.strings(), ElementsAre("a\xFF", "b"));
}

TEST(Strings, OtherTypesAndOtherTextAreRefused) {
  EXPECT_EQ(test::code_of([] { static_cast<void>(Tensor::of({1, 2}).strings()); }), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(test::code_of([] { Tensor::of({"fine", "\xFF"}); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
