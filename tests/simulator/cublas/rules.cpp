#include "simulator/cublas/rules.h"

#include <algorithm>
#include <cstring>

#include "simulator/cublas/driver.h"

namespace penstock::simulator {
namespace {

/// A matrix as it lies in memory: `columns` of `rows` elements.
struct Placed {
  const char* name;
  const void* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t leading;
  std::int64_t stride;
};

std::string check_range(const Placed& matrix, std::int64_t batch, std::size_t width) {
  const auto address = reinterpret_cast<CUdeviceptr>(matrix.data);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  if (find_blas_driver()->address_range(&base, &bytes, address) != kSuccess) {
    return std::string(matrix.name) + " is not in the device's memory";
  }
  const std::int64_t last = (batch - 1) * matrix.stride + (matrix.columns - 1) * matrix.leading + matrix.rows - 1;
  if (address + (static_cast<std::uint64_t>(last) + 1) * width <= base + bytes) return {};
  return std::string(matrix.name) + " ends behind its memory";
}

std::string check_matrix(const Placed& matrix, std::int64_t batch, std::size_t width) {
  if (matrix.leading < std::max<std::int64_t>(1, matrix.rows)) {
    return std::string("the leading dimension of ") + matrix.name + " is smaller than its columns are long";
  }
  if (matrix.rows == 0 || matrix.columns == 0 || batch == 0) return {};
  if (matrix.data == nullptr) return std::string(matrix.name) + " is null";
  if (reinterpret_cast<std::uintptr_t>(matrix.data) % width != 0) return std::string(matrix.name) + " is not aligned";
  return check_range(matrix, batch, width);
}

bool is_operation(int operation) { return operation == kBlasN || operation == kBlasT || operation == kBlasC; }

double factor_from(const void* from, int type) {
  if (type == kR64F) return *static_cast<const double*>(from);
  return static_cast<double>(*static_cast<const float*>(from));
}

}  // namespace

bool are_types_supported(const BlasCall& call) {
  if (call.a_type != call.b_type || call.a_type != call.c_type) return false;
  switch (call.a_type) {
    case kR16F:
    case kR16BF:
    case kR32F:
      return call.compute == kCompute32F;
    case kR64F:
      return call.compute == kCompute64F;
    default:
      return false;
  }
}

std::string broken_rule(const BlasCall& call) {
  if (!is_operation(call.op_a) || !is_operation(call.op_b)) return "there is no such operation";
  if (call.op_a == kBlasC || call.op_b == kBlasC) return "conjugates are not simulated";
  if (call.m < 0 || call.n < 0 || call.k < 0 || call.batch < 0) return "a size is negative";
  if (call.alpha == nullptr || call.beta == nullptr) return "a factor is null";
  if (call.algorithm != kGemmDefault) return "an algorithm was chosen";
  const bool as_is_a = call.op_a == kBlasN;
  const bool as_is_b = call.op_b == kBlasN;
  const Placed matrices[] = {
      {"A", call.a, as_is_a ? call.m : call.k, as_is_a ? call.k : call.m, call.lda, call.stride_a},
      {"B", call.b, as_is_b ? call.k : call.n, as_is_b ? call.n : call.k, call.ldb, call.stride_b},
      {"C", call.c, call.m, call.n, call.ldc, call.stride_c},
  };
  for (const Placed& matrix : matrices) {
    if (std::string wrong = check_matrix(matrix, call.batch, element_bytes(call.c_type)); !wrong.empty()) return wrong;
  }
  const std::int64_t result = std::int64_t{call.n - 1} * call.ldc + call.m;
  if (call.batch > 1 && call.stride_c < result) return "results overlap";
  return {};
}

SimProduct as_product(const BlasCall& call) {
  SimProduct out{};
  out.a = static_cast<const std::byte*>(call.a);
  out.b = static_cast<const std::byte*>(call.b);
  out.c = static_cast<std::byte*>(call.c);
  out.m = call.m;
  out.n = call.n;
  out.k = call.k;
  out.lda = call.lda;
  out.ldb = call.ldb;
  out.ldc = call.ldc;
  out.stride_a = call.stride_a;
  out.stride_b = call.stride_b;
  out.stride_c = call.stride_c;
  out.batch = call.batch;
  out.type = call.c_type;
  out.transposed_a = call.op_a != kBlasN;
  out.transposed_b = call.op_b != kBlasN;
  out.alpha = factor_from(call.alpha, call.c_type);
  out.beta = factor_from(call.beta, call.c_type);
  return out;
}

}  // namespace penstock::simulator
