#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "data/sample/expected_slots.h"
#include "data/sample/layout.h"
#include "data/trace/stage_clock.h"
#include "penstock/loader.h"
#include "penstock/tensor.h"

namespace penstock::data {

class Crew;
class StreamItems;

/// A loader's seed, and which of its epochs is read.
struct EpochSeed {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
};

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

/// Thrown where a batch was located by what its files were like so far, and a file is not like that: it has to be
/// located again with `Scratch::may_assume` off. Never leaves this layer.
struct Misjudged {};

/// What one thread needs to prepare batches, kept from batch to batch. One thread at a time.
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
  ExpectedSlots expected;
  LoaderStats stats;
  StageClock clock;
  bool verify = true;
  /// Whether `locate` may take a file to be like those before and leave it to who reads the payload to find out.
  bool may_assume = false;
  /// Whether only layouts are wanted: files are read as far as their headers, and sources stay empty where that saves a
  /// read. Functions of the program that make samples are not called, which is kUnsupported.
  bool headers_only = false;
  /// Whether a sample that cannot be had is told by Sample::failed, beside those that can, and not thrown.
  bool sets_aside = false;
  /// Files of which that was assumed since reset, and those that turned out so.
  std::size_t assumed = 0;
  std::size_t confirmed = 0;
  /// What the random numbers of samples are made from, besides their indices.
  EpochSeed epoch_seed;
  /// Whole small files are held up to this in all; further files of a batch are read in two steps.
  std::size_t whole_file_bytes = std::size_t{64} << 20;
  /// Whoever may help with the pieces of a batch, or null.
  Crew* crew = nullptr;
  /// Where datasets of streams find the samples that are worked on, or null.
  StreamItems* items = nullptr;
  /// Set from outside to end work soon, or null.
  const std::atomic<bool>* cancelled = nullptr;

  /// Forgets the last batch.
  void reset() noexcept;
  /// The key of the random numbers of sample `index`: from seed, epoch and index alone, so that neither the number of
  /// workers nor a resumed run changes them.
  std::uint64_t key_of(std::int64_t index) const noexcept;
  /// kCancelled when `cancelled` is set; called once a sample or so.
  void check_cancelled() const;

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
