#pragma once

// Where keys for Amazon's stores come from, in the order of Amazon's own tools. store.h signs with them; fetch.cpp asks
// for new ones when a store refused the old.

#include <string>

#include "io/remote/signature.h"

namespace penstock::io::remote {

/// Keys for Amazon's stores and those that speak like them: environment, shared profile, web identity, container,
/// instance metadata; none where there are none. Those that end are fetched anew before they do. kPermission, kIo when
/// a place that should have them gives none. May wait for a service. Where there are none, `why_none` says where they
/// were looked for, as "there are ...". Thread-safe.
Keys aws_keys(std::string& why_none);
/// After a store refused them: those that a service gave are forgotten. Whether others may come.
bool forget_aws_keys();

}  // namespace penstock::io::remote
