// expect-error: no matching function
#include <vector>

#include "penstock/tensor.h"

penstock::Tensor flags() {
#ifdef CONTROL
  return penstock::Tensor::of({true, false});
#else
  return penstock::Tensor::of(std::vector<bool>{true, false});  // its elements are bits and lie in no array
#endif
}
