#include <penstock/penstock.h>

extern "C" std::size_t count_of(const char* path) {
  const penstock::Archive archive = penstock::open(path);
  return archive.entries().size();
}
