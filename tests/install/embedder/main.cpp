#include <penstock/penstock.h>

extern "C" std::size_t count_of(const char* path) { return penstock::open(path).entries().size(); }
