#pragma once

// A `.pt` as torch wrote it before 1.6, and still does with _use_new_zipfile_serialization=False: pickles and payload
// back to back; and the tar archives of torch 0.1. docs/formats/pt.md describes both.

#include <cstddef>
#include <span>

#include "format/file_bytes.h"
#include "format/format.h"

namespace penstock::format {

/// Whether these first bytes (32 are enough) are the pickled magic number.
bool is_pt_legacy(std::span<const std::byte> head) noexcept;
/// Pickles are read, payload is not. Every storage is checked against the file's size and its own count of elements.
Index read_pt_legacy(const FileBytes& file, const OpenOptions& options = {});
/// Where the first ends of several that lie back to back, as a program writes them that saves into one open file.
std::uint64_t pt_legacy_end(const FileBytes& file);

/// Whether it is a tar archive (by the magic at byte 257) whose first member, behind extended headers, is one of
/// torch's.
bool is_pt_tar(const FileBytes& file);
Index read_pt_tar(const FileBytes& file, const OpenOptions& options = {});

}  // namespace penstock::format
