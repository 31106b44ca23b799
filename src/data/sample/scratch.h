#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "data/sample/layout.h"
#include "penstock/tensor.h"

namespace penstock::data {

/// Memory that is handed out piece by piece and taken back all at once. Keeps what it has: a repeated amount of work
/// allocates nothing. Not thread-safe.
class Arena {
 public:
  /// `bytes` uninitialised bytes, valid until reset. `align` is a power of two.
  std::byte* allocate(std::size_t bytes, std::size_t align = 64);
  /// `count` uninitialised objects, valid until reset.
  template <class T>
  requires std::is_trivially_destructible_v<T> std::span<T> array(std::size_t count) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): T may well be a pointer
    return {reinterpret_cast<T*>(allocate(count * sizeof(T), alignof(T))), count};
  }
  /// Gives back the end of the last allocation, of which `used` bytes stay.
  void trim_last(std::size_t used) noexcept { used_ = last_ + used; }
  void reset() noexcept;
  /// Bytes handed out since reset.
  std::size_t used() const noexcept { return filled_ + used_; }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t size = 0;
  };
  void add_block(std::size_t bytes);

  std::vector<Block> blocks_;  ///< the last one is in use
  std::size_t least_ = 0;      ///< bytes of the next first block
  std::size_t used_ = 0;       ///< of the last block
  std::size_t last_ = 0;       ///< where the last allocation begins
  std::size_t filled_ = 0;     ///< in the blocks before it
};

/// The memory of one thread: what samples of the batch at hand point to, and what the thread keeps for the next one.
/// One thread at a time.
class Scratch {
 public:
  /// What one dataset remembers from batch to batch in this thread (layouts it saw).
  struct State {
    virtual ~State() = default;
  };

  Arena arena;
  StructureInterner structures;
  /// Keep what samples point to until reset.
  std::vector<Tensor> tensors;
  std::vector<std::shared_ptr<const void>> objects;

  /// Forgets the last batch.
  void reset() noexcept;

  /// The state of that type of `owner`, made on first use.
  template <class T>
  T& state(const void* owner) {
    for (Owned& owned : states_) {
      if (owned.owner == owner && owned.kind == &kKind<T>) return static_cast<T&>(*owned.state);
    }
    states_.push_back({owner, &kKind<T>, std::make_unique<T>()});
    return static_cast<T&>(*states_.back().state);
  }

 private:
  template <class T>
  static constexpr char kKind = 0;  ///< its address tells types apart

  struct Owned {
    const void* owner;
    const char* kind;
    std::unique_ptr<State> state;
  };
  std::vector<Owned> states_;
};

}  // namespace penstock::data
