#pragma once

// The directory_cache.h of formats in zip archives, `.pt` and `.npz`.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/directory_cache.h"
#include "format/zip/reader.h"

namespace penstock::format {

inline constexpr std::size_t kNoRecord = static_cast<std::size_t>(-1);

/// What a zip archive's index was made from, besides the index.
struct ZipParsed {
  Index index;                               ///< without sources
  std::vector<std::size_t> storage_records;  ///< of each storage, a position in the directory; kNoRecord: resident
  /// How many of its first bytes of each record decide what the others mean.
  std::vector<std::uint64_t> fixed_bytes;
  /// Whether that and the directory decide the whole index.
  bool reusable = true;
};

/// What the formats in zip archives differ in.
struct ZipRules {
  /// All records lie in one folder, whose name means nothing.
  bool has_folder = false;
  /// The CRC that holds for a record's bytes, or none.
  std::optional<std::uint32_t> (*recorded_crc)(const ZipEntry& entry) = nullptr;
  ZipParsed (*parse)(std::span<const std::byte> file, std::string_view path, std::span<const ZipEntry> entries,
                     const OpenOptions& options) = nullptr;
};

/// The index of a zip archive is that of an earlier one when the names, sizes and order of their records are the same,
/// and the bytes that say what the others mean. Then nothing is parsed but the directory, which is checked as strictly
/// as ever. Keeps some thousands of layouts.
class ZipLayouts : public DirectoryCache {
 public:
  explicit ZipLayouts(const ZipRules& rules);
  ~ZipLayouts() override;

  DirectoryLayoutPtr locate(std::span<const std::byte> file, std::string_view path, const OpenOptions& options,
                            std::vector<StorageLocation>& locations) override;
  DirectoryLayoutPtr find(std::span<const std::byte> file, std::string_view path, bool verify,
                          std::vector<StorageLocation>& locations) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::format
