#include "data/sample/scratch.h"

#include <algorithm>

namespace penstock::data {

namespace {
constexpr std::size_t kBlock = std::size_t{256} << 10;
constexpr std::size_t kBlockAlign = 64;
}  // namespace

std::byte* Arena::allocate(std::size_t bytes, std::size_t align) {
  const auto place = [&](Block& block) -> std::byte* {
    const auto base = reinterpret_cast<std::uintptr_t>(block.memory.get());
    const std::size_t start = ((base + used_ + align - 1) & ~(align - 1)) - base;
    if (start > block.size || bytes > block.size - start) return nullptr;
    last_ = start;
    used_ = start + bytes;
    return block.memory.get() + start;
  };
  if (!blocks_.empty()) {
    if (std::byte* at = place(blocks_.back())) return at;
  }
  add_block(bytes + std::max(align, kBlockAlign));
  return place(blocks_.back());
}

void Arena::add_block(std::size_t bytes) {
  filled_ += used_;
  used_ = last_ = 0;
  const std::size_t size = std::max({bytes, kBlock, least_, blocks_.empty() ? 0 : 2 * blocks_.back().size});
  blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
}

void Arena::reset() noexcept {
  // The next one is as large as all of them, so that the same work again needs no more.
  if (blocks_.size() > 1) {
    least_ = 0;
    for (const Block& block : blocks_) least_ += block.size;
    blocks_.clear();
  }
  used_ = last_ = filled_ = 0;
}

void Scratch::reset() noexcept {
  arena.reset();
  tensors.clear();
  objects.clear();
}

}  // namespace penstock::data
