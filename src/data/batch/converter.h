#pragma once

// Transforms on the way into a batch (data/transform): from where the payload lies into its slot.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/collate/batch_plan.h"
#include "data/sample/copied_files.h"
#include "data/sample/file_runs.h"
#include "data/sample/work.h"
#include "data/transform/conversion.h"

namespace penstock::data {

/// Converts samples into the block of one batch; mover.h moves the tensors that need no conversion. Payload in memory
/// is converted where it lies. Payload in a file is read into staging memory of the thread first.
class Converter {
 public:
  /// `files`: where files are noted that `convert` reads.
  Converter(const Fetched& fetched, std::byte* block, CopiedFiles& files, const CallContext& call, Scratch& scratch,
            Figures& figures);

  /// Converts the samples that lie in files whose reads are asked for at once: those of all placements together, so
  /// that bytes which several tensors are made of, such as x and y of a window, are read once. As far as staging memory
  /// shall go at a time. Throws as `convert`.
  void convert_at_once(std::span<const Placement> placements);
  /// Converts all other samples of the placement that lie in memory, in a mapping or in a file; those of large files
  /// go through `finish`. Notes the files, because the mover checks after all copies that they did not
  /// change. Throws SampleError; kCancelled.
  void convert(const Placement& placement);
  /// Memory to read `bytes` bytes into, valid until release_staging.
  std::byte* take_staging(std::uint64_t bytes);
  void release_staging() noexcept;
  /// Converts a sample whose payload was read to `from`.
  void finish(const Placement& placement, std::size_t position, const std::byte* from);

 private:
  struct Item {
    const Conversion* conversion = nullptr;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t position = 0;
    Conversion::Drawn drawn = {};
  };
  class Guarded;
  struct Staging;
  struct Staged;

  const Payload& payload(const Placement& placement, std::size_t position) const {
    return fetched_.samples[position].payloads[placement.tensor];
  }
  /// Whether sample `next` can be converted in one go with the samples from `first` on.
  bool goes_on(const Placement& placement, std::size_t first, std::size_t next) const;
  Item item(const Placement& placement, std::size_t position, const std::byte* from);
  void convert_memory(const Placement& placement, std::size_t first, std::size_t last);
  void convert_guarded(std::span<const Item> items, const HeldFile& file);
  void convert_staged(std::span<const Staged> staged);
  void convert_read(const Placement& placement, std::size_t first, std::size_t last, const InFile& begin);
  void run(const Item& item);
  /// A result that is padded, or lies in another order than its slot, was made in scratch memory: copies what is kept
  /// of it into its slot.
  void settle(const Placement& placement, const Item& item);
  std::byte* between(const Conversion& conversion);

  const Fetched& fetched_;
  std::byte* block_;
  CopiedFiles& files_;
  const CallContext& call_;
  Scratch& scratch_;
  Figures& figures_;
  Staging& staging_;
  std::vector<Item>& items_;
};

}  // namespace penstock::data
