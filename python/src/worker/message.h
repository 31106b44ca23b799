#pragma once

// What one message between this process and a worker says: numbers, texts, values and errors one behind the other, and
// behind them the payload of all tensors. The bytes lie in a SharedBlock, and tensors are read where they lie.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cursor.h"
#include "penstock/buffer.h"
#include "penstock/error.h"
#include "penstock/tensor.h"
#include "penstock/value.h"

namespace penstock::python {

/// Where in a block the parts of a message lie.
struct MessageExtent {
  std::uint64_t structure = 0;   ///< bytes of what is no payload, from kMessageBegin on
  std::uint64_t payload_at = 0;  ///< where it begins, aligned to 64
  std::uint64_t payload = 0;     ///< bytes of it
};

/// In front of it, by itself on a line of the cache: how far the worker has come.
inline constexpr std::size_t kMessageBegin = 64;

/// Bytes of a block that holds the message.
constexpr std::size_t end_of(const MessageExtent& extent) noexcept {
  return static_cast<std::size_t>(extent.payload_at + extent.payload);
}

/// Written by the worker, and read by its parent when that has ended.
struct CallProgress {
  std::atomic<std::uint32_t> finished;  ///< calls
  std::atomic<std::uint32_t> part;      ///< of the call at hand: 1 + the position of the sample that it is at, or 0
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(CallProgress) <= kMessageBegin);

inline CallProgress& progress_of(std::span<std::byte> block) noexcept {
  return *reinterpret_cast<CallProgress*>(block.data());
}

class MessageWriter {
 public:
  void write_number(std::uint64_t value);
  void write_real(double value);
  void write_text(std::string_view bytes);
  /// kUnsupported for what is no content of the program's own (tensors that are not loaded), kDeviceMismatch for a
  /// tensor that is not in host memory, kLimit for content that nests too deep or in circles.
  void write_value(const Value& value) { write_value_at(value, 0); }
  /// The same, and where its tensor of that number, counted from 0, fills `slot`, it is put there at once.
  void write_value(const Value& value, std::uint32_t tensor, std::span<std::byte> slot);
  void write_error(const Error& error, std::string_view cause);

  /// Tensors in this memory are not copied, where the block that the message is put into has it at the place of its
  /// payload. Before any tensor.
  void place_in(std::span<std::byte> placed) noexcept;
  std::span<std::byte> placed() const noexcept { return placed_; }

  /// How far it has come, and back to there.
  struct Mark {
    std::size_t structure;
    std::size_t tensors;
    std::uint64_t payload;
  };
  Mark mark() const noexcept { return {structure_.size(), tensors_.size(), payload_}; }
  void take_back(const Mark& mark);

  /// Its extent where the payload begins at that place, or at the first one that is free.
  MessageExtent extent(std::uint64_t payload_at = 0) const noexcept;
  void put(std::span<std::byte> block, const MessageExtent& extent) const;

 private:
  void write_value_at(const Value& value, std::size_t depth);
  void write_tensor(const Value& value);

  std::string structure_;
  std::vector<Tensor> tensors_;
  std::vector<std::uint64_t> places_;  ///< of each tensor, in the payload
  std::uint64_t payload_ = 0;
  std::span<std::byte> placed_;
  std::span<std::byte> slot_;    ///< none where nothing goes to one
  std::uint32_t before_it_ = 0;  ///< tensors of the value that come before the slot's
};

/// An error from the other process; `cause` is what the program raised, pickled, or empty.
struct ErrorRead {
  Error error;
  std::string cause;
};

class MessageReader {
 public:
  /// `owner` keeps the block for as long as any tensor of it lives. kCorrupt for an extent outside the block.
  MessageReader(std::span<std::byte> block, const MessageExtent& extent, std::shared_ptr<const void> owner);

  std::uint64_t number() { return cursor_.u64(); }
  double real() { return cursor_.read<double>(); }
  std::string_view text() { return cursor_.take_text(static_cast<std::size_t>(number())); }
  Value value() { return value_at(0); }
  /// Of which a tensor may be in this slot.
  Value value(const Buffer& slot);
  ErrorRead error();

 private:
  Value value_at(std::size_t depth);
  Value bytes();
  Tensor tensor();

  core::Cursor cursor_;
  std::span<std::byte> payload_;
  std::shared_ptr<const void> owner_;
  Buffer slot_;
};

}  // namespace penstock::python
