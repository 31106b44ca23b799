#pragma once

/// The version of these headers, for programs that compile with several.

#include "penstock/standard.h"

/// "0.1.0"; PENSTOCK_VERSION is 10,000 times the major number, 100 times the minor one and the patch together.
#define PENSTOCK_VERSION_STRING "0.1.0"
#define PENSTOCK_VERSION_MAJOR 0
#define PENSTOCK_VERSION_MINOR 1
#define PENSTOCK_VERSION_PATCH 0
#define PENSTOCK_VERSION (PENSTOCK_VERSION_MAJOR * 10000 + PENSTOCK_VERSION_MINOR * 100 + PENSTOCK_VERSION_PATCH)
