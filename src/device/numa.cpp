#include "device/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>

namespace penstock::device {

void prefer_node(std::span<std::byte> memory, int node) noexcept {
  constexpr int kMostNodes = 1024;  // that a kernel is built for
  constexpr int kWordBits = sizeof(unsigned long) * CHAR_BIT;
  if (node < 0 || node >= kMostNodes) return;
  std::array<unsigned long, kMostNodes / kWordBits> nodes{};
  nodes[static_cast<std::size_t>(node / kWordBits)] = 1UL << static_cast<unsigned>(node % kWordBits);
  // The kernel takes one bit less than it is told of. By number: libnuma would be a library for this one call. A node
  // that is full is passed over: it is a preference.
  ::syscall(SYS_mbind, memory.data(), memory.size(), MPOL_PREFERRED, nodes.data(), kMostNodes + 1, MPOL_MF_MOVE);
}

}  // namespace penstock::device
