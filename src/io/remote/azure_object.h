#pragma once

// Writing to Azure's stores.
//
//   small    PUT (Put Blob)
//   large    PUT ?comp=block (many at once) -> PUT ?comp=blocklist

#include "io/remote/object_requests.h"

namespace penstock::io::remote {

extern const Writing kAzureWriting;

}  // namespace penstock::io::remote
