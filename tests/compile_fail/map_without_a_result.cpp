// expect-error: (void|no matching function|constraints not satisfied)
#include "penstock/dataset.h"

penstock::Dataset forgotten(const penstock::Dataset& dataset) {
#ifdef CONTROL
  return dataset.map([](const penstock::Tensor& sample) { return sample.clone(); });
#else
  return dataset.map([](const penstock::Tensor& sample) { static_cast<void>(sample.clone()); });
#endif
}
