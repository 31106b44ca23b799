#pragma once

#include <cstddef>
#include <span>

namespace penstock::device {

/// Asks the kernel to have the pages of `memory`, which begins at a page, on NUMA node `node`, those that are there
/// already too: a device reads memory of its own node faster than that of another. Nothing happens where the node is
/// unknown (-1) or the kernel does not do it (one without NUMA, a container that forbids the call).
void prefer_node(std::span<std::byte> memory, int node) noexcept;

}  // namespace penstock::device
