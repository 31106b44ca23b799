// expect-error: (use of deleted function|call to deleted member function).*data
#include <utility>

#include "penstock/tensor.h"

std::byte* first(penstock::Tensor tensor) {
#ifdef CONTROL
  return tensor.data();
#else
  return std::move(tensor).data();
#endif
}
