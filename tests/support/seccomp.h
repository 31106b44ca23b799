#pragma once

// System calls that fail, as on an old kernel or in a sandbox.

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace penstock::test {

/// A call that fails with `error`: every time, or where one of its arguments has all these bits, or is this number.
struct Refusal {
  long call = 0;
  int error = 0;
  std::size_t argument = 0;
  std::optional<std::uint32_t> bits = {};
  std::optional<std::uint32_t> number = {};
};

/// From now on this holds for this thread and those that it starts, for ever: for a process made for it (run_again).
/// False where the system offers no filters.
inline bool refuse(const std::vector<Refusal>& refusals) {
  std::vector<sock_filter> program;
  const auto add = [&](unsigned code, std::uint32_t value, std::size_t if_true = 0, std::size_t if_false = 0) {
    program.push_back({static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(if_true),
                       static_cast<std::uint8_t>(if_false), value});
  };
  const auto load = [&](std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); };
  for (const Refusal& refusal : refusals) {
    const bool some = refusal.bits || refusal.number;
    load(offsetof(seccomp_data, nr));
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(refusal.call), 0, some ? 4 : 1);
    if (some) {
      load(offsetof(seccomp_data, args) + refusal.argument * sizeof(std::uint64_t));  // its low half
      if (refusal.bits) add(BPF_ALU | BPF_AND | BPF_K, *refusal.bits);
      if (refusal.number) add(BPF_ALU | BPF_OR | BPF_K, 0);
      add(BPF_JMP | BPF_JEQ | BPF_K, refusal.bits ? *refusal.bits : *refusal.number, 0, 1);
    }
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(refusal.error));
  }
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

}  // namespace penstock::test
