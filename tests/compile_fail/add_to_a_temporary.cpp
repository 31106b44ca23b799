// expect-error: cannot bind non-const lvalue reference|no viable overloaded|candidate function not viable
#include "penstock/ops.h"

void change(penstock::Tensor tensor) {
#ifdef CONTROL
  penstock::Tensor row = tensor[0];
  row += 1;
#else
  tensor[0] += 1;  // a row that nobody holds: take it first
#endif
}
