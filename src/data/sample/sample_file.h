#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "data/sample/held_descriptors.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::data {

/// The file that samples are copied out of, for as long as a dataset lives: its name for errors, whether it is still as
/// it was opened, and reads where it is not mapped. Immutable; thread-safe.
class SampleFile {
 public:
  /// Samples that lie in memory, which this is to be called.
  explicit SampleFile(std::string name) : name_(std::move(name)) {}
  /// A file. Its descriptor stays open while there are plenty; else the file is opened by name each time, and is no
  /// longer this one when another has come in its place.
  explicit SampleFile(const SourcePtr& source);

  const std::string& name() const noexcept { return name_; }
  /// For behind a copy of its bytes; as archive::require_unchanged.
  void require_unchanged() const;
  /// What to throw when copying them failed by `error`.
  Error error_of_change(const Error& error) const;
  /// Fills `into` from `offset`. kTruncated, kIo, kChanged, kNotFound.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  SourcePtr opened() const;

  std::string name_;
  HeldDescriptors held_;
  SourcePtr source_;                    ///< where it is held open
  std::optional<FileVersion> version_;  ///< of a file that is not
};

}  // namespace penstock::data
