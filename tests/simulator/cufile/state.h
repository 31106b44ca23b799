#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "simulator/cufile/cufile_types.h"
#include "simulator/simulated_cufile.h"

namespace penstock::simulator::cufile {

enum class Mode { kDirect, kCompat, kPeer, kClosed, kOpen, kNoHandles, kNoPools };

/// A registered file.
struct File {
  int fd;
  dev_t device;
  ino_t inode;
};

struct Fault {
  std::uint64_t countdown = 0;  ///< 0 with `armed`: each call
  bool armed = false;
  std::int64_t result = 0;
  int error = 0;
};

/// All that the library knows. Read and written under its mutex.
struct State {
  std::mutex mutex;
  Mode mode = Mode::kDirect;
  bool audit = false;
  pid_t process = 0;  ///< that opened the driver; 0: nobody did
  std::map<CUfileHandle_t, File> files;
  std::uintptr_t next_handle = 0xF11E'0000'0000;
  Fault fault;
  void (*hook)(void*) = nullptr;
  void* hook_data = nullptr;
  PenstockSimCufileStatistics counts{};
};

/// The one of this process. Never destroyed.
State& state();

/// Remembers and prints that a rule was broken. Needs the mutex.
void violation(const std::string& text);
/// What each entry point does first: counts, and holds a forked process to the rule that it may not call. Needs the
/// mutex.
void enter(const char* name);

/// Bytes of the file behind a descriptor that is open for direct reads, in whole blocks as a disk wants them: how many
/// of `bytes` at `offset` there were, or -1 and errno.
ssize_t read_direct(int fd, std::uint64_t offset, std::size_t bytes, std::vector<std::byte>& out);

/// The device's side of a read, by the driver that PENSTOCK_LIBCUDA names: 0, or the negative error of a target that
/// cuFile does not take. Sets `text` where a rule was broken.
int check_target(std::uint64_t address, std::size_t bytes, bool takes_pools, std::string& text);
/// Copies to the device, and waits for it on a stream of its own; 0 or an error of the driver's.
int copy_to_device(std::uint64_t address, const std::byte* from, std::size_t bytes);

}  // namespace penstock::simulator::cufile

/// Before each entry point of the library.
#define PENSTOCK_SIM_CUFILE_API extern "C" __attribute__((visibility("default")))
