#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/collate/batch_plan.h"
#include "data/sample/scratch.h"
#include "data/transform/conversion.h"

namespace penstock::data {

class SampleFile;

/// Runs the conversions of samples into a batch's block: what mover.h is for tensors that stay as they are. Sources in
/// memory are converted where they lie; what is read from a file is read into memory of the thread first. One batch.
class Converter {
 public:
  Converter(const Located& located, std::byte* block, Scratch& scratch);

  /// Converts those samples of the placement that lie in memory or in a file of an array. Files are noted in
  /// scratch.sample_files, to be looked at behind all copies. Throws SampleError; kCancelled.
  void convert(const Placement& placement);
  /// Memory for so many bytes that are about to be read, until release_staging.
  std::byte* take_staging(std::uint64_t bytes);
  void release_staging() noexcept;
  /// Converts a sample that was read to `from`.
  void finish(const Placement& placement, std::size_t position, const std::byte* from);

 private:
  struct Item {
    const Conversion* conversion = nullptr;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::uint64_t key = 0;
    std::size_t position = 0;
  };
  class Guarded;
  struct Staging;

  const Source& source(const Placement& placement, std::size_t position) const {
    return located_.samples[position].sources[placement.tensor];
  }
  /// Whether sample `next` can be converted together with those from `first` on.
  bool goes_on(const Placement& placement, std::size_t first, std::size_t next) const;
  Item item(const Placement& placement, std::size_t position, const std::byte* from);
  void convert_memory(const Placement& placement, std::size_t first, std::size_t last);
  /// Brings the items into memory that stays, because what random numbers decide may not be abandoned in its course.
  void copy_first(const SampleFile& file);
  void convert_guarded(std::span<const Item> items, const SampleFile& file);
  void convert_read(const Placement& placement, std::size_t first, std::size_t last);
  void run(const Item& item);
  /// Where the batch pads its samples: the result goes from beside it into its slot.
  void settle(const Placement& placement, const Item& item);
  std::byte* between(const Conversion& conversion);

  const Located& located_;
  std::byte* block_;
  Scratch& scratch_;
  Staging& staging_;
  std::vector<Item>& items_;
};

}  // namespace penstock::data
