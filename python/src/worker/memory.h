#pragma once

// Memory of batches that worker processes write their results to. All of it is in one memfd, which takes one descriptor
// in each process, however many batches a program keeps; parts that nobody has any more hold no pages.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "core/forks.h"
#include "penstock/buffer.h"

namespace penstock::python {

/// Any thread may use it.
class BatchMemory : public std::enable_shared_from_this<BatchMemory> {
 public:
  BatchMemory() = default;
  ~BatchMemory();
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;

  /// At least so many bytes of undefined content; none where the system gives none, or in a forked child.
  Buffer take(std::size_t bytes);

  /// Where in the file the memory at an address lies.
  struct Place {
    std::uint64_t begin = 0;  ///< of the part that take() gave
    std::uint64_t bytes = 0;  ///< of it
    std::uint64_t offset = 0;
  };
  std::optional<Place> find(const std::byte* address) const;
  /// -1 before anything was taken.
  int descriptor() const noexcept;

 private:
  class BatchPart;

  mutable std::mutex mutex_;  ///< guards what follows, forks_ aside
  int descriptor_ = -1;
  bool refused_ = false;
  std::uint64_t end_ = 0;
  std::map<const std::byte*, Place> parts_;
  const std::uint64_t forks_ = core::forks();
};

}  // namespace penstock::python
