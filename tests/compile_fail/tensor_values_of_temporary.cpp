// expect-error: (use of deleted function|call to deleted member function).*values
#include <span>

#include "penstock/tensor.h"

float sum() {
#ifdef CONTROL
  const penstock::Tensor tensor = penstock::Tensor::zeros({2});
  const std::span<float> values = tensor.values<float>();
#else
  const std::span<float> values = penstock::Tensor::zeros({2}).values<float>();
#endif
  return values[0] + values[1];
}
