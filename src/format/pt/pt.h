#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/format.h"
#include "penstock/entry.h"

namespace penstock::format {

/// Where the bytes of one storage lie in a particular file.
struct StorageLocation {
  std::uint64_t offset = 0;
  std::optional<std::uint32_t> crc32 = {};
};

/// The index of a `.pt` (zip or legacy) whose bytes all lie in memory; reads nothing else. `path` is for errors. The
/// result's `sources` is empty: source 0 is `file`. Nothing in the result refers to `file`'s memory.
Index read_pt_index(std::span<const std::byte> file, std::string_view path, const OpenOptions& options = {});

/// Reads many files that one program wrote: the index of a file is that of an earlier one when their `data.pkl` and the
/// names, sizes and order of their records are the same. Then nothing is parsed but the zip directory, which is checked
/// as strictly as ever, and nothing is allocated. Keeps some thousands of layouts. Not thread-safe: one for each
/// thread.
class PtLayouts {
 public:
  PtLayouts();
  ~PtLayouts();
  PtLayouts(PtLayouts&&) noexcept;
  PtLayouts& operator=(PtLayouts&&) noexcept;

  /// The index of `file` (as read_pt_index gives it), shared with the earlier file when it matches: the same pointer
  /// means that entries, structure, and sizes of storages are equal. `locations` becomes one for each storage of the
  /// index and is what holds for this file: offset and crc32 in the index itself may be those of another file. Storages
  /// with `resident` bytes are equal too; their location means nothing. Does not read payload, so that recorded CRCs of
  /// storages are the caller's to check.
  std::shared_ptr<const Index> locate(std::span<const std::byte> file, std::string_view path,
                                      const OpenOptions& options, std::vector<StorageLocation>& locations);
  /// The same for a layout that is known, null for another one: no record but those that decide the layout is looked
  /// at, so that the bytes of storages need not be there.
  std::shared_ptr<const Index> find(std::span<const std::byte> file, std::string_view path, bool verify,
                                    std::vector<StorageLocation>& locations);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::format
