#pragma once

// script/run_aarch64 runs programs of another processor in QEMU, whose processes lack parts of a system.

#include <unistd.h>

#include <cstdlib>

namespace penstock::test {

/// What runs this program, to be named in front of it where it is started again; null where the machine itself does.
inline const char* emulator() { return std::getenv("PENSTOCK_TEST_RUNNER"); }

/// Whether pages are larger than the machine's own.
inline bool has_emulated_pages() { return emulator() != nullptr && ::sysconf(_SC_PAGESIZE) != 4096; }

}  // namespace penstock::test
