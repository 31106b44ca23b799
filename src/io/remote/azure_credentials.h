#pragma once

// Where tokens for Azure's stores come from, where no key and no signature is set: an application of Entra, the
// workload identity of a pod, the managed identity of a container or machine. azure_store.cpp sends them.

#include <string>

namespace penstock::io::remote {

/// A bearer token that is good for some minutes at least; empty where nobody gives one, and `why_none` then says where
/// it was looked for, as "there is ...". kPermission, kIo when a service that should give one does not. May wait for a
/// service. Thread-safe.
std::string azure_token(std::string& why_none);
/// After a store refused it. Whether another may come.
bool forget_azure_token();

}  // namespace penstock::io::remote
