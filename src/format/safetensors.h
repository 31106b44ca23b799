#pragma once

// What the safetensors format and its sharded index share.

#include <cstdint>
#include <string_view>

#include "format/format.h"
#include "format/safetensors_header.h"

namespace penstock::format {

struct SafetensorsFile {
  SafetensorsHeader header;
  std::uint64_t data_start = 0;  ///< byte of the file that offsets count from
};

/// Reads and checks the header of one file. kTruncated, kCorrupt, kLimit.
SafetensorsFile read_safetensors_file(const ByteSource& source);

/// Adds the entry and the storage of one tensor of file number `source`. Types below a byte get the shape of our packed
/// elements; one that Penstock does not know becomes opaque, with its shape where that divides its bytes, else flat.
void add_safetensors_tensor(const SafetensorsTensor& tensor, std::uint32_t source, std::uint64_t data_start,
                            Index& index);

/// Writes `value` as the reference does, byte for byte: a dict of tensors (nested ones are joined with '.') or one
/// tensor, called "tensor". kUnsupported names the first thing the format cannot hold, or two tensors that overlap in
/// memory; kInvalidArgument for a name that is not UTF-8 or is taken.
void write_safetensors(const Value& value, io::ByteSink& sink, const SaveOptions& options, std::string_view path);

}  // namespace penstock::format
