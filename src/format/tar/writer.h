#pragma once

// Writes tar archives front to back: POSIX ustar headers, pax ones where a name or size does not fit. Equal content
// makes equal bytes, because owners, times and modes are fixed.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/tar/sample_name.h"
#include "io/file/output.h"
#include "penstock/value.h"

namespace penstock::format {

/// The fields of one sample that is being written, as readers will find them.
class WrittenFields {
 public:
  /// Which sample and field a member of that name is. kInvalidArgument where its name is empty or has a zero byte,
  /// where readers take it for a part of no sample, and where the sample has that field already.
  SampleName place_of(std::string_view member) const;
  void add(SampleName place);
  /// kInvalidArgument where the sample has that key: readers would take another one of it for a part of this one.
  void require_other(const std::string& key) const;

 private:
  std::string key_;
  std::set<std::string> fields_;
};

/// A sample as members of an archive.
struct TarSample {
  std::string key;
  std::vector<std::pair<std::string, std::string>> members = {};  ///< their names and contents
};

/// A sample to be written: a dict whose keys become fields ("__key__", where it has one, becomes the name; else `key`
/// does; "__url__" is left out), or a tensor, the field "npy". A field is written as its last extension says
/// (sample_name.h); one without a known extension gets that of its value: npy for tensors, cls for integers, txt for
/// texts, json for lists, dicts and other numbers, bin for bytes. kUnsupported for what the field's kind does not hold,
/// with the field's place; kInvalidArgument for names that no reader would find again.
TarSample tar_sample(const Value& sample, const std::string& key);

/// One archive: members in order, then `finish`, once. The sink must outlive it. Not thread-safe.
class TarWriter {
 public:
  explicit TarWriter(io::ByteSink& sink) noexcept : sink_(sink) {}

  /// The errors of a next member of that name, and of a next sample.
  void check(std::string_view name) const { static_cast<void>(last_.place_of(name)); }
  void check(const TarSample& sample) const { last_.require_other(sample.key); }
  /// The next member; `size` bytes must be written before `end`.
  void begin(std::string_view name, std::uint64_t size);
  void write(std::span<const std::byte> bytes);
  void end();
  void add(const TarSample& sample);
  void finish();

 private:
  void pad(std::uint64_t bytes);

  io::ByteSink& sink_;
  std::uint64_t begun_ = 0;  ///< where the content of the member begins
  std::uint64_t size_ = 0;
  WrittenFields last_;  ///< of the sample that the last member is of
};

}  // namespace penstock::format
