// expect-error: (use of deleted function|call to (implicitly-)?deleted (copy )?constructor).*DataLoader
#include <utility>

#include "penstock/loader.h"

penstock::DataLoader hand_over(penstock::DataLoader loader) {
#ifdef CONTROL
  penstock::DataLoader other = std::move(loader);
#else
  penstock::DataLoader other = loader;  // two iterations over one set of prepared batches
#endif
  return other;
}
