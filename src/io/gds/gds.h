#pragma once

#include <string>

#include "io/gds/gds_api.h"

namespace penstock::io::gds {

/// The name of NVIDIA's cuFile library, which is opened on the first call and never closed: PENSTOCK_LIBCUFILE, where
/// that is set, else libcufile.so.0. Empty where there is none, and where PENSTOCK_LIBCUFILE is set to nothing.
const std::string& library_name();

/// cuFile's driver, as it answered when it was opened.
struct Driver {
  Api api;
  Properties properties;
  bool direct = false;  ///< not in compatibility mode, in which the processor copies as elsewhere
  std::string how;      ///< "direct, nvidia-fs 2.17"; "in compatibility mode"
};

/// The driver, opened by the first call that gets so far and never closed; null, and `why_not` as part of a sentence,
/// where it cannot be had. Not `asked` for by the user, it is not even opened where the kernel has no nvidia-fs:
/// opening takes memory, and writes a log into the current folder. A library that PENSTOCK_LIBCUFILE names is asked
/// itself. Callers have a device's context current (Backend::in_context), which excludes forked processes.
const Driver* find_driver(bool asked, std::string& why_not);

/// "5008 (the file system is not supported)"
std::string describe(int error);

/// What penstock doctor says of cuFile; empty where there is no library. Opens the driver only where a load would.
std::string state();

}  // namespace penstock::io::gds
