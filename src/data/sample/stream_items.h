#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "penstock/value.h"

namespace penstock::data {

struct StreamItem;
using StreamItemPtr = std::shared_ptr<const StreamItem>;

/// A sample as a stream gave it. Immutable.
struct StreamItem {
  std::int64_t number = 0;  ///< of the sample in its stream
  Value value = {};
  std::size_t part = 0;      ///< of a mixture: which stream `inner` is of
  StreamItemPtr inner = {};  ///< of a mixture: what that gave; `value` is unused
};

/// The samples that a thread works on, and where datasets of streams find them (CallContext::items).
class StreamItems {
 public:
  explicit StreamItems(std::span<const StreamItemPtr> items) noexcept : items_(items) {}
  /// The one of that number, or null. Fast where they are asked for in their order.
  const StreamItem* find(std::int64_t number) noexcept {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const StreamItem& item = *items_[next_++ % items_.size()];
      if (item.number == number) return &item;
    }
    return nullptr;
  }

 private:
  std::span<const StreamItemPtr> items_;
  std::size_t next_ = 0;
};

}  // namespace penstock::data
