#pragma once

/// The version of these headers, for programs that compile with several. PENSTOCK_VERSION_NUMBERS is the only place
/// that says it: CMake, Python's packages, the command and the site read that line, and script/release writes it.

#include "penstock/standard.h"

#define PENSTOCK_VERSION_NUMBERS(use) use(0, 1, 0)

#define PENSTOCK_VERSION_AS_TEXT(major, minor, patch) #major "." #minor "." #patch
#define PENSTOCK_VERSION_AS_NUMBER(major, minor, patch) (major * 10000 + minor * 100 + patch)
#define PENSTOCK_VERSION_FIRST(major, minor, patch) major
#define PENSTOCK_VERSION_SECOND(major, minor, patch) minor
#define PENSTOCK_VERSION_THIRD(major, minor, patch) patch

/// "0.1.0", say; PENSTOCK_VERSION is 10,000 times the major number, 100 times the minor one and the patch together.
#define PENSTOCK_VERSION_STRING PENSTOCK_VERSION_NUMBERS(PENSTOCK_VERSION_AS_TEXT)
#define PENSTOCK_VERSION_MAJOR PENSTOCK_VERSION_NUMBERS(PENSTOCK_VERSION_FIRST)
#define PENSTOCK_VERSION_MINOR PENSTOCK_VERSION_NUMBERS(PENSTOCK_VERSION_SECOND)
#define PENSTOCK_VERSION_PATCH PENSTOCK_VERSION_NUMBERS(PENSTOCK_VERSION_THIRD)
#define PENSTOCK_VERSION PENSTOCK_VERSION_NUMBERS(PENSTOCK_VERSION_AS_NUMBER)
