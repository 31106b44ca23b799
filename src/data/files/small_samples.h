#pragma once

// Samples of small files, which are in memory before anyone knows what they are: a file that agrees with an earlier one
// takes its layout from it, and any other one is parsed.

#include <array>
#include <cstddef>
#include <optional>

#include "data/files/layout_store.h"
#include "data/files/split_reader.h"
#include "data/files/whole_file.h"
#include "data/sample/sample.h"
#include "data/sample/work.h"
#include "format/directory_cache.h"

namespace penstock::data {

class SmallSamples {
 public:
  explicit SmallSamples(LayoutStore& store) : store_(store) {}

  /// The sample in a file that is in memory, when its layout is known and all is well. Nothing otherwise: then `parse`
  /// reads it or says what is wrong. A file of which the end is missing is never recognised. Payloads point into the
  /// file's bytes and into what the Scratch keeps. Recorded CRCs are checked with CallContext::verify. A file in two
  /// parts is recognised when its other part is just the bytes of one storage; what else it has is copied.
  std::optional<Sample> recognise(const WholeFile& file, const Work& work);
  /// The same for any file that is not in two parts, which is remembered. Throws Error.
  Sample parse(const WholeFile& file, const Work& work);
  /// Both, for a file that is known to be complete.
  Sample sample(const WholeFile& file, const Work& work);
  /// Where the bytes that the batch awaits lay in the last file, when they are all of a storage; else empty.
  const SplitReader::Split& split() const noexcept { return split_; }

 private:
  const FileLayout* find_by_start(const WholeFile& file) const;
  const FileLayout* find_by_directory(const WholeFile& file, const Work& work);
  bool expect(const format::Format& format);
  void note_split(const FileLayout& layout, const WholeFile& file, const ExpectedSlots& expected);

  LayoutStore& store_;
  const format::Format* expected_ = nullptr;       ///< of the last file that was parsed
  format::DirectoryCache* directories_ = nullptr;  ///< of that format; null where it has none
  std::array<std::byte, 4> magic_{};               ///< the first bytes of that file
  SplitReader::Split split_;
  StorageLocations locations_;  ///< of the file at hand, when it has a directory
};

}  // namespace penstock::data
