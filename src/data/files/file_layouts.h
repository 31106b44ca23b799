#pragma once

// Small files, which are read whole before anyone knows what they are. Large files: large_layout.h.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/files/file_sample.h"
#include "data/files/split_reader.h"
#include "data/sample/layout.h"
#include "data/sample/sample.h"
#include "data/sample/work.h"
#include "format/directory_cache.h"
#include "penstock/load.h"

namespace penstock::data {

/// Finds the sample in a file whose bytes all lie in memory. Remembers the layouts of the files before, so that a file
/// written by the same program is recognised and not parsed. By what, the row of its format says: by the first bytes
/// and the size of the file (Format::fingerprint), or by a directory (Format::directory_cache). One for each thread and
/// dataset.
class FileLayouts : public Scratch::State {
 public:
  /// A file at hand.
  struct File {
    std::span<const std::byte> bytes;
    const std::string& path;
    std::span<const std::string> keys;
    /// Where the bytes of `split` lie, which are zeros in `bytes`; null when `bytes` has all.
    const std::byte* part = nullptr;
    SplitReader::Split split = {};
  };

  /// The sample in `file` when its layout is known and all is well; nothing otherwise: then `parse` reads it or says
  /// what is wrong. A file of which the end is missing is never recognised. Payloads point into the file's bytes and
  /// into what the Scratch keeps. Recorded CRCs are checked with CallContext::verify. A file in two parts is
  /// recognised when its other part is just the bytes of one storage; what else it has is copied.
  std::optional<Sample> recognise(const File& file, const Work& work);
  /// The same for any file that is not in two parts, which is remembered. Throws Error.
  Sample parse(const File& file, const Work& work);
  /// Where the bytes that Guesses::expected awaits lay in the last file, when they are all of a storage; else empty.
  const SplitReader::Split& split() const noexcept { return split_; }

 private:
  /// Where one tensor of a sample lies.
  struct Place {
    std::size_t storage = 0;
    std::uint64_t offset = 0;  ///< in the storage
    std::uint64_t nbytes = 0;
    std::uint64_t extent = 0;  ///< bytes from its first element to the end of its last: fewer where elements share them
  };
  struct Known {
    LayoutPtr layout;  ///< null: files of this layout have to be parsed
    std::vector<Place> places;
    std::vector<StorageEntry> storages;
    format::DirectoryLayoutPtr directory;  ///< of a file that has one
    std::vector<std::byte> prefix;         ///< of other files: what decides the layout, with the size
  };
  using KnownPtr = std::shared_ptr<Known>;

  const Known* find_prefix(const File& file) const;
  const Known* find_directory(const File& file, const Work& work);
  /// Takes the files that follow for ones of this format, until one is parsed that is not. Whether it has directories
  /// to be looked up and another format was expected before.
  bool expect(const format::Format& format);
  Sample parse_any(const File& file, const Work& work);
  const Known* learn_directory(const format::DirectoryLayoutPtr& directory, const File& file, Scratch& scratch);
  void learn_prefix(std::size_t bytes, KnownPtr known, const File& file, Scratch& scratch);
  static Place place_of(const TensorEntry& entry);
  Sample place(const Known& known, const File& file, const Work& work);
  std::uint64_t offset_of(const Known& known, std::size_t storage) const;
  bool has_storage(const Known& known, std::size_t begin, std::size_t bytes) const;
  /// Finds where the tensor that `expected` awaits lies in files like this one.
  void note_split(const Known& known, const File& file, const ExpectedSlots& expected);
  /// The first element of a tensor; null for one without elements.
  const std::byte* find(const Known& known, const Place& at, const File& file, bool verify, Arena& arena);
  void make_room(std::size_t bytes, Scratch& scratch);

  const format::Format* expected_ = nullptr;       ///< of the last file that was parsed
  format::DirectoryCache* directories_ = nullptr;  ///< of that format; null where it has none
  std::map<const format::Format*, std::unique_ptr<format::DirectoryCache>> caches_;
  std::array<std::byte, 4> magic_{};  ///< the first bytes of the last file that was parsed
  SplitReader::Split split_;
  std::vector<format::StorageLocation> locations_;  ///< of the file at hand, when it has a directory
  std::vector<bool> verified_;                      ///< which storages of the file at hand
  std::unordered_map<const format::DirectoryLayout*, KnownPtr> by_directory_;
  std::unordered_multimap<std::uint64_t, KnownPtr> by_size_;
  std::size_t known_bytes_ = 0;
};

}  // namespace penstock::data
