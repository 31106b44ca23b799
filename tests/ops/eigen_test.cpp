#include "penstock/eigen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "penstock/error.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock {
namespace {

TEST(ToEigen, IsAMapOfTheSameMemoryWithAnyStrides) {
  const Tensor tensor = test::counting<double>({3, 4});
  auto map = to_eigen<double>(tensor);
  ASSERT_EQ(map.rows(), 3);
  ASSERT_EQ(map.cols(), 4);
  EXPECT_EQ(map(1, 2), 6);
  map(2, 0) = 50;
  map.row(0) *= 2;
  EXPECT_EQ(tensor.at<double>(2, 0), 50);
  EXPECT_EQ(tensor.at<double>(0, 3), 6);
  const Tensor turned = tensor.transpose(0, 1).slice(0, 1, 4, 2);
  const auto other = to_eigen<const double>(turned);
  EXPECT_EQ(other.rows(), 2);
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 3; ++k) EXPECT_EQ(other(i, k), turned.at<const double>(i, k));
  }
  const Tensor repeated(tensor.buffer(), DType::float64, {2, 4}, {0, 1});
  EXPECT_EQ(to_eigen<const double>(repeated)(1, 3), to_eigen<const double>(repeated)(0, 3));
}

TEST(ToEigen, MultipliesAsPenstockDoes) {
  const Tensor a = test::counting<float>({3, 4});
  const Tensor x = test::counting<float>({8}).slice(0, 0, 8, 2);
  const Eigen::VectorXf y = to_eigen<const float>(a) * to_eigen_vector<const float>(x);
  EXPECT_EQ(test::values_of<float>(from_eigen(y)), (std::vector<float>{28, 76, 124}));
}

TEST(ToEigen, RefusesWhatItCannotView) {
  const Tensor tensor = test::counting<float>({3, 4});
  EXPECT_EQ(test::code_of([&] { to_eigen<double>(tensor); }), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(test::code_of([&] { to_eigen_vector<float>(tensor); }), ErrorCode::kShapeMismatch);
  const Tensor row = tensor[0];
  const auto rank = test::error_of([&] { to_eigen<float>(row); });
  EXPECT_EQ(rank->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(rank->message(), testing::HasSubstr("2 dimensions, and the tensor has shape (4,)"));
  const std::vector<float> fixed = {1, 2};
  const Tensor read_only = Tensor::view(fixed);
  EXPECT_EQ(test::code_of([&] { to_eigen_vector<float>(read_only); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(to_eigen_vector<const float>(read_only).sum(), 3);
}

TEST(FromEigen, CopiesMatricesAndExpressionsInCOrder) {
  Eigen::MatrixXf matrix(2, 3);
  matrix << 1, 2, 3, 4, 5, 6;
  const Tensor tensor = from_eigen(matrix);
  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  EXPECT_TRUE(tensor.is_contiguous());
  EXPECT_EQ(test::values_of<float>(tensor), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(test::values_of<float>(from_eigen(matrix.transpose() * 2)), (std::vector<float>{2, 8, 4, 10, 6, 12}));
  EXPECT_EQ(from_eigen(Eigen::RowVector3d(1, 2, 3)).shape(), (Shape{3}));
  EXPECT_EQ(from_eigen(Eigen::MatrixXi::Zero(0, 3)).shape(), (Shape{0, 3}));
  EXPECT_EQ(from_eigen(matrix.array() > 2).dtype(), DType::boolean);
  EXPECT_EQ(from_eigen(Eigen::ArrayXcf(2)).dtype(), DType::complex64);
}

TEST(FromEigen, TakesOverWhatIsMoved) {
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Random(30, 40);
  const Eigen::MatrixXd same = matrix;
  const double* const at = matrix.data();
  const Tensor tensor = from_eigen(std::move(matrix));
  EXPECT_EQ(tensor.data(), reinterpret_cast<const std::byte*>(at));
  EXPECT_EQ(tensor.strides(), (Strides{1, 30}));
  EXPECT_TRUE(to_eigen<const double>(tensor) == same);
  Eigen::Matrix<float, 2, 2, Eigen::RowMajor> small;
  small << 1, 2, 3, 4;
  EXPECT_EQ(test::values_of<float>(from_eigen(std::move(small))), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(from_eigen(Eigen::VectorXf()).shape(), (Shape{0}));
}

TEST(FromEigen, HalvesKeepTheirBits) {
  const Tensor halves = Tensor::of({float16(1.5F), float16(-2)});
  const auto map = to_eigen_vector<const Eigen::half>(halves);
  EXPECT_EQ(static_cast<float>(map[1]), -2);
  EXPECT_TRUE(Tensor::identical(from_eigen(map), halves));
  const Tensor brains = Tensor::of({bfloat16(1.5F), bfloat16(-2)});
  EXPECT_TRUE(Tensor::identical(from_eigen(to_eigen_vector<Eigen::bfloat16>(brains)), brains));
}

}  // namespace
}  // namespace penstock
