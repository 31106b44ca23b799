#pragma once

// What one file tells about those like it: where the tensors of its sample lie, and by which bytes another file of this
// layout is recognised. KnownLayouts makes and remembers them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "data/files/file_sample.h"
#include "data/files/sparse_image.h"
#include "data/sample/layout.h"
#include "format/directory_cache.h"
#include "penstock/load.h"

namespace penstock::data {

/// Where each storage of a file lies, when its layout is that of another file; empty where they lie as in that one.
using StorageLocations = std::vector<format::StorageLocation>;

/// Where one tensor of a sample lies.
struct TensorBytes {
  std::size_t storage = 0;
  std::uint64_t offset = 0;  ///< in the storage
  std::uint64_t nbytes = 0;
  std::uint64_t extent = 0;  ///< bytes from its first element to the end of its last: fewer where elements share them
};

/// The layout of a file. Immutable when it is made; thread-safe.
struct FileLayout {
  FileLayout(FileSample sample_in_it, std::span<const TensorEntry> its_entries,
             std::span<const StorageEntry> its_storages);

  FileSample sample;
  std::vector<TensorEntry> entries;
  std::vector<StorageEntry> storages;
  std::vector<TensorBytes> tensors;  ///< of the sample
  bool is_plain = true;              ///< the bytes of all tensors of the sample are their values
  bool has_gaps = false;             ///< elements of one of them do not follow each other

  // What another file must have to be of this layout: the size, and the bytes of the frame. If there is no frame, what
  // decides is a directory that is looked up in all of the file's bytes.
  std::uint64_t file_bytes = 0;
  std::vector<FileRange> frame;          ///< where the bytes lie that decide the layout, in order
  std::vector<std::byte> head;           ///< these bytes, for a format whose files are told by their start
  format::DirectoryLayoutPtr directory;  ///< or the directory in them, for a format that has one

  /// Where storage `number` lies in a file whose storages have `locations`, and its CRC.
  format::StorageLocation location(std::size_t number, std::span<const format::StorageLocation> locations) const {
    if (!locations.empty()) return locations[number];
    return {storages[number].offset, storages[number].crc32};
  }
  /// Whether a storage of that file is just these bytes.
  bool has_storage(std::uint64_t begin, std::uint64_t bytes,
                   std::span<const format::StorageLocation> locations) const noexcept;
  /// The size of an image of the file (SparseImage) that has room for the frame.
  std::uint64_t image_bytes() const noexcept { return directory ? file_bytes : head.size(); }
  /// Whether a file of `file_bytes` bytes is of this layout. `image` has the bytes of the frame in their places.
  /// `locations` becomes those of this file.
  bool matches(std::span<const std::byte> image, std::string_view path, bool verify, StorageLocations& locations) const;
  /// Whether the layout is told by the start of files, and these bytes are that start. There are at least as many.
  bool begins(std::span<const std::byte> bytes) const noexcept;
  /// Whether storages of a file with this directory lie where they do in the file that was parsed.
  bool lies_at(std::span<const format::StorageLocation> locations) const noexcept;
};
using FileLayoutPtr = std::shared_ptr<const FileLayout>;

/// All bytes of the file but those of its tensors: of each storage, those before its first tensor are no payload.
std::vector<FileRange> frame_around_tensors(const FileLayout& layout);

}  // namespace penstock::data
