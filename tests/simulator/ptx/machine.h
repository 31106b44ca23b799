#pragma once

// What a translated kernel runs on: its threads' indices, and memory that knows where its arrays end and which thread
// was at each byte. Threads run one after the other, each from front to back, because the kernels have no barriers,
// atomics or shared memory (translate.py refuses those): any order must give the same results, and two threads that
// meet at one byte, at least one of them writing, are an error in every order.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace penstock::simulator::ptx {

/// A kernel did what it must not, at this line of its PTX text.
struct Fault : std::runtime_error {
  Fault(int at, const std::string& what) : std::runtime_error("line " + std::to_string(at) + ": " + what), line(at) {}
  int line;
};

struct Dimensions {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
};

/// What the special registers of one thread say.
struct Thread {
  Dimensions tid;
  Dimensions ntid;
  Dimensions ctaid;
  Dimensions nctaid;
};

/// Bytes that a kernel may use.
struct Range {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool writable = true;
};

/// The memory of one launch. Not for several host threads at once.
class Machine {
 public:
  /// `global`: the arrays of global memory that the kernel may touch. `parameters`: its parameter block.
  Machine(std::span<const Range> global, std::span<const std::byte> parameters);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// The thread that runs now, from 0.
  void begin_thread(std::uint32_t thread) noexcept { thread_ = thread + 1; }
  /// Each jump backwards counts against a limit, so that a kernel without an end is a fault.
  void jump_back(int line) {
    if (--jumps_left_ == 0) throw Fault(line, "the kernel does not end");
  }

  // For unsigned integers of 8 to 64 bits. Not inline: kernels are compiled without sanitizers, which take minutes for
  // functions of thousands of statements, and the accesses themselves are what sanitizers have to see.
  template <class Bits>
  Bits load_global(std::uint64_t address, int line);
  template <class Bits>
  void store_global(std::uint64_t address, Bits bits, int line);
  template <class Bits>
  Bits load_parameter(std::uint64_t address, int line) const;
  /// From a constant array of the module.
  template <class Bits>
  Bits load_constant(std::uint64_t address, int line) const;
  /// "The address must be naturally aligned to a multiple of the access size" (ISA, 9.7.9, "ld"), of all of a vector.
  static void check_aligned(std::uint64_t address, std::size_t bytes, int line) {
    if (address % bytes != 0) throw Fault(line, "an address is not aligned to " + std::to_string(bytes) + " bytes");
  }
  std::uint64_t parameters() const noexcept { return reinterpret_cast<std::uint64_t>(parameters_.data()); }
  void set_constants(std::span<const std::span<const std::byte>> constants) noexcept { constants_ = constants; }

 private:
  /// Who was at a byte: a thread's number from 1, 0 for nobody, kSeveral for more than one reader.
  struct Visits {
    std::uint32_t reader;
    std::uint32_t writer;
  };
  struct Array {
    Range range;
    Visits* visits;  ///< one a byte, of pages that the kernel has not touched until it is used
  };
  static constexpr std::uint32_t kSeveral = UINT32_MAX;

  static void check_inside(std::span<const std::byte> block, std::uint64_t address, std::size_t bytes, const char* what,
                           int line);
  void check_constant(std::uint64_t address, std::size_t bytes, int line) const;
  const Array& array_at(std::uint64_t address, std::size_t bytes, int line);
  void touch(std::uint64_t address, std::size_t bytes, bool write, int line);

  std::vector<Array> arrays_;
  std::size_t latest_ = 0;  ///< the array of the access before, which is most often that of the next one
  std::span<const std::byte> parameters_;
  std::span<const std::span<const std::byte>> constants_;
  std::uint32_t thread_ = 0;
  std::uint64_t jumps_left_ = std::uint64_t{1} << 40;
};

}  // namespace penstock::simulator::ptx
