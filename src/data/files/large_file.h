#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "data/sample/sample_file.h"
#include "data/sample/scratch.h"
#include "penstock/load.h"
#include "penstock/shape.h"

namespace penstock::data {

/// A file of which only the index is read at first; its payload goes straight into slots later. It stays open in
/// between while descriptors are plenty (SampleFile); else it is opened again, and must still be the same. Immutable;
/// thread-safe.
class LargeFile {
 public:
  /// Reads the index of `source`, which is a file of the system.
  LargeFile(SourcePtr source, bool verify);

  /// Bytes of all files it is made of.
  std::uint64_t size() const noexcept { return size_; }
  const Value& structure() const noexcept { return structure_; }
  std::span<const TensorEntry> entries() const noexcept { return entries_; }
  std::span<const StorageEntry> storages() const noexcept { return storages_; }

  struct Wanted {
    std::uint32_t entry = 0;
    Shape shape;      ///< the first elements of the entry along each dimension
    Strides strides;  ///< of the target, in elements
    std::byte* to = nullptr;
  };
  /// Reads what is wanted into place, asking the file for nothing else where it lies plain: but the record of a tensor
  /// of which all is wanted is read whole for its CRC, and so is that of a part where it is all but a few bytes.
  /// kChanged when it is no longer the file whose index was read, or is written to meanwhile.
  void read(std::span<const Wanted> wanted, Scratch& scratch) const;

 private:
  /// Its sources as one read has them, each opened anew at most once.
  using Opened = std::vector<SourcePtr>;
  const SourcePtr& source_of(std::uint32_t source, Opened& opened, Scratch& scratch) const;
  void read_all(std::span<const Wanted> wanted, Opened& opened, Scratch& scratch) const;
  void read_plain(const Wanted& wanted, const ByteSource& source, Scratch& scratch) const;
  /// Whether its CRC can be checked as soon as it is read: it is all of its record.
  bool is_record(const Wanted& wanted) const;
  void check_crc(const Wanted& wanted) const;
  /// The CRCs of records that only several tensors make up, or that nobody wants all of: the rest is read for it.
  void check_shared(std::span<const Wanted> wanted, Opened& opened, Scratch& scratch) const;

  bool verify_;
  std::deque<SampleFile> sources_;  ///< the file itself, then those that it refers to
  std::uint64_t size_ = 0;
  Value structure_;
  std::vector<TensorEntry> entries_;
  std::vector<StorageEntry> storages_;
};

}  // namespace penstock::data
