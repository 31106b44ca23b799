#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "simulator/ptx/kernels.h"
#include "simulator/simulator.h"

namespace penstock::simulator {

/// How a launch of a kernel ended.
enum class Ran { kWell, kUnknown, kFault };

/// Runs the kernel `name`: one that penstockSimAddKernel gave, otherwise the translation of our PTX text. `memory` is
/// what it may touch. A fault of the kernel is a violation that names the line of the text.
Ran run_kernel(const std::string& name, const PenstockSimLaunch& launch, ptx::Order order,
               std::span<const ptx::Range> memory);

/// Where in its only argument that kernel has pointers to device memory, in bytes; nothing for one that was added, of
/// which every eight bytes that are an address of a device are taken for a pointer.
std::optional<std::span<const std::size_t>> pointers_of(const std::string& name);

/// Whether the entry `name` of a module with this text is what run_kernel runs: no entry of ours, or the text that was
/// translated.
bool is_translated(const std::string& name, std::string_view text);

}  // namespace penstock::simulator
