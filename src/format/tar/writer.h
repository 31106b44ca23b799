#pragma once

// Writes tar archives front to back: POSIX ustar headers, pax ones where a name or size does not fit. Equal content
// makes equal bytes, because owners, times and modes are fixed.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/file/output.h"
#include "penstock/value.h"

namespace penstock::format {

/// One archive: members in order, then `finish`, once. The sink must outlive it. Not thread-safe.
class TarWriter {
 public:
  explicit TarWriter(io::ByteSink& sink) noexcept : sink_(sink) {}

  /// kInvalidArgument for a name that is empty or has a zero byte in it.
  static void check(std::string_view name);
  /// The next member; `size` bytes must be written before `end`.
  void begin(std::string_view name, std::uint64_t size);
  void write(std::span<const std::byte> bytes);
  void end();
  void add(std::string_view name, std::span<const std::byte> content);
  void finish();
  /// kInvalidArgument where the sample before this one has the same key: readers would take both for one.
  void require_new(const std::string& key);

 private:
  void pad(std::uint64_t bytes);

  io::ByteSink& sink_;
  std::uint64_t begun_ = 0;  ///< where the content of the member begins
  std::uint64_t size_ = 0;
  std::string key_;  ///< of the last sample
};

/// Writes one sample: a dict whose keys become fields ("__key__", where it has one, becomes the name; else `key` does;
/// "__url__" is left out), or a tensor, the field "npy". A field is written as its last extension says (sample_name.h);
/// one without a known extension gets that of its value: npy for tensors, cls for integers, txt for texts, json for
/// lists, dicts and other numbers, bin for bytes. kUnsupported for what the field's kind does not hold, with the
/// field's place.
void write_sample(TarWriter& writer, const Value& sample, const std::string& key);

}  // namespace penstock::format
