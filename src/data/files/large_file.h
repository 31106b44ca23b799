#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/files/large_layout.h"
#include "data/sample/sample_file.h"
#include "data/sample/work.h"
#include "format/directory_cache.h"
#include "penstock/load.h"
#include "penstock/shape.h"

namespace penstock::data {

/// A file of a batch whose payload goes straight into slots, when these are known. It stays open until then while
/// descriptors are plenty (SampleFile); else it is opened again, and must still be the same. Thread-safe.
class LargeFile {
 public:
  LargeFile(const penstock::Source& source, LargeLayouts::Found found, bool verify, const DescriptorLimit& limit);

  const FileSample& sample() const noexcept { return layout_->sample; }

  struct Wanted {
    std::uint32_t entry = 0;
    Shape shape;      ///< the first elements of the entry along each dimension
    Strides strides;  ///< of the target, in elements
    std::byte* to = nullptr;
  };
  /// Reads the wanted bytes into place. Of plain data it reads nothing else, with one exception: the whole record is
  /// read for its CRC where a tensor is wanted entirely, or all but a few bytes of it.
  /// kChanged when it is no longer the file that was opened, or is written to meanwhile. Confirms or refutes
  /// that it has the layout that it was assumed to have; when refuted, what was read means nothing.
  void read(std::span<const Wanted> wanted, const Work& work) const;

 private:
  friend class LargeRead;

  bool verify_;
  bool assumed_;
  mutable std::atomic<bool> is_confirmed_ = false;
  LargeLayoutPtr layout_;
  std::vector<format::StorageLocation> locations_;    ///< where it is of a layout that another file was parsed for
  std::vector<std::unique_ptr<SampleFile>> sources_;  ///< the file itself, then those that it refers to
};

}  // namespace penstock::data
