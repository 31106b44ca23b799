#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/files/file_layout.h"
#include "data/sample/held_file.h"
#include "data/sample/work.h"
#include "format/directory_cache.h"
#include "penstock/load.h"
#include "penstock/shape.h"

namespace penstock::data {

/// A file that is open, with its layout.
struct KnownFile {
  FileLayoutPtr layout;
  /// The layout is only assumed, because all files of this size had it so far. Whoever reads the file compares the
  /// frame.
  bool is_assumed = false;
  StorageLocations locations = {};
  std::vector<penstock::Source> others = {};  ///< files that it refers to
};

/// A tensor that is wanted of a file, or its first elements, and where they go.
struct WantedTensor {
  std::uint32_t entry = 0;
  Shape shape;      ///< the first elements of the entry along each dimension
  Strides strides;  ///< of the target, in elements
  std::byte* to = nullptr;
};

/// A file of a batch whose payload goes straight into slots, when these are known. It stays open until then while
/// descriptors are plenty (HeldFile); else it is opened again, and must still be the same. Thread-safe.
class LargeFile {
 public:
  LargeFile(const penstock::Source& source, KnownFile known, bool verify, const DescriptorLimit& limit);

  /// Reads the wanted bytes into place. Of plain data it reads little else: small gaps between them, and the whole
  /// record for its CRC where a tensor is wanted entirely, or all but a few bytes of it.
  /// kChanged when it is no longer the file that was opened, or is written to meanwhile. Confirms or refutes
  /// that it has the layout that it was assumed to have; when refuted, what was read means nothing.
  void read(std::span<const WantedTensor> wanted, const Work& work) const;

 private:
  friend class LargeRead;

  KnownFile known_;
  bool verify_;
  mutable std::atomic<bool> is_confirmed_ = false;
  std::vector<std::unique_ptr<HeldFile>> sources_;  ///< the file itself, then those that it refers to
};

}  // namespace penstock::data
