#pragma once

// ListObjectsV2 and ListMultipartUploads of Amazon's stores and those that speak like them.

#include "io/remote/list_page.h"

namespace penstock::io::remote {

extern const Listing kS3Listing;

}  // namespace penstock::io::remote
