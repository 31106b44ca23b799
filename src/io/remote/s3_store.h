#pragma once

// The rows of s3:// and gs:// in the table of stores (stores.cpp).

#include "io/remote/store.h"

namespace penstock::io::remote {

extern const Store kS3Store;
extern const Store kGsStore;

}  // namespace penstock::io::remote
