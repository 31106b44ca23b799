#pragma once

// A part of a file that a program gets as memory of its own: pages are those of the page cache until they are written
// to, so that nothing is copied for a taker who copies anyway. One that keeps it has it made independent of the file.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "penstock/source.h"

namespace penstock::io {

class PrivateMapping {
 public:
  /// [offset, offset + bytes) of a source's file; null where the source has no file that can be mapped. kTruncated
  /// where it was cut. `bytes` > 0.
  static std::shared_ptr<PrivateMapping> of(const ByteSource& source, std::uint64_t offset, std::size_t bytes);
  ~PrivateMapping();
  PrivateMapping(const PrivateMapping&) = delete;
  PrivateMapping& operator=(const PrivateMapping&) = delete;

  /// Writable; until `detach` the file must not be cut while it is used.
  std::byte* data() const noexcept { return base_ + lead_; }
  /// Puts memory that no file can change in place of the mapping, at the same addresses and with the same bytes.
  /// Whoever writes to it meanwhile may lose that. kTruncated where the file was cut, kOutOfMemory; the mapping is then
  /// what it was.
  void detach();

 private:
  PrivateMapping(std::byte* base, std::size_t length, std::size_t lead, std::string name)
      : base_(base), length_(length), lead_(lead), name_(std::move(name)) {}

  std::byte* base_;
  std::size_t length_;
  std::size_t lead_;  ///< from the beginning of the page to the first byte
  std::string name_;  ///< of the file, for errors
};

}  // namespace penstock::io
