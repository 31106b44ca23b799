#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "data/scratch.h"
#include "penstock/load.h"
#include "penstock/shape.h"

namespace penstock::data {

/// A file of which only the index is read at first; its payload goes straight into slots later. No descriptor stays
/// open in between: that the file is still the same one is checked. Immutable; thread-safe.
class LargeFile {
 public:
  /// Opens `path`, reads the index and closes.
  explicit LargeFile(std::string path, bool verify_checksums);

  /// Bytes of all files it is made of.
  std::uint64_t size() const noexcept;
  const Value& structure() const noexcept { return structure_; }
  std::span<const TensorEntry> entries() const noexcept { return entries_; }
  std::span<const StorageEntry> storages() const noexcept { return storages_; }

  struct Wanted {
    std::uint32_t entry = 0;
    Shape shape;      ///< the first elements of the entry along each dimension
    Strides strides;  ///< of the target, in elements
    std::byte* to = nullptr;
  };
  /// Reads what is wanted into place, asking the file for nothing else where it lies plain. A recorded CRC is checked
  /// when all of its record is wanted but for a few bytes (a header), by one tensor or by several. kChanged when it is
  /// no longer the file whose index was read.
  void read(std::span<const Wanted> wanted, Scratch& scratch) const;

 private:
  /// What tells one file from another, and from itself after it was written to.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  static Identity identify(const ByteSource& source);
  Archive reopen(Scratch& scratch) const;
  SourcePtr reopen_source(std::uint32_t source, Scratch& scratch) const;
  void read_plain(const Wanted& wanted, const ByteSource& source, Scratch& scratch) const;
  /// Whether its CRC can be checked as soon as it is read: it is all of its record.
  bool is_record(const Wanted& wanted) const;
  void check_crc(const Wanted& wanted) const;
  /// The CRCs of records that only several tensors make up, or one and a header.
  void check_shared(std::span<const Wanted> wanted, Scratch& scratch) const;

  std::string path_;
  bool verify_checksums_;
  std::vector<std::string> source_names_;
  std::vector<Identity> identities_;
  Value structure_;
  std::vector<TensorEntry> entries_;
  std::vector<StorageEntry> storages_;
};

}  // namespace penstock::data
