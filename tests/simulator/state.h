#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/driver_types.h"
#include "simulator/engine_lock.h"
#include "simulator/intervals.h"
#include "simulator/simulator.h"

namespace penstock::simulator {

inline constexpr int kMaxDevices = 8;

struct Context {
  CUcontext handle;
  int device;
  unsigned flags = 0;
  std::uint64_t references = 0;
  CUresult error = kSuccess;  ///< sticky: what a failed execution left
};
using ContextPtr = std::shared_ptr<Context>;

/// Device memory. Its address range is reserved without access and stays so after the free; the bytes are at `alias`.
struct Allocation {
  CUdeviceptr address;
  std::size_t bytes;
  std::size_t mapped;
  std::byte* alias;
  ContextPtr context;
  CUmemoryPool pool = nullptr;
  bool freed = false;      ///< in its stream's order, for memory of a pool
  unsigned in_flight = 0;  ///< operations that use it and are not done
  Intervals written;
};
using AllocationPtr = std::shared_ptr<Allocation>;

struct Pinned {
  std::uintptr_t address;
  std::size_t bytes;
  bool registered;
  unsigned flags;
  ContextPtr context;
  unsigned in_flight = 0;
};
using PinnedPtr = std::shared_ptr<Pinned>;

struct Stream;
using StreamPtr = std::shared_ptr<Stream>;

/// A place in a stream: the operations up to `number`.
struct Place {
  StreamPtr stream;
  std::uint64_t number;
};

struct Operation {
  const char* name = "";
  std::function<CUresult()> run;  ///< called without the lock
  std::vector<Place> after;       ///< what must be done before
  std::vector<AllocationPtr> memory;
  std::vector<PinnedPtr> pinned;
  std::uint64_t number = 0;
  bool held = false;  ///< waits until somebody demands it
  bool host_function = false;
};
using OperationPtr = std::shared_ptr<Operation>;

struct Stream {
  CUstream handle;
  ContextPtr context;
  unsigned flags;
  int priority = 0;
  std::deque<OperationPtr> queue = {};
  std::uint64_t submitted = 0;
  std::uint64_t done = 0;
  std::uint64_t demanded = 0;
  bool working = false;  ///< has its thread
  bool running = false;  ///< its first operation is being executed
  bool closed = false;
};

struct Event {
  ContextPtr context;
  unsigned flags;
  Place recorded{nullptr, 0};
  std::shared_ptr<std::chrono::steady_clock::time_point> when =
      std::make_shared<std::chrono::steady_clock::time_point>();
};
using EventPtr = std::shared_ptr<Event>;

struct Module {
  ContextPtr context;
  std::map<std::string, std::vector<std::size_t>, std::less<>> entries;  ///< sizes of their parameters
  std::vector<CUfunction> functions;
};
using ModulePtr = std::shared_ptr<Module>;

struct Function {
  ContextPtr context;
  std::string name;
  std::vector<std::size_t> parameters;
};
using FunctionPtr = std::shared_ptr<Function>;

struct Pool {
  int device;
  bool is_default = false;
  std::uint64_t threshold = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::uint64_t kept = 0;  ///< freed, and still taken from the device
  std::uint64_t reserved_high = 0;
};
using PoolPtr = std::shared_ptr<Pool>;

struct Fault {
  std::uint64_t countdown;  ///< 0: each call
  CUresult code;
};

struct Settings {
  int mode = kPenstockSimEager;
  std::mt19937_64 random;
  int devices = 1;
  std::uint64_t memory = std::uint64_t{16} << 30;
  int version = 13000;
  bool stub = false;
  bool jit = true;
  bool audit = false;
  std::uint64_t speed = 0;
  bool copies = true;
  int numa_node = -1;
};

/// All that the driver knows. Read and written under a Lock, the atomics aside.
struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> initialised{false};
  std::atomic<bool> forked{false};
  Settings settings;
  std::vector<int> visible;  ///< devices after CUDA_VISIBLE_DEVICES
  std::array<ContextPtr, kMaxDevices> contexts;
  std::array<CUresult, kMaxDevices> lost{};
  std::map<CUdeviceptr, AllocationPtr> memory;
  std::map<std::uintptr_t, PinnedPtr> pinned;
  std::unordered_map<CUstream, StreamPtr> streams;
  std::vector<StreamPtr> closing;  ///< destroyed with work pending
  std::array<StreamPtr, kMaxDevices> legacy_streams;
  std::unordered_map<CUevent, EventPtr> events;
  std::unordered_map<CUmodule, ModulePtr> modules;
  std::unordered_map<CUfunction, FunctionPtr> functions;
  std::unordered_map<CUmemoryPool, PoolPtr> pools;
  std::array<CUmemoryPool, kMaxDevices> default_pools{};
  std::array<CUmemoryPool, kMaxDevices> current_pools{};
  std::array<std::uint64_t, kMaxDevices> used{};
  std::map<std::string, Fault, std::less<>> faults;
  std::map<std::string, std::uint64_t, std::less<>> calls;
  std::map<std::string, PenstockSimKernel*, std::less<>> kernels;
  std::deque<std::string> violations;
  bool captures = false;  ///< somewhere, of a graph
  PenstockSimStatistics counts{};
  std::uintptr_t next_handle = 0x5100'0000'0000;
};

/// The one driver of this process. Never destroyed: programs may call it until their very end.
State& state();

/// Holds the state's mutex, unseen by ThreadSanitizer.
class Lock {
 public:
  Lock() : lock_(state().mutex) {}
  template <class Condition>
  void wait(Condition condition) {
    state().changed.wait(lock_, condition);
  }
  template <class Condition>
  bool wait_for(std::chrono::milliseconds time, Condition condition) {
    return state().changed.wait_for(lock_, time, condition);
  }

 private:
  Unseen unseen_;
  std::unique_lock<std::mutex> lock_;
};

/// A handle that no object had before; not the address of anything. Needs the lock.
template <class Handle>
Handle new_handle() {
  return reinterpret_cast<Handle>(state().next_handle += 16);
}

/// The object of a handle, or null.
template <class Map>
auto find(const Map& map, const typename Map::key_type& handle) {
  const auto found = map.find(handle);
  return found == map.end() ? typename Map::mapped_type{} : found->second;
}

}  // namespace penstock::simulator
