#include "device/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#include "core/cgroup.h"
#include "core/round.h"

namespace penstock::device {
namespace {

struct MemInfo {
  std::uint64_t total = 0;
  std::uint64_t available = 0;
  std::uint64_t swap = 0;
};

/// "MemTotal:       65812908 kB".
void read_field(std::string_view line, std::string_view name, std::uint64_t& bytes) {
  if (!line.starts_with(name)) return;
  line.remove_prefix(std::min(line.find_first_not_of(' ', name.size()), line.size()));
  std::uint64_t kib = 0;
  std::from_chars(line.data(), line.data() + line.size(), kib);
  bytes = kib * 1024;
}

MemInfo read_meminfo() {
  MemInfo info;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    read_field(line, "MemTotal:", info.total);
    read_field(line, "MemAvailable:", info.available);
    read_field(line, "SwapTotal:", info.swap);
  }
  return info;
}

}  // namespace

MemoryInfo host_memory() {
  const MemInfo info = read_meminfo();
  const std::uint64_t total = std::min(info.total, core::read_cgroup_limits().memory_bytes.value_or(info.total));
  return {.free_bytes = std::min(info.available, total), .total_bytes = total};
}

std::uint64_t largest_host_request() {
  const MemInfo info = read_meminfo();
  const std::uint64_t machine = info.total + info.swap;
  return std::min(machine, core::read_cgroup_limits().memory_bytes.value_or(machine));
}

std::optional<MemoryInfo> address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  std::uint64_t used_pages = 0;
  std::ifstream("/proc/self/statm") >> used_pages;
  const std::uint64_t used = used_pages * core::page_size();
  return MemoryInfo{.free_bytes = limit.rlim_cur - std::min<std::uint64_t>(used, limit.rlim_cur),
                    .total_bytes = limit.rlim_cur};
}

}  // namespace penstock::device
