#pragma once

// A part of an upload, as whoever sends it hands it to whoever completes the object.

#include <string>

namespace penstock::io::remote {

/// A part of a large object that the store has.
struct UploadedPart {
  std::string etag = {};   ///< what the store calls it; of Azure's, the name that it was sent by
  std::string crc32 = {};  ///< as the header has it; empty where the store compares another checksum
};
}  // namespace penstock::io::remote
