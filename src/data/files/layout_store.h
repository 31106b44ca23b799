#pragma once

// What the files before have told about the files to come: their layouts, by size, by start and by directory. Samples
// of small files and of large ones (small_samples.h, large_samples.h) are found by it, each in its own way.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/files/file_layout.h"
#include "data/sample/scratch.h"
#include "format/directory_cache.h"
#include "format/format.h"
#include "penstock/load.h"

namespace penstock::data {

/// Remembers a bounded number of layouts; when there are more, all are forgotten. One thread at a time.
class LayoutStore {
 public:
  /// The layouts of files of one size that their frames tell, newest last.
  struct OfOneSize {
    std::vector<FileLayoutPtr> layouts;
    bool has_others = false;  ///< there are files of this size that have to be parsed
  };

  /// The files to come are members of an archive, of which not every format can be one.
  void expect_members() noexcept { has_members_ = true; }
  /// What a file that was parsed is; the errors of format::require_tensors_in.
  const format::Format& format_of(const Archive& archive) const;

  /// Null where no file of this size was seen.
  const OfOneSize* of_size(std::uint64_t bytes) const;
  void keep(std::shared_ptr<FileLayout> layout, bool is_learnt, Scratch& scratch);

  /// The layout of small files with this directory, wherever their storages lie; null for a new one.
  const FileLayout* with_directory(const format::DirectoryLayout* directory) const;
  const FileLayout* keep_by_directory(std::shared_ptr<FileLayout> layout, Scratch& scratch);

  /// Reads the directories of one format; made when it is first asked for.
  format::DirectoryCache& directories_of(const format::Format& format);
  const std::map<const format::Format*, std::unique_ptr<format::DirectoryCache>>& directories() const noexcept {
    return directories_;
  }

 private:
  void make_room(const FileLayout& layout, Scratch& scratch);

  std::unordered_map<std::uint64_t, OfOneSize> by_size_;
  std::unordered_map<const format::DirectoryLayout*, FileLayoutPtr> by_directory_;
  bool has_members_ = false;
  std::size_t known_ = 0;
  std::size_t known_bytes_ = 0;
  std::map<const format::Format*, std::unique_ptr<format::DirectoryCache>> directories_;
};

/// The layout of the sample in a file that was parsed.
std::shared_ptr<FileLayout> layout_of(const Archive& archive, std::span<const std::string> keys, Scratch& scratch);
/// Finds out which bytes at the start of a parsed file tell its layout; false when there is no such rule.
bool learn_start(const Archive& archive, FileLayout& layout);

/// A frame that is larger takes longer to read and compare than to parse.
inline constexpr std::uint64_t kMostFrame = std::uint64_t{1} << 20;

}  // namespace penstock::data
