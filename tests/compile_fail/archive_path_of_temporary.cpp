// expect-error: (use of deleted function|call to deleted member function).*path
#include "penstock/load.h"

const std::string& path(const penstock::Archive& archive) {
#ifdef CONTROL
  return archive.path();
#else
  return penstock::open(archive.path()).path();  // the archive is gone with the full expression
#endif
}
