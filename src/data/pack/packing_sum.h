#pragma once

// What tells one packing from another: a checksum of what is packed, which each shard has in its metadata. The same
// samples give the same one on every machine, so that packing them again gives the same bytes.

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/value.h"

namespace penstock::data {

/// A running checksum of texts and values. It tells mistakes, and nobody's intent.
class PackingSum {
 public:
  void add_text(std::string_view text);
  /// Types, shapes and elements of its tensors, its keys and its other values.
  void add(const Value& value);
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  std::uint64_t sum_ = 0;
};

}  // namespace penstock::data
