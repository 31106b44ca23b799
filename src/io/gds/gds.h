#pragma once

// Whether GPUDirect Storage can be used: finds cuFile, opens its driver once, and says in words why not. gds_reader.h
// reads by it, and `penstock doctor` shows what is said here.

#include <string>

#include "io/gds/gds_api.h"

namespace penstock::io::gds {

/// The name of NVIDIA's cuFile library: PENSTOCK_LIBCUFILE if that is set, else libcufile.so.0. Empty when there is no
/// such library, and when PENSTOCK_LIBCUFILE is empty. The library is opened on the first call and never closed.
const std::string& library_name();

/// cuFile's driver, as it answered when it was opened.
struct Driver {
  Api api;
  Properties properties;
  bool direct = false;  ///< false: in compatibility mode, in which the processor copies
  std::string how;      ///< "direct, nvidia-fs 2.17"; "in compatibility mode"
};

/// The driver, which is opened once and never closed. Null when there is none; `why_not` is then the reason, as part of
/// a sentence. Unless the user `asked` for it, the driver is not opened when the kernel has no nvidia-fs, because
/// opening takes memory and writes a log into the current folder. A library that PENSTOCK_LIBCUFILE names is opened in
/// any case. The caller has a device's context current (Backend::in_context), which also excludes forked processes.
const Driver* find_driver(bool asked, std::string& why_not);

/// "5008 (the file system is not supported)"
std::string describe(int error);

/// What `penstock doctor` says about cuFile; empty without the library. Opens the driver only where a load would.
std::string state();

}  // namespace penstock::io::gds
