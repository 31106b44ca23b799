#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <vector>

#include "penstock/device.h"
#include "penstock/tensor.h"

namespace penstock::test {

/// Tests of a device that may not be there: on the simulated driver or on a real one, and skipped without either.
class WithDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_available()) GTEST_SKIP() << "no device; PENSTOCK_LIBCUDA names a simulated driver";
  }
  const Device device{DeviceType::kCuda, 0};
};

/// `count` bytes that differ from those around them.
inline Tensor pattern(std::int64_t count, unsigned seed = 1) {
  Tensor out = Tensor::empty({count}, DType::uint8);
  unsigned state = seed * 2654435761U + 1;
  for (std::byte& byte : std::span(out.data(), out.nbytes())) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
  }
  return out;
}

}  // namespace penstock::test
