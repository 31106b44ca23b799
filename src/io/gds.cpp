#include "io/gds.h"

#include <dlfcn.h>

namespace penstock::io {

const std::string& cufile_library() {
  static const std::string found = [] {
    for (const char* name : {"libcufile.so.0", "libcufile.so"}) {
      if (::dlopen(name, RTLD_LAZY | RTLD_LOCAL) != nullptr) return std::string(name);
    }
    return std::string();
  }();
  return found;
}

}  // namespace penstock::io
