// A variable goes before what the connection string says. A key or a signature in the string is for its own account and
// endpoint: where a variable names another, it is not used.

#include "io/remote/azure_account.h"

#include <algorithm>

#include "core/ascii.h"
#include "core/format.h"
#include "core/text.h"
#include "io/remote/location.h"
#include "io/remote/settings.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

// The emulator's account (Azurite), which its documentation names: the same everywhere, and no secret.
constexpr std::string_view kEmulator =
    "AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"
    "K1SZFPTOtr/KBHBeksoGMGw==;BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1";

bool is_same_word(std::string_view a, std::string_view b) { return core::lower(a) == core::lower(b); }

constexpr std::string_view kEndpoint = "AZURE_STORAGE_BLOB_ENDPOINT, or the one of the connection string,";

/// "http://127.0.0.1:10000/NAME", as the emulator has it, or "https://NAME.blob...".
std::string name_in(const std::string& endpoint) {
  if (endpoint_of(endpoint, kEndpoint).empty()) return {};
  const std::string_view path =
      std::string_view(endpoint).substr(std::min(endpoint.size(), endpoint.find('/', endpoint.find("://") + 3)));
  if (path.size() > 1) return std::string(path.substr(path.rfind('/') + 1));
  const std::string_view host = host_of(endpoint);
  return std::string(host.substr(0, host.find('.')));
}

std::string endpoint_in(std::string_view connection, const std::string& name) {
  if (std::string given = connection_part(connection, "BlobEndpoint"); !given.empty())
    return endpoint_of(given, kEndpoint);
  if (name.empty()) return {};
  const std::string scheme = connection_part(connection, "DefaultEndpointsProtocol");
  const std::string suffix = connection_part(connection, "EndpointSuffix");
  return core::format("{}://{}.blob.{}", scheme.empty() ? "https" : scheme, name,
                      suffix.empty() ? "core.windows.net" : suffix);
}

/// The string, or nothing where another account is named beside it.
std::string connection_for(const std::string& name) {
  std::string connection = variable("AZURE_STORAGE_CONNECTION_STRING");
  if (connection.empty()) return {};
  if (is_same_word(connection_part(connection, "UseDevelopmentStorage"), "true")) connection = kEmulator;
  std::string own = connection_part(connection, "AccountName");
  if (own.empty()) own = name_in(endpoint_in(connection, own));
  if (own.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "AZURE_STORAGE_CONNECTION_STRING names no account; copy it from the account's access keys, as "
                "DefaultEndpointsProtocol=https;AccountName=...;AccountKey=...");
  }
  return name.empty() || name == own ? connection : std::string();
}

/// That of the variables; `of_url` where they name none.
AzureAccount account_of_variables(const AzureAccount& of_url) {
  AzureAccount out{.name = first_variable({"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"}),
                   .endpoint = endpoint_of(variable("AZURE_STORAGE_BLOB_ENDPOINT"), kEndpoint),
                   .key = first_variable({"AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"}),
                   .sas = variable("AZURE_STORAGE_SAS_TOKEN")};
  const std::string connection = connection_for(out.name);
  if (!connection.empty()) {
    if (out.name.empty()) out.name = connection_part(connection, "AccountName");
    const bool has_own = !out.key.empty() || !out.sas.empty() || !variable("AZURE_STORAGE_TOKEN").empty();
    if (!has_own && out.endpoint.empty()) {
      out.key = connection_part(connection, "AccountKey");
      out.sas = connection_part(connection, "SharedAccessSignature");
    }
    if (out.endpoint.empty()) out.endpoint = endpoint_in(connection, out.name);
  }
  if (out.name.empty() && !out.endpoint.empty()) out.name = name_in(out.endpoint);
  if (out.name.empty()) out.name = of_url.name;
  if (!is_azure_account(out.name)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        out.name.empty()
            ? "no account of Azure is named; name it in AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING"
            : core::format("{} is no name of an account of Azure, which AZURE_STORAGE_ACCOUNT sets; names have "
                           "letters in lower case and digits",
                           core::quoted(out.name)));
  }
  if (out.endpoint.empty()) out.endpoint = out.name == of_url.name ? of_url.endpoint : endpoint_in({}, out.name);
  static_cast<void>(endpoint_of(out.endpoint, kEndpoint));
  if (out.sas.starts_with('?')) out.sas.erase(0, 1);
  return out;
}

}  // namespace

std::string connection_part(std::string_view connection, std::string_view name) {
  while (!connection.empty()) {
    const std::string_view part = connection.substr(0, connection.find(';'));
    connection.remove_prefix(std::min(connection.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == part.npos || !is_same_word(core::trimmed(part.substr(0, equals)), name)) continue;
    return std::string(core::trimmed(part.substr(equals + 1)));
  }
  return {};
}

AzureAccount azure_account(const std::string& endpoint) {
  const AzureAccount of_url{.name = name_in(endpoint), .endpoint = endpoint};
  AzureAccount own = account_of_variables(of_url);
  return endpoint.empty() || own.name == of_url.name ? own : of_url;
}

}  // namespace penstock::io::remote
