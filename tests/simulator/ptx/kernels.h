#pragma once

// The device kernels as translate.py turned their PTX text into C++, and how a launch of one runs.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/ptx/machine.h"

namespace penstock::simulator::ptx {

/// An entry point. `run` is one thread of it, from front to back.
struct Kernel {
  std::string_view name;
  std::string_view file;
  void (*run)(const Thread& thread, Machine& machine);
  std::size_t parameter_bytes;
  std::span<const std::span<const std::byte>> constants;
};

/// A file of PTX. `hash` is that of its text (FNV-1a, 64 bits).
struct Translation {
  std::string_view file;
  std::uint64_t hash;
  std::vector<Kernel> kernels;
};

/// A kernel with one line of its text replaced.
struct Mutant {
  Kernel kernel;
  std::string_view what;
};

/// In which order the threads of a launch run. None may change a result.
enum class Order { kForward, kBackward, kShuffled };

struct Launch {
  Dimensions grid;
  Dimensions block;
  Order order = Order::kForward;
};

std::span<const Translation* const> translations() noexcept;
/// Null when no translation has an entry of that name.
const Kernel* find_kernel(std::string_view name) noexcept;
std::uint64_t hash_of(std::string_view text) noexcept;

/// Runs all threads of `launch`. `global` is the memory that they may touch. Throws Fault with the line of the text.
void run(const Kernel& kernel, const Launch& launch, std::span<const std::byte> parameters,
         std::span<const Range> global);

}  // namespace penstock::simulator::ptx
