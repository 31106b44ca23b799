#pragma once

// Memory that this process and a worker process both see: a memfd, which has no name and ends with its last mapping.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace penstock::python {

/// A new memfd of no bytes; -1 where the system refuses to make one.
int new_memory_file() noexcept;

/// One mapping of such memory. The descriptor is closed as soon as the other process has it.
class SharedBlock {
 public:
  /// New memory of at least that size. kOutOfMemory, or what the system says.
  static std::shared_ptr<SharedBlock> create(std::uint64_t id, std::size_t bytes);
  /// That of a descriptor, which is closed.
  static std::shared_ptr<SharedBlock> received(std::uint64_t id, int descriptor, std::size_t bytes);
  /// A part of that of a descriptor, which stays open.
  static std::shared_ptr<SharedBlock> part(int descriptor, std::uint64_t begin, std::size_t bytes);
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  std::uint64_t id() const noexcept { return id_; }
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// -1 when it was sent, or came from the other process.
  int descriptor() const noexcept { return descriptor_; }
  void close_descriptor() noexcept;

 private:
  SharedBlock(std::uint64_t id, int descriptor, std::size_t bytes, std::uint64_t begin = 0);
  /// Closes the descriptor with the block, or where there is none.
  static std::shared_ptr<SharedBlock> owned(std::uint64_t id, int descriptor, std::size_t bytes);

  std::uint64_t id_;
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_;
};

}  // namespace penstock::python
