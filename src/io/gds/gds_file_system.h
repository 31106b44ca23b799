#pragma once

// Which file systems cuFile reads from directly. Elsewhere it copies through the host in its own way, which is slower
// than the pinned ring.

#include <string>

#include "io/gds/gds_api.h"

namespace penstock::io::gds {

/// Where a file lies.
struct FileSystem {
  long type = 0;      ///< statfs(2)'s f_type
  bool nvme = false;  ///< on NVMe disks, or on a RAID of them alone
};

/// Where the file behind a descriptor lies.
FileSystem file_system_of(int fd);

/// Why cuFile would read a file there through the host's memory, as part of a sentence; empty when it reads it
/// directly. cuFile itself does not say so.
std::string why_not_direct(const FileSystem& where, const Properties& properties);

}  // namespace penstock::io::gds
