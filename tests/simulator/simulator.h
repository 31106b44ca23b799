#pragma once

#include <cstddef>
#include <cstdint>

// What libpenstock_simulated_cuda.so offers besides the driver's interface: tests find these functions by dlsym in the
// library that PENSTOCK_LIBCUDA names. Any thread may call them at any time.
//
// Environment, read by the first call:
//   PENSTOCK_SIM_MODE            eager (default), lazy, delay or reorder
//   PENSTOCK_SIM_SEED            of delays and order
//   PENSTOCK_SIM_DEVICES         0 to 8, 1 by default; CUDA_VISIBLE_DEVICES narrows them at cuInit
//   PENSTOCK_SIM_MEMORY          bytes of each device, 16 GiB by default
//   PENSTOCK_SIM_DRIVER          cuDriverGetVersion, 13000 by default
//   PENSTOCK_SIM_FAULTS          "cuMemAlloc_v2:3:2,...": the third call of it gives 2; "name:*:code", each call
//   PENSTOCK_SIM_STUB            1: cuInit gives 34, as the toolkit's stub does
//   PENSTOCK_SIM_JIT             0: modules are refused
//   PENSTOCK_SIM_BYTES_PER_SECOND   how fast copies are, unlimited by default
//   PENSTOCK_SIM_COPIES          0: copies from pinned memory to a device are counted and not made, so that what is
//   left is
//                                the host's work beside a device that copies by itself; for measurements
//   PENSTOCK_SIM_NUMA            NUMA node of each device, by default unknown
//   PENSTOCK_SIM_AUDIT           1: what is left or was done wrong at exit makes the exit status 97

extern "C" {

enum PenstockSimMode {
  kPenstockSimEager = 0,    ///< work is done when it is submitted
  kPenstockSimLazy = 1,     ///< nothing is done before somebody waits for it
  kPenstockSimDelay = 2,    ///< by worker threads, after random delays
  kPenstockSimReorder = 3,  ///< some work at once, other work not before somebody waits for it
};

/// What is alive, and what happened since penstockSimReset.
struct PenstockSimStatistics {
  std::uint64_t contexts;  ///< retained primary contexts
  std::uint64_t streams;
  std::uint64_t events;
  std::uint64_t modules;
  std::uint64_t pools;
  std::uint64_t device_allocations;
  std::uint64_t device_bytes;
  std::uint64_t pinned_allocations;
  std::uint64_t pinned_bytes;  ///< allocated and registered
  std::uint64_t calls;         ///< of the driver's entry points
  std::uint64_t copies_to_device;
  std::uint64_t copies_to_host;
  std::uint64_t copies_on_device;
  std::uint64_t copied_bytes;
  std::uint64_t pageable_copies;  ///< copies from or to host memory that is not pinned
  std::uint64_t launches;
  std::uint64_t violations;
};

using PenstockSimSetMode = void(int mode, std::uint64_t seed);
/// The `nth` call from now (1 the next, 0 each one) of the entry point `name` gives `code`. A copy, fill or launch of
/// which "execution of NAME" is said fails when it is executed instead, and its context with it, as 700 and 719 do.
using PenstockSimFail = void(const char* name, std::uint64_t nth, int code);
/// Every call on this device, and everything waited for, gives `code` from now on; 0 ends it.
using PenstockSimLose = void(int device, int code);
/// How fast copies are; 0 is unlimited.
using PenstockSimSetSpeed = void(std::uint64_t bytes_per_second);
/// Bytes of each device, from now on.
using PenstockSimSetMemory = void(std::uint64_t bytes);
/// Says that a thread captures a graph, so that others, and it too, may make no call that could be unsafe (as
/// CU_STREAM_CAPTURE_MODE_GLOBAL has it), or that none does any more.
using PenstockSimCapture = void(int captures);
/// Ends all faults and violations and sets the counts back; what is alive stays.
using PenstockSimReset = void();
using PenstockSimGetStatistics = void(PenstockSimStatistics* statistics);
/// How often this entry point was called since the last reset.
using PenstockSimCalls = std::uint64_t(const char* name);
/// The text of one violation of the driver's rules, from 0 on; null after the last. Valid until the next reset.
using PenstockSimViolation = const char*(std::size_t index);
/// Prints to stderr what is alive or was done wrong; how many lines.
using PenstockSimAudit = int();

/// Adds a violation: for libraries above the driver that hold programs to rules of their own.
using PenstockSimReport = void(const char* text);

/// A kernel in C++: `arguments` point to the launch's arguments with device pointers turned into ones that may be used.
struct PenstockSimLaunch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void* const* arguments;
  std::size_t count;
};
using PenstockSimKernel = void(const PenstockSimLaunch* launch);
/// What the entry point `name` of any module runs from now on.
using PenstockSimAddKernel = void(const char* name, PenstockSimKernel* kernel);
}
