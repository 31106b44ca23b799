// What may stop or slow a load in this process: descriptors, locked memory, the cgroup's processors and memory,
// /dev/shm, huge pages, io_uring. Each fact says what to change where it is worse than usual.

#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>

#include "core/cgroup.h"
#include "core/format.h"
#include "core/round.h"
#include "core/text.h"
#include "doctor/diagnosis.h"
#include "io/gds/gds.h"

namespace penstock::doctor {
namespace {

using Unit = Fact::Unit;
using Weight = Fact::Weight;

constexpr std::uint64_t kFewDescriptors = 4096;
constexpr std::uint64_t kSmallSharedMemory = std::uint64_t{1} << 30;

/// The first line of a file; empty when it cannot be read.
std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Fact::Value limit_value(rlim_t limit) {
  return limit == RLIM_INFINITY ? Fact::Value{} : Fact::Value{std::uint64_t{limit}};
}

void add_descriptors(Section& out) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  out.add("open_files", limit_value(limit.rlim_cur));
  if (limit.rlim_cur < kFewDescriptors && limit.rlim_cur != RLIM_INFINITY) {
    const bool more = limit.rlim_max > limit.rlim_cur;
    out.advise(more ? Weight::kNote : Weight::kProblem,
               core::format("a process that keeps many files open, as datasets over folders and sharded archives do, "
                            "fails when it has {} files open; raise the limit with {}",
                            limit.rlim_cur,
                            more ? "`ulimit -n` before the start" : "LimitNOFILE or the container's --ulimit nofile"));
  }
  out.add("open_files_at_most", limit_value(limit.rlim_max));
}

void add_locked_memory(Section& out) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  out.add("locked_memory", limit_value(limit.rlim_cur), Unit::kBytes);
}

void add_processors(Section& out, const core::CgroupLimits& group) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;
  const auto count = static_cast<std::uint64_t>(known ? CPU_COUNT(&set) : ::sysconf(_SC_NPROCESSORS_ONLN));
  out.add("processors", count);
  out.add("cgroup_processors", group.cpus ? Fact::Value{*group.cpus} : Fact::Value{});
  if (group.cpus && *group.cpus < static_cast<double>(count)) {
    out.advise(Weight::kNote, core::format("threads beyond {:.3g} processors are held back: give the container more "
                                           "(--cpus) where loading is the bottleneck",
                                           *group.cpus));
  }
}

void add_memory(Section& out, const core::CgroupLimits& group) {
  const std::uint64_t machine = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * core::page_size();
  // Version 1 writes a limit of nearly 2^63 where there is none.
  const bool limited = group.memory_bytes && *group.memory_bytes < machine;
  out.add("cgroup_memory", limited ? Fact::Value{*group.memory_bytes} : Fact::Value{}, Unit::kBytes);
  if (limited) {
    out.advise(Weight::kNote, core::format("the kernel kills this process when it needs more than {} of the machine's "
                                           "{}: give the container more (--memory), or load to a device or in parts",
                                           core::format_bytes(*group.memory_bytes), core::format_bytes(machine)));
  }
}

void add_shared_memory(Section& out) {
  struct statvfs facts {};
  if (::statvfs("/dev/shm", &facts) != 0) {
    out.add("shared_memory", {}, Unit::kBytes);
    out.advise(Weight::kProblem,
               "there is no /dev/shm, through which PyTorch's worker processes pass batches: mount a tmpfs there; "
               "Penstock's own loader uses threads and needs none");
    return;
  }
  const std::uint64_t total = std::uint64_t{facts.f_blocks} * facts.f_frsize;
  out.add("shared_memory", total, Unit::kBytes);
  if (total < kSmallSharedMemory) {
    out.advise(Weight::kProblem,
               core::format("worker processes of PyTorch fail with a bus error when their batches fill {}: start the "
                            "container with --shm-size=8g, or use Penstock's loader, whose workers are threads",
                            core::format_bytes(total)));
  }
  out.add("shared_memory_free", std::uint64_t{facts.f_bavail} * facts.f_frsize, Unit::kBytes);
}

void add_huge_pages(Section& out) {
  const std::string setting = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::string_view chosen = chosen_word(setting);
  out.add("transparent_huge_pages", chosen.empty() ? Fact::Value{} : Fact::Value{std::string(chosen)});
  if (chosen == "never") {
    out.advise(
        Weight::kProblem,
        core::format("the first touch of large tensors takes a fault every {} bytes, which can halve the speed of a "
                     "load: `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled` as root",
                     core::page_size()));
  }
}

void add_io_uring(Section& out) {
  // One entry and zeroed parameters, the size of the kernel's io_uring_params.
  std::array<std::uint64_t, 15> parameters{};
  const long ring = ::syscall(SYS_io_uring_setup, 1U, parameters.data());
  out.add("io_uring", ring >= 0);
  if (ring >= 0) {
    ::close(static_cast<int>(ring));
  } else {
    const int error = errno;
    out.advise(Weight::kNote, why_no_io_uring(error, first_line("/proc/sys/kernel/io_uring_disabled")));
  }
}

}  // namespace

std::string_view chosen_word(std::string_view setting) noexcept {
  const std::size_t begin = setting.find('[');
  const std::size_t end = setting.find(']');
  return end == std::string_view::npos || begin >= end ? std::string_view()
                                                       : setting.substr(begin + 1, end - begin - 1);
}

std::string why_no_io_uring(int error, std::string_view setting) {
  static constexpr std::string_view kHarmless = "; Penstock reads with preadv and loses nothing";
  std::string why;
  if (error == ENOSYS) {
    why = "the kernel has no io_uring (5.1 and later do), or a sandbox hides it";
  } else if (error == EPERM && !setting.empty() && setting != "0") {
    why =
        core::format("kernel.io_uring_disabled is {}: `sysctl kernel.io_uring_disabled=0` as root allows it", setting);
  } else if (error == EPERM || error == EACCES) {
    why = "a seccomp filter forbids io_uring, as container runtimes do by default: a profile of your own allows it";
  } else if (error == ENOMEM) {
    why = "io_uring found no memory to lock: raise RLIMIT_MEMLOCK (`ulimit -l`)";
  } else {
    why = core::format("io_uring_setup failed with error {}", error);
  }
  return why.append(kHarmless);
}

Section diagnose_limits() {
  Section out{"limits", {}};
  const core::CgroupLimits group = core::read_cgroup_limits();
  add_processors(out, group);
  add_memory(out, group);
  add_descriptors(out);
  add_locked_memory(out);
  add_shared_memory(out);
  return out;
}

Section diagnose_kernel() {
  Section out{"kernel", {}};
  add_huge_pages(out);
  add_io_uring(out);
  const std::string cufile = io::gds::state();
  out.add("gpudirect_storage", cufile.empty() ? Fact::Value{} : Fact::Value{cufile});
  return out;
}

}  // namespace penstock::doctor
