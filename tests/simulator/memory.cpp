#include "simulator/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iterator>

#include "simulator/call.h"

namespace penstock::simulator {
namespace {

constexpr std::size_t kGuard = std::size_t{1} << 20;
constexpr std::size_t kGranularity = 4096;
constexpr std::size_t kPoison = std::size_t{1} << 16;

void* map(std::size_t bytes, int access) {
  void* const address = ::mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

template <class Map>
auto find_range(const Map& map, std::uint64_t address) {
  auto at = map.upper_bound(address);
  if (at == map.begin()) return typename Map::mapped_type{};
  const auto& found = std::prev(at)->second;
  return address - found->address < found->bytes ? found : typename Map::mapped_type{};
}

std::string text_of(const char* call, std::uint64_t address, std::size_t bytes, std::size_t room) {
  return std::string(call) + ": " + std::to_string(bytes) + " bytes at " + std::to_string(address) + ", where " +
         std::to_string(room) + " are";
}

}  // namespace

CUresult allocate(std::size_t bytes, CUmemoryPool pool, AllocationPtr& allocation) {
  State& s = state();
  const ContextPtr context = current_context();
  std::uint64_t& used = s.used.at(static_cast<std::size_t>(context->device));
  if (bytes == 0) return kInvalidValue;
  if (bytes > s.settings.memory || used > s.settings.memory - bytes) return kOutOfMemory;
  const std::size_t mapped = (bytes + kGranularity - 1) / kGranularity * kGranularity;
  auto* const reserved = static_cast<std::byte*>(map(mapped + 2 * kGuard, PROT_NONE));
  auto* const alias = static_cast<std::byte*>(map(mapped, PROT_READ | PROT_WRITE));
  if (reserved == nullptr || alias == nullptr) return kOutOfMemory;
  // Fresh pages are zero, as those of a device are not.
  std::memset(alias, 0xA5, std::min(bytes, kPoison));
  auto made = std::make_unique<Allocation>();
  made->address = reinterpret_cast<CUdeviceptr>(reserved + kGuard);
  made->bytes = bytes;
  made->mapped = mapped;
  made->alias = alias;
  made->context = context;
  made->pool = pool;
  allocation = AllocationPtr(made.release(), [](Allocation* a) {
    // Work on a stream may have let go of it last under the lock, unseen.
    const Unseen unseen;
    ::munmap(a->alias, a->mapped);
    delete a;
  });
  s.memory.emplace(allocation->address, allocation);
  used += bytes;
  return kSuccess;
}

void release(const AllocationPtr& allocation) {
  State& s = state();
  s.used.at(static_cast<std::size_t>(allocation->context->device)) -= allocation->bytes;
  s.memory.erase(allocation->address);
}

AllocationPtr find_allocation(CUdeviceptr address) { return find_range(state().memory, address); }

PinnedPtr find_pinned(std::uintptr_t address) { return find_range(state().pinned, address); }

CUresult resolve(const char* call, std::uint64_t address, std::size_t bytes, Side& side) {
  const Lock lock;
  side = {address, bytes, find_allocation(address), nullptr};
  std::size_t room = bytes;
  if (side.on_device()) {
    room = side.memory->bytes - side.offset();
  } else if ((side.pinned = find_pinned(address)) != nullptr) {
    room = side.pinned->bytes - (address - side.pinned->address);
  }
  if (side.on_device() && side.memory->freed) {
    violation(std::string(call) + ": memory that cuMemFreeAsync was given");
    return kInvalidValue;
  }
  if (bytes <= room) return kSuccess;
  violation(text_of(call, address, bytes, room));
  return kInvalidValue;
}

}  // namespace penstock::simulator
