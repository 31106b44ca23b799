// cuFile reads directly from a few file systems alone, and copies by the processor elsewhere without saying so. This
// asks the system where a file lies, and compares that with what the driver says it supports.

#include "io/gds/gds_file_system.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/format.h"
#include "io/file/folder_names.h"

namespace penstock::io::gds {
namespace {

namespace fs = std::filesystem;

// statfs(2), and of those that are not in it the modules' own headers
constexpr long kExt4Type = 0xEF53;
constexpr long kXfsType = 0x58465342;

struct Remote {
  long type;
  unsigned flag;
};
constexpr std::array<Remote, 5> kRemotes = {
    {{0x6969, kNfs}, {0x0BD00BD0, kLustre}, {0x47504653, kGpfs}, {0x19830326, kBeegfs}, {0x19750428, kWeka}}};

bool is_nvme(const fs::path& device) { return device.native().find("/nvme") != std::string::npos; }

/// `device` is its folder in /sys/devices.
bool on_nvme(const fs::path& device) {
  if (is_nvme(device)) return true;
  if (!device.filename().native().starts_with("md")) return false;
  std::error_code error;
  std::size_t disks = 0;
  for (const std::string& disk : folder_names(device / "slaves", error)) {
    if (!is_nvme(fs::canonical(device / "slaves" / disk, error))) return false;
    ++disks;
  }
  return disks > 0;
}

bool has(unsigned flags, unsigned bit) { return (flags & 1U << bit) != 0; }

bool reads_disks(const Properties& p) {
  return has(p.supported, kNvme) || has(p.supported, kNvmeOverFabrics) || has(p.supported, kNvmePeer) ||
         has(p.features, kPeerToPeer);
}

}  // namespace

FileSystem file_system_of(int fd) {
  struct statfs system {};
  struct stat file {};
  if (::fstatfs(fd, &system) != 0 || ::fstat(fd, &file) != 0) return {};
  std::error_code error;
  const fs::path device =
      fs::canonical(core::format("/sys/dev/block/{}:{}", ::major(file.st_dev), ::minor(file.st_dev)), error);
  return {static_cast<long>(system.f_type), !error && on_nvme(device)};
}

std::string why_not_direct(const FileSystem& where, const Properties& properties) {
  const auto remote =
      std::find_if(kRemotes.begin(), kRemotes.end(), [&](const Remote& row) { return row.type == where.type; });
  if (remote != kRemotes.end()) {
    return has(properties.supported, remote->flag) ? "" : "nvidia-fs does not serve the file system here";
  }
  if (where.type != kExt4Type && where.type != kXfsType) return "the file system is not one that cuFile reads directly";
  if (!where.nvme) return "the file does not lie on NVMe disks";
  return reads_disks(properties) ? "" : "nvidia-fs does not read NVMe disks here";
}

}  // namespace penstock::io::gds
