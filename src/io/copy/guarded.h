#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace penstock::io {

/// Where a part of a contiguous read goes; a null `to` drops the bytes.
struct Scatter {
  std::byte* to = nullptr;
  std::size_t bytes = 0;
};

/// Copies from memory that may be a mapping of a file somebody cuts: kTruncated (with `path`) instead of SIGBUS.
/// Installs its signal handler on first use and passes on every fault that is not its own. Beyond the copy it costs a
/// system call, so copy many rows by one guarded_gather. Does not see bytes that vanished from a file's last page,
/// which read as zeros: ask require_uncut after the copy.
void guarded_copy(std::byte* to, const std::byte* from, std::size_t bytes, std::string_view path);

/// Memory that a guarded function may find gone while it reads it.
class GuardedMemory {
 public:
  virtual ~GuardedMemory() = default;
  /// Whether a fault at `address` is one of reading this memory. Runs in a signal handler: nothing but arithmetic.
  virtual bool contains(const std::byte* address) const noexcept = 0;
  /// Reads it. May be abandoned at any access to the memory, without destructors: nothing in it may own anything.
  virtual void read() const noexcept = 0;
};

/// Runs memory.read(); false when a page of the memory is no longer there (SIGBUS). Costs a system call: it makes sure
/// that the process's handler for SIGBUS is the one this needs, which passes every other fault on to the handlers that
/// were there before. Any thread; guards may not nest.
[[nodiscard]] bool read_guarded(const GuardedMemory& memory);

/// Throws the kTruncated of memory that is gone.
[[noreturn]] void throw_vanished(std::string_view path);

/// Copies the run at `from` into the parts, which follow each other in it. As guarded_copy.
void guarded_scatter(const std::byte* from, std::span<const Scatter> parts, std::string_view path);

}  // namespace penstock::io
