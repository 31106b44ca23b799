#pragma once

// The one place where a file is recognised or parsed, whatever its size and whoever opened it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/files/file_layout.h"
#include "data/files/large_file.h"
#include "data/files/split_reader.h"
#include "data/files/whole_file.h"
#include "data/sample/sample.h"
#include "data/sample/work.h"
#include "format/directory_cache.h"
#include "penstock/load.h"

namespace penstock::data {

/// Makes samples of files. Remembers the layouts of the files before, so that a file written by the same program is
/// recognised and not parsed. One for each thread and dataset.
class KnownLayouts : public Scratch::State {
 public:
  /// The sample in a file that is in memory, when its layout is known and all is well. Nothing otherwise: then `parse`
  /// reads it or says what is wrong. A file of which the end is missing is never recognised. Payloads point into the
  /// file's bytes and into what the Scratch keeps. Recorded CRCs are checked with CallContext::verify. A file in two
  /// parts is recognised when its other part is just the bytes of one storage; what else it has is copied.
  std::optional<Sample> recognise(const WholeFile& file, const Work& work);
  /// The same for any file that is not in two parts, which is remembered. Throws Error.
  Sample parse(const WholeFile& file, const Work& work);
  /// Both, for a file that is known to be complete.
  Sample sample(const WholeFile& file, const Work& work);
  /// The sample in a file that is read when its batch has a block (LargeFile). Its layout may be an assumed one where
  /// work.guesses allows that. With CallContext::headers_only its payloads are nowhere. Throws Error.
  Sample sample(const penstock::Source& file, std::span<const std::string> keys, const DescriptorLimit& limit,
                const Work& work);
  /// Where the bytes that Guesses::expected awaits lay in the last file, when they are all of a storage; else empty.
  const SplitReader::Split& split() const noexcept { return split_; }

 private:
  /// The layouts of files of one size that their frames tell, newest last.
  struct OfOneSize {
    std::vector<FileLayoutPtr> layouts;
    bool has_others = false;  ///< there are files of this size that have to be parsed
  };

  // Files in memory.
  const FileLayout* find_by_start(const WholeFile& file) const;
  const FileLayout* find_by_directory(const WholeFile& file, const Work& work);
  bool expect(const format::Format& format);
  void note_split(const FileLayout& layout, const WholeFile& file, const ExpectedSlots& expected);

  // Files that are read later.
  KnownFile find(const penstock::Source& source, std::span<const std::string> keys, const Work& work);
  FileLayoutPtr recognise(const OfOneSize& known, const ByteSource& source, const Work& work,
                          StorageLocations& locations);
  KnownFile parse(const penstock::Source& source, std::span<const std::string> keys, const Work& work);

  /// Finds out which bytes tell the layout of a file that was just parsed; false when there is no such rule.
  bool learn_start(const Archive& archive, FileLayout& layout) const;
  bool learn_directory(const Archive& archive, FileLayout& layout, const Work& work);
  format::DirectoryCache& directories_of(const format::Format& format);
  void keep(std::shared_ptr<FileLayout> layout, bool is_learnt, Scratch& scratch);
  void make_room(const FileLayout& layout, Scratch& scratch);

  std::unordered_map<std::uint64_t, OfOneSize> by_size_;
  /// Of files in memory, which have one layout wherever its storages lie.
  std::unordered_map<const format::DirectoryLayout*, FileLayoutPtr> by_directory_;
  std::size_t known_ = 0;
  std::size_t known_bytes_ = 0;
  std::map<const format::Format*, std::unique_ptr<format::DirectoryCache>> caches_;

  const format::Format* expected_ = nullptr;       ///< of the last file in memory that was parsed
  format::DirectoryCache* directories_ = nullptr;  ///< of that format; null where it has none
  std::array<std::byte, 4> magic_{};               ///< the first bytes of that file
  SplitReader::Split split_;
  StorageLocations locations_;  ///< of the file at hand, when it has a directory
};

}  // namespace penstock::data
