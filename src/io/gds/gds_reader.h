#pragma once

#include <memory>
#include <string>

#include "io/read/device_reader.h"

namespace penstock::io {

/// Reads by cuFile (GPUDirect Storage). Not `asked` for, only where that is direct: by nvidia-fs, from a file system
/// that it reads.
std::unique_ptr<DeviceFile> open_gds(const ByteSource& source, Device device, bool asked, std::string& why_not);

/// The same, whatever file system the file lies on.
std::unique_ptr<DeviceFile> open_gds_anywhere(const ByteSource& source, Device device, bool asked,
                                              std::string& why_not);

}  // namespace penstock::io
