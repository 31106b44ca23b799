#include "archive/loadable.h"

#include "core/format.h"
#include "device/backend.h"
#include "penstock/error.h"

namespace penstock::archive {

void require_loadable(const detail::ArchiveState& state, const TensorEntry& entry, const LoadOptions& options) {
  if (entry.pickled) {
    throw Error(
        ErrorCode::kUnsafe,
        "it is an array of Python objects whose pickle is damaged, or asks for what only running code could load; save "
        "it as numbers or text instead",
        {state.source_of(entry).name(), state.storage_of(entry).offset, entry.name});
  }
  device::require_device(options.device);
  if (options.mmap.value_or(false) && options.device.type != DeviceType::kCpu) {
    throw Error(ErrorCode::kUnsupported,
                core::format("a mapped file is memory of the cpu and not of {}: leave out one of mmap and device",
                             options.device.to_string()),
                {state.path()});
  }
}

}  // namespace penstock::archive
