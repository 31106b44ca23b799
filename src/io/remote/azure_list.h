#pragma once

// "List Blobs" of Azure's stores.

#include "io/remote/list_page.h"

namespace penstock::io::remote {

extern const Listing kAzureListing;

}  // namespace penstock::io::remote
