// expect-error: (use of deleted function|call to deleted member function).*entries
#include <cstddef>

#include "penstock/load.h"

std::size_t name_lengths() {
  std::size_t total = 0;
#ifdef CONTROL
  const penstock::Archive archive = penstock::open("model.pt");
  for (const penstock::TensorEntry& entry : archive.entries()) total += entry.name.size();
#else
  for (const penstock::TensorEntry& entry : penstock::open("model.pt").entries()) total += entry.name.size();
#endif
  return total;
}
