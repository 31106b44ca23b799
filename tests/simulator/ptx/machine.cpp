#include "simulator/ptx/machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>

namespace penstock::simulator::ptx {
namespace {

template <class T>
T* reserve(std::size_t count) {
  if (count == 0) return nullptr;
  // Anonymous pages are zero and cost nothing until they are touched.
  void* const memory =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

bool contains(const std::byte* begin, std::size_t size, std::uint64_t address, std::size_t bytes) {
  const std::uint64_t from = reinterpret_cast<std::uint64_t>(begin);
  return address >= from && address - from <= size && bytes <= size - (address - from);
}

/// Ranges that share bytes as one, so that each byte has one note of who was there. Writable where one of them is: an
/// operation in place has its array among both what it reads and what it writes.
std::vector<Range> without_overlaps(std::span<const Range> ranges) {
  std::vector<Range> sorted(ranges.begin(), ranges.end());
  std::ranges::sort(sorted, std::less<>(), &Range::begin);
  std::vector<Range> out;
  for (const Range& range : sorted) {
    if (range.bytes == 0) continue;
    Range* const last = out.empty() ? nullptr : &out.back();
    if (last == nullptr || range.begin >= last->begin + last->bytes) {
      out.push_back(range);
      continue;
    }
    const auto reach = static_cast<std::size_t>(range.begin - last->begin) + range.bytes;
    last->bytes = std::max(last->bytes, reach);
    last->writable = last->writable || range.writable;
  }
  return out;
}

template <class Bits>
Bits read(std::uint64_t address) {
  Bits bits;
  std::memcpy(&bits, reinterpret_cast<const void*>(address), sizeof bits);
  return bits;
}

}  // namespace

Machine::Machine(std::span<const Range> global, std::span<const std::byte> parameters) : parameters_(parameters) {
  for (const Range& range : without_overlaps(global)) arrays_.push_back({range, reserve<Visits>(range.bytes)});
}

Machine::~Machine() {
  for (const Array& array : arrays_) {
    if (array.visits != nullptr) munmap(array.visits, array.range.bytes * sizeof(Visits));
  }
}

void Machine::check_inside(std::span<const std::byte> block, std::uint64_t address, std::size_t bytes, const char* what,
                           int line) {
  check_aligned(address, bytes, line);
  if (contains(block.data(), block.size(), address, bytes)) return;
  throw Fault(line, std::string("reads outside of ") + what);
}

void Machine::check_constant(std::uint64_t address, std::size_t bytes, int line) const {
  check_aligned(address, bytes, line);
  for (const std::span<const std::byte> constant : constants_) {
    if (contains(constant.data(), constant.size(), address, bytes)) return;
  }
  throw Fault(line, "reads outside of the module's constants");
}

const Machine::Array& Machine::array_at(std::uint64_t address, std::size_t bytes, int line) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const std::size_t at = (latest_ + i) % arrays_.size();
    if (contains(arrays_[at].range.begin, arrays_[at].range.bytes, address, bytes)) {
      latest_ = at;
      return arrays_[at];
    }
  }
  throw Fault(line, "touches memory outside of the arrays that it was given");
}

void Machine::touch(std::uint64_t address, std::size_t bytes, bool write, int line) {
  check_aligned(address, bytes, line);
  const Array& array = array_at(address, bytes, line);
  if (write && !array.range.writable) throw Fault(line, "writes to an array that it may only read");
  const std::size_t first = address - reinterpret_cast<std::uint64_t>(array.range.begin);
  for (std::size_t i = first; i < first + bytes; ++i) {
    Visits& visits = array.visits[i];
    if (visits.writer != 0 && visits.writer != thread_) {
      throw Fault(line, write ? "two threads write one place" : "reads what another thread writes");
    }
    if (write) {
      if (visits.reader != 0 && visits.reader != thread_) throw Fault(line, "writes what another thread reads");
      visits.writer = thread_;
    } else {
      visits.reader = visits.reader == 0 || visits.reader == thread_ ? thread_ : kSeveral;
    }
  }
}

template <class Bits>
Bits Machine::load_global(std::uint64_t address, int line) {
  touch(address, sizeof(Bits), false, line);
  return read<Bits>(address);
}

template <class Bits>
void Machine::store_global(std::uint64_t address, Bits bits, int line) {
  touch(address, sizeof(Bits), true, line);
  std::memcpy(reinterpret_cast<void*>(address), &bits, sizeof bits);
}

template <class Bits>
Bits Machine::load_parameter(std::uint64_t address, int line) const {
  check_inside(parameters_, address, sizeof(Bits), "the parameter block", line);
  return read<Bits>(address);
}

template <class Bits>
Bits Machine::load_constant(std::uint64_t address, int line) const {
  check_constant(address, sizeof(Bits), line);
  return read<Bits>(address);
}

#define PENSTOCK_ACCESSES(Bits)                                          \
  template Bits Machine::load_global<Bits>(std::uint64_t, int);          \
  template void Machine::store_global<Bits>(std::uint64_t, Bits, int);   \
  template Bits Machine::load_parameter<Bits>(std::uint64_t, int) const; \
  template Bits Machine::load_constant<Bits>(std::uint64_t, int) const
PENSTOCK_ACCESSES(std::uint8_t);
PENSTOCK_ACCESSES(std::uint16_t);
PENSTOCK_ACCESSES(std::uint32_t);
PENSTOCK_ACCESSES(std::uint64_t);
#undef PENSTOCK_ACCESSES

}  // namespace penstock::simulator::ptx
