#pragma once

#include <string>
#include <string_view>

#include "io/gds/gds_api.h"

namespace penstock::io::gds {

/// Where a file lies.
struct FileSystem {
  long type = 0;      ///< statfs(2)'s f_type
  bool nvme = false;  ///< on NVMe disks, or on a RAID of them alone
};

/// Of the file behind a descriptor.
FileSystem file_system_of(int fd);

/// Why cuFile would read a file there through the host's memory although it is direct elsewhere (it does so without a
/// word), as part of a sentence; empty where it need not.
std::string why_not_direct(const FileSystem& where, const Properties& properties);

}  // namespace penstock::io::gds
