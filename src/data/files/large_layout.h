#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/files/file_sample.h"
#include "data/files/sparse_image.h"
#include "data/sample/work.h"
#include "format/directory_cache.h"
#include "penstock/load.h"

namespace penstock::data {

/// What the index of a large file says, and how another file with the same index is recognised. Immutable; thread-safe.
struct LargeLayout {
  FileSample sample;
  std::vector<TensorEntry> entries;
  std::vector<StorageEntry> storages;

  // What another file must have to be of this layout. If the frame is empty, each file has to be parsed.
  std::uint64_t file_bytes = 0;
  std::vector<FileRange> frame;          ///< where the bytes lie that decide the layout, in order
  std::vector<std::byte> head;           ///< these bytes, for a format whose files are told by their start
  format::DirectoryLayoutPtr directory;  ///< or the directory in them, for a format that has one

  /// The size of an image of the file (SparseImage) that has room for the frame.
  std::uint64_t image_bytes() const noexcept { return directory ? file_bytes : head.size(); }
  /// Whether a file of `file_bytes` bytes is of this layout. `image` has the bytes of the frame in their places.
  /// `locations` becomes the place of each storage in this file; empty when they lie as in `storages`.
  bool matches(std::span<const std::byte> image, std::string_view path, bool verify,
               std::vector<format::StorageLocation>& locations) const;
  bool begins(std::span<const std::byte> image) const;
  /// Whether storages of a file with this directory lie where they do in the file that was parsed.
  bool lies_at(std::span<const format::StorageLocation> locations) const;
};
using LargeLayoutPtr = std::shared_ptr<const LargeLayout>;

/// Finds the layout of large files, and remembers those of the files before. One for each thread and dataset.
class LargeLayouts {
 public:
  struct Found {
    LargeLayoutPtr layout;
    /// The layout is only assumed, because all files of this size had it so far. Whoever reads the file
    /// compares the frame.
    bool assumed = false;
    std::vector<format::StorageLocation> locations = {};
    std::vector<penstock::Source> others = {};  ///< files that it refers to
  };
  /// The layout of `source`, a file of the system; an assumed one where work.guesses allows that. Throws Error.
  Found find(const penstock::Source& source, std::span<const std::string> keys, const Work& work);

 private:
  /// Layouts of files of one size, newest last. Null stands for files that have to be parsed.
  using Known = std::vector<LargeLayoutPtr>;

  LargeLayoutPtr recognise(const Known& known, const ByteSource& source, const Work& work,
                           std::vector<format::StorageLocation>& locations);
  format::DirectoryLayoutPtr find_directory(std::span<const std::byte> image, std::string_view path, bool verify,
                                            std::vector<format::StorageLocation>& locations) const;
  Found parse(const penstock::Source& source, std::span<const std::string> keys, const Work& work);
  /// Finds out which bytes decide the layout of a file that was just parsed; false when there is no such rule.
  bool learn(const Archive& archive, LargeLayout& layout, bool verify, Scratch& scratch);
  bool learn_head(const Archive& archive, LargeLayout& layout) const;
  bool learn_directory(const Archive& archive, LargeLayout& layout, bool verify, Scratch& scratch);
  void keep(std::uint64_t file_bytes, const LargeLayoutPtr& layout);

  std::unordered_map<std::uint64_t, Known> by_size_;
  std::size_t known_bytes_ = 0;
  std::map<const format::Format*, std::unique_ptr<format::DirectoryCache>> caches_;
};

}  // namespace penstock::data
