#include "core/cgroup.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "core/parse_number.h"

namespace penstock::core {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

template <class T>
void tighten(std::optional<T>& limit, std::optional<T> candidate) {
  if (candidate && (!limit || *candidate < *limit)) limit = candidate;
}

std::optional<double> quota(std::optional<std::uint64_t> used, std::optional<std::uint64_t> period) {
  if (!used || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*used) / static_cast<double>(*period);
}

/// cpu.max: "max 100000" or "150000 100000".
std::optional<double> parse_cpu_max(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return quota(parse_number<std::uint64_t>(line.substr(0, space)), parse_number<std::uint64_t>(line.substr(space + 1)));
}

/// Calls `look` for `group` and every group above it. In a container the listed path may not exist under the mount: its
/// root then is the container's own group.
template <class Look>
void climb(const std::string& mount, std::string group, Look look) {
  while (true) {
    look(mount + (group == "/" ? "" : group));
    const std::size_t slash = group.rfind('/');
    if (group.size() <= 1 || slash == std::string::npos) return;
    group.resize(std::max<std::size_t>(slash, 1));
  }
}

bool has_controller(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == wanted) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

void read_v2(CgroupLimits& limits, const std::string& mount, const std::string& group) {
  climb(mount, group, [&limits](const std::string& folder) {
    tighten(limits.cpus, parse_cpu_max(first_line(folder + "/cpu.max")));
    tighten(limits.memory_bytes, parse_number<std::uint64_t>(first_line(folder + "/memory.max")));
  });
}

void read_v1(CgroupLimits& limits, const std::string& mount, const std::string& group, std::string_view controllers) {
  if (has_controller(controllers, "cpu")) {
    climb(mount + "/cpu", group, [&limits](const std::string& folder) {
      tighten(limits.cpus, quota(parse_number<std::uint64_t>(first_line(folder + "/cpu.cfs_quota_us")),
                                 parse_number<std::uint64_t>(first_line(folder + "/cpu.cfs_period_us"))));
    });
  }
  if (has_controller(controllers, "memory")) {
    climb(mount + "/memory", group, [&limits](const std::string& folder) {
      tighten(limits.memory_bytes, parse_number<std::uint64_t>(first_line(folder + "/memory.limit_in_bytes")));
    });
  }
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& membership, const std::string& mount) {
  CgroupLimits limits;
  std::ifstream file(membership);
  // Each line is "hierarchy:controllers:path"; version 2 has no controllers.
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || second + 1 == line.size()) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      read_v2(limits, mount, group);
      read_v2(limits, mount + "/unified", group);
    } else {
      read_v1(limits, mount, group, controllers);
    }
  }
  return limits;
}

}  // namespace penstock::core
