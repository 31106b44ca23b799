// expect-error: invalid initialization of reference|no matching function
#include "penstock/ops.h"

penstock::Tensor filled() {
#ifdef CONTROL
  return penstock::full({2}, true);
#else
  return penstock::full({2}, "text");  // a pointer is no truth value
#endif
}
