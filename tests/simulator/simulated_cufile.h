#pragma once

#include <cstddef>
#include <cstdint>

// What libpenstock_simulated_cufile.so offers besides cuFile's interface: tests find these functions by dlsym in the
// library that PENSTOCK_LIBCUFILE names. It reads files for the devices of the simulated driver, the library that
// PENSTOCK_LIBCUDA names, and is as strict. Any thread may call them at any time.
//
// Environment, read by the first call:
//   PENSTOCK_SIM_CUFILE     direct (default): nvidia-fs is there; compat: it is not; peer: the kernel does it without;
//                           closed: cuFileDriverOpen gives 5001; open: it gives 5026, as where another library of the
//                           process has opened it, and reads are direct; no_handles: cuFileHandleRegister gives 5008;
//                           no_pools: memory of a driver's pool is refused (5013)
//   PENSTOCK_SIM_AUDIT      1: handles that are left, and violations, make the exit status 97

extern "C" {

struct PenstockSimCufileStatistics {
  std::uint64_t opens;    ///< of the driver
  std::uint64_t handles;  ///< alive
  std::uint64_t registered;
  std::uint64_t reads;  ///< calls of cuFileRead
  std::uint64_t read_bytes;
  std::uint64_t calls;  ///< of all entry points
  std::uint64_t violations;
};

/// Ends faults and hooks, forgets violations and sets the counts back; handles and the driver stay.
using PenstockSimCufileReset = void();
using PenstockSimCufileGetStatistics = void(PenstockSimCufileStatistics* statistics);
/// The `nth` read from now (1 the next, 0 each one) gives `result`: a negative one at once, -1 with `error` as errno;
/// from 0 on as many bytes at most.
using PenstockSimCufileFail = void(std::uint64_t nth, std::int64_t result, int error);
/// Called at the begin of each read from now on; null ends it.
using PenstockSimCufileHook = void(void (*action)(void* data), void* data);
}
