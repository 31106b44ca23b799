#pragma once

// Which account of Azure az:// means, where it is served, and what the settings say proves who asks. One reader of
// those variables, and of the connection string, for requests, keys and the cache.

#include <string>
#include <string_view>

namespace penstock::io::remote {

struct AzureAccount {
  std::string name = {};
  std::string endpoint = {};  ///< without a '/' at its end: "https://NAME.blob.core.windows.net"
  std::string key = {};       ///< of the account, in Base64; empty where there is none
  std::string sas = {};       ///< a shared access signature, without '?'; empty where there is none
};

/// `endpoint`: of the account that a URL names (Location::endpoint), or empty. Where variables name another account,
/// their endpoint, key and signature are not for this one. kInvalidArgument where no account is named, and for a
/// connection string or an endpoint that is none.
AzureAccount azure_account(const std::string& endpoint = {});

/// What the connection string has under that name, in any case; empty where it has no such part.
std::string connection_part(std::string_view connection, std::string_view name);

}  // namespace penstock::io::remote
