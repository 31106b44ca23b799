#pragma once

// The row "gds" of the table of device readers (io/readers.cpp).

#include <memory>
#include <string>

#include "io/read/device_reader.h"

namespace penstock::io {

/// Reads by cuFile (GPUDirect Storage). Unless the user `asked` for it, only where cuFile reads directly: by nvidia-fs,
/// from a file system that it supports.
std::unique_ptr<DeviceFile> open_gds(const ByteSource& source, Device device, bool asked, std::string& why_not);

/// The same, whatever file system the file lies on.
std::unique_ptr<DeviceFile> open_gds_anywhere(const ByteSource& source, Device device, bool asked,
                                              std::string& why_not);

}  // namespace penstock::io
