// expect-error: (use of deleted function|call to deleted member function).*data
#include "penstock/tensor.h"

std::byte* first(const penstock::Tensor& tensor) {
#ifdef CONTROL
  return tensor.data();
#else
  return tensor.clone().data();  // the clone's memory is gone with the full expression
#endif
}
