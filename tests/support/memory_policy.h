#pragma once

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bitset>
#include <climits>
#include <cstddef>
#include <optional>

namespace penstock::test {

/// On which NUMA nodes the kernel is to have memory.
struct MemoryPolicy {
  static constexpr int kPreferred = MPOL_PREFERRED;
  static constexpr std::size_t kNodes = 1024;

  int mode = -1;
  std::bitset<kNodes> nodes;

  bool operator==(const MemoryPolicy&) const = default;
};

/// That of the page at `address`; nothing where the kernel does not tell.
inline std::optional<MemoryPolicy> memory_policy(const std::byte* address) {
  constexpr std::size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, MemoryPolicy::kNodes / kWordBits> words{};
  MemoryPolicy out;
  if (::syscall(SYS_get_mempolicy, &out.mode, words.data(), MemoryPolicy::kNodes, address, MPOL_F_ADDR) != 0) return {};
  for (std::size_t node = 0; node < MemoryPolicy::kNodes; ++node) {
    out.nodes[node] = (words[node / kWordBits] >> (node % kWordBits) & 1) != 0;
  }
  return out;
}

}  // namespace penstock::test
