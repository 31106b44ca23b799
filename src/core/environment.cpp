#include "core/environment.h"

#include <cstdlib>

namespace penstock::core {

const char* environment(const char* name) noexcept { return ::secure_getenv(name); }

}  // namespace penstock::core
