#pragma once

// Where keys for Amazon's stores come from, in the order of Amazon's own tools. store.h signs with them; fetch.cpp asks
// for new ones when a store refused the old.

#include <string>

#include "io/remote/signature.h"

namespace penstock::io::remote {

struct FoundKeys {
  Keys keys = {};
  /// Without keys where they were looked for, as "there are ..."; with keys what of the profile they leave out.
  std::string remark = {};
};

/// Keys for Amazon's stores and those that speak like them: environment, shared profile, web identity, container,
/// instance metadata; none where there are none. Those that end are fetched anew before they do. kPermission, kIo when
/// a place that should have them gives none. May wait for a service. Thread-safe.
FoundKeys aws_keys();
/// Those that two variables hold. kPermission where one of them is set alone.
Keys keys_of_variables(const char* id, const char* secret);
/// After a store refused them: those that a service gave are forgotten. Whether others may come.
bool forget_aws_keys();

}  // namespace penstock::io::remote
