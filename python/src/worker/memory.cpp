// A part has a place in the file that no other part gets. When its last handle goes, its pages go too, by a hole. So a
// worker may keep a mapping of a part that is gone: it sees zeros there, or nothing that anybody reads.

#include "worker/memory.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <iterator>
#include <utility>

#include "core/forks.h"
#include "core/round.h"
#include "penstock/error.h"
#include "worker/block.h"

namespace penstock::python {
namespace {

/// Whether a file may be so long; where not, growing it would end the process (SIGXFSZ).
bool may_be(std::uint64_t bytes) noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

}  // namespace

/// What a Buffer of such memory holds.
class BatchMemory::BatchPart {
 public:
  BatchPart(std::shared_ptr<BatchMemory> memory, std::shared_ptr<SharedBlock> block, Place place)
      : memory_(std::move(memory)), block_(std::move(block)), place_(place) {}
  ~BatchPart() {
    if (core::forks() != memory_->forks_) return;  // the parent may have it still, and a lock that nobody gives back
    {
      const std::scoped_lock lock(memory_->mutex_);
      memory_->parts_.erase(block_->bytes().data());
    }
    static_cast<void>(::fallocate(memory_->descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(place_.begin), static_cast<off_t>(place_.bytes)));
  }
  BatchPart(const BatchPart&) = delete;
  BatchPart& operator=(const BatchPart&) = delete;

 private:
  std::shared_ptr<BatchMemory> memory_;
  std::shared_ptr<SharedBlock> block_;
  Place place_;
};

BatchMemory::~BatchMemory() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Buffer BatchMemory::take(std::size_t bytes) {
  if (core::forks() != forks_) return {};
  const std::size_t size = core::round_up(bytes, core::page_size());
  std::shared_ptr<SharedBlock> block;
  Place place{.bytes = size};
  {
    const std::scoped_lock lock(mutex_);
    if (refused_) return {};
    if (descriptor_ < 0) descriptor_ = new_memory_file();
    refused_ =
        descriptor_ < 0 || !may_be(end_ + size) || ::ftruncate(descriptor_, static_cast<off_t>(end_ + size)) != 0;
    if (refused_) return {};
    try {
      block = SharedBlock::part(descriptor_, end_, size);
    } catch (const Error&) {  // no address for it
      return {};
    }
    place.begin = end_;
    end_ += size;
  }
  std::byte* const data = block->bytes().data();
  auto part = std::make_shared<BatchPart>(shared_from_this(), std::move(block), place);
  const std::scoped_lock lock(mutex_);
  parts_.emplace(data, place);
  return Buffer::wrap(data, size, std::move(part));
}

std::optional<BatchMemory::Place> BatchMemory::find(const std::byte* address) const {
  const std::scoped_lock lock(mutex_);
  const auto behind = parts_.upper_bound(address);
  if (behind == parts_.begin()) return std::nullopt;
  const auto& [begin, place] = *std::prev(behind);
  const auto offset = static_cast<std::uint64_t>(address - begin);
  if (offset >= place.bytes) return std::nullopt;
  return Place{place.begin, place.bytes, offset};
}

int BatchMemory::descriptor() const noexcept {
  const std::scoped_lock lock(mutex_);
  return descriptor_;
}

}  // namespace penstock::python
