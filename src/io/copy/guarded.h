#pragma once

// Reads of mappings. A file that another program shortens takes its pages away, and touching them ends the process by
// SIGBUS. Under a guard it is an error instead. All copies out of mappings go through here.

#include <cstddef>
#include <span>
#include <string_view>

#include "io/copy/scatter.h"

namespace penstock::io {

/// Copies from memory that may be a mapping of a file. When another program shortens the file meanwhile, this gives
/// kTruncated (with `path`) instead of ending the process by SIGBUS. Installs its signal handler on first use and
/// passes on every fault that is not its own. It costs a system call besides the copy, so copy many rows by one
/// guarded_gather. Bytes that vanished from a file's last page read as zeros and raise no fault: call require_uncut
/// after the copy.
void guarded_copy(std::byte* to, const std::byte* from, std::size_t bytes, std::string_view path);

/// Memory that may disappear while it is read, and the function that reads it.
class GuardedMemory {
 public:
  virtual ~GuardedMemory() = default;
  /// Whether a fault at `address` is one of reading this memory. Runs in a signal handler: nothing but arithmetic.
  virtual bool contains(const std::byte* address) const noexcept = 0;
  /// Reads it. May be abandoned at any access to the memory, without destructors: nothing in it may own anything.
  virtual void read() const noexcept = 0;
};

/// Runs memory.read(). False when a page of the memory is no longer there (SIGBUS). Costs one system call, which makes
/// sure that the process's handler of SIGBUS is ours; it passes every other fault on to the handlers that were there
/// before. Any thread may call it; guards may not nest.
[[nodiscard]] bool read_guarded(const GuardedMemory& memory);

/// Throws kTruncated for memory that is gone.
[[noreturn]] void throw_vanished(std::string_view path);

/// As guarded_copy, for a run at `from` that is cut into parts, each with its own target.
void guarded_scatter(const std::byte* from, std::span<const Scatter> parts, std::string_view path);

}  // namespace penstock::io
