// Modules of PTX text, and launches of their entries.

#include <cstdio>
#include <cstring>

#include "simulator/call.h"
#include "simulator/engine.h"
#include "simulator/kernel_table.h"
#include "simulator/memory.h"
#include "simulator/ptx.h"

namespace penstock::simulator {
namespace {

void write_log(unsigned count, const int* options, void** values, const char* text) {
  char* buffer = nullptr;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == kJitErrorLog) buffer = static_cast<char*>(values[i]);
    if (options[i] == kJitErrorLogBytes) bytes = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i]));
  }
  if (buffer != nullptr && bytes > 0) std::snprintf(buffer, bytes, "%s", text);
}

/// A launch's arguments as the call found them, pointers to device memory turned into ones that may be used.
class Arguments {
 public:
  Arguments(const Function& function, void** values, Operation& operation) {
    const auto pointers = pointers_of(function.name);
    for (std::size_t i = 0; i < function.parameters.size(); ++i) {
      const std::size_t size = function.parameters[i];
      auto& block = blocks_.emplace_back((size + sizeof(Word) - 1) / sizeof(Word));
      std::memcpy(block.data(), values[i], size);
      if (pointers) {
        for (const std::size_t at : *pointers) translate(block[at / sizeof(Word)].halves[at / 8 % 2], operation);
      } else {
        for (Word& word : block) {
          for (std::uint64_t& half : word.halves) translate(half, operation);
        }
      }
    }
    for (auto& block : blocks_) pointers_.push_back(block.data());
  }
  void* const* data() const noexcept { return pointers_.data(); }
  std::size_t size() const noexcept { return pointers_.size(); }

 private:
  struct alignas(16) Word {
    std::uint64_t halves[2];
  };

  static void translate(std::uint64_t& value, Operation& operation) {
    const Lock lock;
    if (const PinnedPtr pinned = find_pinned(value)) operation.pinned.push_back(pinned);
    const AllocationPtr memory = find_allocation(value);
    if (memory == nullptr) return;
    operation.memory.push_back(memory);
    if (memory->freed) violation("a kernel is given memory that cuMemFreeAsync was given");
    value = reinterpret_cast<std::uint64_t>(memory->alias + (value - memory->address));
  }

  std::vector<std::vector<Word>> blocks_;
  std::vector<void*> pointers_;
};

// A kernel may write anywhere in the memory it was given.
void note_written(const std::vector<AllocationPtr>& allocations) {
  const Lock lock;
  for (const AllocationPtr& memory : allocations) memory->written.add(0, memory->bytes);
}

/// The memory that a kernel may touch: all of each allocation and of each page-locked block that it has a pointer into.
std::vector<ptx::Range> ranges_of(const std::vector<AllocationPtr>& memory, const std::vector<PinnedPtr>& pinned) {
  std::vector<ptx::Range> ranges;
  for (const AllocationPtr& block : memory) ranges.push_back({block->alias, block->bytes, true});
  for (const PinnedPtr& block : pinned) {
    ranges.push_back({reinterpret_cast<std::byte*>(block->address), block->bytes, true});
  }
  return ranges;
}

/// A launch as its turn comes.
struct Launching {
  std::string name;
  PenstockSimLaunch launch;
  ptx::Order order;
  std::shared_ptr<const Arguments> arguments;
  std::vector<AllocationPtr> memory;
  std::vector<PinnedPtr> pinned;

  CUresult operator()() {
    launch.arguments = arguments->data();
    launch.count = arguments->size();
    const Ran ran = run_kernel(name, launch, order, ranges_of(memory, pinned));
    if (ran == Ran::kWell) {
      note_written(memory);
      return kSuccess;
    }
    if (ran == Ran::kUnknown) {
      const Lock lock;
      violation("there is no simulated kernel " + name);
    }
    return kLaunchFailed;
  }
};

/// Launches take turns in the order of their threads.
ptx::Order next_order(std::uint64_t launches) {
  constexpr ptx::Order kOrders[] = {ptx::Order::kBackward, ptx::Order::kShuffled, ptx::Order::kForward};
  return kOrders[launches % std::size(kOrders)];
}

bool is_possible(const PenstockSimLaunch& launch) {
  std::uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (launch.grid[i] == 0 || launch.block[i] == 0) return false;
    threads *= launch.block[i];
  }
  return threads <= 1024 && launch.grid[1] <= 65535 && launch.grid[2] <= 65535 && launch.block[2] <= 64 &&
         launch.shared_bytes <= 49152;
}

/// An entry of ours in a text that is not ours, or "".
std::string find_foreign(const Ptx& ptx, std::string_view text) {
  for (const auto& [name, parameters] : ptx.entries) {
    if (!is_translated(name, text)) return name;
  }
  return "";
}

CUresult load(CUmodule* handle, const void* image, unsigned count, const int* options, void** values) {
  if (handle == nullptr || image == nullptr) return kInvalidValue;
  const auto ptx = read_ptx(static_cast<const char*>(image));
  const std::string foreign = ptx ? find_foreign(*ptx, static_cast<const char*>(image)) : "";
  const Lock lock;
  const Settings& settings = state().settings;
  if (!settings.jit) return kJitDisabled;
  if (!ptx) {
    write_log(count, options, values, "ptxas fatal   : the text is not PTX");
    return kInvalidPtx;
  }
  if (!foreign.empty()) {
    violation(foreign + " comes in a text that is not the one which was translated; build the simulator anew");
    return kInvalidPtx;
  }
  if (ptx->version > newest_ptx(settings.version)) {
    write_log(count, options, values, "ptxas fatal   : Unsupported .version");
    return kUnsupportedPtxVersion;
  }
  *handle = new_handle<CUmodule>();
  state().modules.emplace(*handle, std::make_shared<Module>(Module{current_context(), ptx->entries, {}}));
  return kSuccess;
}

}  // namespace

PENSTOCK_SIM_API CUresult cuModuleLoadDataEx(CUmodule* handle, const void* image, unsigned count, int* options,
                                             void** values) {
  const Call call("cuModuleLoadDataEx", Need::kContext);
  return call.refused() ? call.result() : load(handle, image, count, options, values);
}

PENSTOCK_SIM_API CUresult cuModuleLoadData(CUmodule* handle, const void* image) {
  const Call call("cuModuleLoadData", Need::kContext);
  return call.refused() ? call.result() : load(handle, image, 0, nullptr, nullptr);
}

PENSTOCK_SIM_API CUresult cuModuleGetFunction(CUfunction* handle, CUmodule module_handle, const char* name) {
  const Call call("cuModuleGetFunction", Need::kContext);
  if (call.refused()) return call.result();
  if (handle == nullptr || name == nullptr) return kInvalidValue;
  const Lock lock;
  const ModulePtr module = find(state().modules, module_handle);
  if (module == nullptr) return kInvalidHandle;
  const auto entry = module->entries.find(name);
  if (entry == module->entries.end()) return kNotFound;
  *handle = new_handle<CUfunction>();
  module->functions.push_back(*handle);
  state().functions.emplace(*handle, std::make_shared<Function>(Function{module->context, name, entry->second}));
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuModuleUnload(CUmodule handle) {
  const Call call("cuModuleUnload", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  State& s = state();
  const ModulePtr module = find(s.modules, handle);
  if (module == nullptr) return kInvalidHandle;
  for (const CUfunction function : module->functions) s.functions.erase(function);
  s.modules.erase(handle);
  return failure_of(*module->context);
}

PENSTOCK_SIM_API CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                         CUstream stream_handle, void** arguments, void** extra) {
  const Call call("cuLaunchKernel", Need::kContext);
  if (call.refused()) return call.result();
  StreamPtr stream;
  if (const CUresult result = stream_here(stream_handle, stream); result != kSuccess) return result;
  FunctionPtr function;
  std::uint64_t launches = 0;
  {
    const Lock lock;
    function = find(state().functions, handle);
    launches = ++state().counts.launches;
  }
  if (function == nullptr || function->context != stream->context) return kInvalidHandle;
  if (extra != nullptr || (arguments == nullptr && !function->parameters.empty())) return kInvalidValue;
  const PenstockSimLaunch launch{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, nullptr, 0};
  if (!is_possible(launch)) return kInvalidValue;
  auto operation = std::make_shared<Operation>();
  operation->name = "cuLaunchKernel";
  auto copied = std::make_shared<const Arguments>(*function, arguments, *operation);
  // The operation alone owns them: ThreadSanitizer sees no order between its end and this call's.
  operation->run =
      Launching{function->name, launch, next_order(launches), std::move(copied), operation->memory, operation->pinned};
  submit(stream, operation);
  return kSuccess;
}

}  // namespace penstock::simulator
