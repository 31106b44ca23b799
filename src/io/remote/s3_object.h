#pragma once

// Writing to Amazon's stores and those that speak like them. Google's differ in checksums and conditions.
//
//   small    PUT
//   large    POST ?uploads -> PUT ?partNumber (many at once) -> POST ?uploadId, or DELETE ?uploadId to take it back

#include <span>
#include <string>

#include "io/remote/object_requests.h"

namespace penstock::io::remote {

extern const Writing kS3Writing;
extern const Writing kGsWriting;

/// The ETag that stores give to an object of such parts; empty where theirs are no MD5.
std::string etag_of(std::span<const UploadedPart> parts);

}  // namespace penstock::io::remote
