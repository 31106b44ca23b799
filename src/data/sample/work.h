#pragma once

// What is at hand where samples are fetched and batches made, by owner: what the caller asks for (CallContext), what is
// guessed about the batch (Guesses), what a thread keeps (Scratch), and what it reports (Figures). A function that
// needs all four takes a Work; all others name what they touch.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "data/sample/expected_slots.h"
#include "data/sample/scratch.h"
#include "data/trace/stage_clock.h"
#include "penstock/loader.h"

namespace penstock::data {

class Crew;
class StreamItems;

/// A loader's seed, and which of its epochs is read.
struct EpochSeed {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;

  friend bool operator==(const EpochSeed&, const EpochSeed&) = default;
};

/// What the caller asks for. Nobody who is called changes it.
struct CallContext {
  bool verify = true;
  /// Whether only layouts are wanted: files are read as far as their headers, and payloads are nowhere where that saves
  /// a read. Functions of the program that make samples are not called, which is kUnsupported.
  bool headers_only = false;
  /// Whether a sample that cannot be had is told by Sample::failed, beside those that can, and not thrown.
  bool sets_aside = false;
  /// Whether the elements of a sample that stands by itself lie in the order in which they are stored.
  bool keeps_order = false;
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

  /// The key of the random numbers of sample `index`: from seed, epoch and index alone, so that neither the number of
  /// workers nor a resumed run changes them.
  std::uint64_t key_of(std::int64_t index) const noexcept;
  /// kCancelled when `cancelled` is set; called once a sample or so.
  void check_cancelled() const;
};

/// What one try at a batch takes for granted before its files are read. The BatchMaker owns it; if a guess was wrong,
/// it makes the batch again without any. Threads that help with the batch may confirm and refute.
class Guesses {
 public:
  /// `allowed`: whether files may be taken to be like those before, which is for who reads the payload to find out.
  explicit Guesses(bool allowed = false) noexcept : allowed_(allowed) {}

  bool allowed() const noexcept { return allowed_; }
  bool any() const noexcept { return assumed_ > 0; }
  /// A file is taken to be like those before, or turned out so, or did not.
  void assume() noexcept { ++assumed_; }
  void confirm() noexcept { ++confirmed_; }
  void refute() noexcept { refuted_ = true; }
  bool refuted() const noexcept { return refuted_; }
  /// Whether all files turned out as assumed.
  bool hold() const noexcept { return !refuted_ && confirmed_ == assumed_; }

 private:
  bool allowed_;
  std::size_t assumed_ = 0;
  std::atomic<std::size_t> confirmed_ = 0;
  std::atomic<bool> refuted_ = false;
};

/// What one thread reports: counts, and the time of each stage.
struct Figures {
  LoaderStats stats;
  StageClock clock;
};

/// All four, of one thread, and where its batch lies.
struct Work {
  const CallContext& call;
  Guesses& guesses;
  Scratch& scratch;
  Figures& figures;
  /// Where the batch has its payload expected; nothing where samples are fetched for another reason.
  ExpectedSlots slots = {};

  Work with(const CallContext& other) const noexcept { return {other, guesses, scratch, figures, slots}; }
  Work with(const ExpectedSlots& other) const noexcept { return {call, guesses, scratch, figures, other}; }
};

/// For a thread that works by itself: it owns all four, and guesses nothing.
struct Workspace {
  CallContext call;
  Guesses guesses;
  Scratch scratch;
  Figures figures;

  Work work() noexcept { return {call, guesses, scratch, figures}; }
};

}  // namespace penstock::data
