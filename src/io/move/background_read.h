#pragma once

// Reads that go on while nobody waits for them: what is asked ahead of sources whose answers take long.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <thread>

#include "penstock/source.h"

namespace penstock::io {

/// One read, which begins at once, in a thread of its own: for pieces of a megabyte or more. Thread-safe.
class BackgroundRead {
 public:
  BackgroundRead(Source source, std::uint64_t begin, std::size_t bytes);
  /// Ends the read where it is not over.
  ~BackgroundRead();
  BackgroundRead(const BackgroundRead&) = delete;
  BackgroundRead& operator=(const BackgroundRead&) = delete;

  std::uint64_t begin() const noexcept { return begin_; }
  std::uint64_t end() const noexcept { return begin_ + bytes_; }
  /// What was read, as long as this lives. Waits for it. Throws what the read met; kCancelled where the calling thread
  /// is to stop (core::StopScope). In a process that was forked meanwhile it reads, because the thread stayed behind.
  std::span<const std::byte> bytes();

 private:
  struct State;

  void start();

  std::uint64_t begin_;
  std::size_t bytes_;
  std::uint64_t forks_;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

/// A source from front to back, of which the next pieces are asked for while one is used. Not thread-safe.
class ReadFromFront {
 public:
  /// `ahead` pieces are under way or held at once.
  ReadFromFront(Source source, std::size_t piece, std::size_t ahead);

  /// Fills the beginning of `into`; returns with how many bytes, 0 at the end alone. Throws as BackgroundRead::bytes.
  std::size_t read(std::span<std::byte> into);
  /// Whether the last piece was asked for.
  bool asked_for_all() const noexcept { return asked_ == source_.size(); }

 private:
  void ask();

  Source source_;
  std::size_t piece_;
  std::size_t ahead_;
  std::uint64_t at_ = 0;
  std::uint64_t asked_ = 0;
  std::deque<std::unique_ptr<BackgroundRead>> pieces_;
};

}  // namespace penstock::io
