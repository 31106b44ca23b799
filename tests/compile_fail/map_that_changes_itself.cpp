// expect-error: no matching (member )?function.*map
#include "penstock/dataset.h"

// Workers call the function at once: what it changes in itself they would race for.
penstock::Dataset counted(const penstock::Dataset& dataset) {
#ifdef CONTROL
  return dataset.map([](const penstock::Tensor& sample) { return sample; });
#else
  return dataset.map([calls = 0](const penstock::Tensor& sample) mutable {
    ++calls;
    return sample;
  });
#endif
}
