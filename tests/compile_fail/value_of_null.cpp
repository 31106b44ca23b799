// expect-error: use of deleted function|deleted
#include "penstock/value.h"

penstock::Value nothing() {
#ifdef CONTROL
  return {};
#else
  return nullptr;  // no text lies there
#endif
}
