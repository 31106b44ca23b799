#pragma once

// The row of az:// in the table of stores (stores.cpp).

#include "io/remote/store.h"

namespace penstock::io::remote {

extern const Store kAzureStore;

}  // namespace penstock::io::remote
