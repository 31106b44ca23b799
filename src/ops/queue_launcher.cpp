#include <fmt/format.h>

#include "ops/launcher.h"
#include "penstock/error.h"

namespace penstock::ops {

std::unique_ptr<Launcher> launcher_for(Device device) {
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{} has no kernels; use to(\"cpu\") to compute there", device.to_string()));
}

}  // namespace penstock::ops
