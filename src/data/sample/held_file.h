#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "data/sample/held_descriptors.h"
#include "io/read/reader.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::data {

/// A file that samples are read or copied from after it was opened: its name for errors, whether it is still as it was
/// opened, and reads where it is not mapped. Datasets of arrays keep one for as long as they live, folders one for each
/// large file of a batch. Immutable; thread-safe.
class HeldFile {
 public:
  /// Samples that lie in memory, which this is to be called.
  explicit HeldFile(std::string name) : name_(std::move(name)) {}
  /// A file. Its descriptor stays open while there are plenty; else the file is opened by name each time, and is no
  /// longer this one when another has come in its place.
  explicit HeldFile(const penstock::Source& source, const DescriptorLimit& limit = {});

  const std::string& name() const noexcept { return name_; }
  /// Whether this is a file, and not a name for memory.
  bool is_file() const noexcept { return source_ || version_; }
  /// For behind a copy of its bytes; as archive::require_unchanged.
  void require_unchanged() const;
  /// What to throw when copying them failed by `error`.
  Error error_of_change(const Error& error) const;
  /// Fills `into` from `offset`. kTruncated, kIo, kChanged, kNotFound.
  void read(std::uint64_t offset, std::span<std::byte> into) const;
  io::ReadCosts costs() const { return source_ ? io::costs_of(**source_) : io::ReadCosts{}; }
  /// Whether each answer takes so long that several reads are asked for at once.
  bool reads_at_once() const;
  /// Fills all of these, if `reads_at_once`; the errors of `read`.
  void read(std::span<const io::SourceRun> runs) const;

  /// To read more than once from: the descriptor that is held, or the file opened anew. kChanged when that is another.
  penstock::Source source() const { return source_ ? *source_ : opened(); }
  /// Whether the descriptor is held, so that `source` opens nothing.
  bool is_held() const noexcept { return source_.has_value(); }

 private:
  penstock::Source opened() const;

  std::string name_;
  HeldDescriptors held_;
  std::optional<penstock::Source> source_;  ///< where it is held open
  std::optional<FileVersion> version_;      ///< of a file that is not
};

}  // namespace penstock::data
