// RemoteOptions become values of variables, so that what reads a variable reads them.

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/format.h"
#include "io/remote/cache/block_cache.h"
#include "io/remote/location.h"
#include "io/remote/settings.h"
#include "io/remote/values.h"
#include "penstock/remote.h"

namespace penstock {
namespace io::remote {
namespace {

class ValuesOfOptions {
 public:
  explicit ValuesOfOptions(const RemoteOptions& options) : options_(options) {}

  /// `host`: that of the location, where it is a plain URL.
  ValuesPtr values(std::string_view host) {
    number("PENSTOCK_REMOTE_TIMEOUT", options_.timeout);
    number("PENSTOCK_REMOTE_RETRY_SECONDS", options_.retry_seconds);
    number("PENSTOCK_REMOTE_HEDGES", options_.hedges);
    number("PENSTOCK_REMOTE_REQUESTS", options_.requests);
    if (options_.cache) cache(*options_.cache);
    text({"AWS_ENDPOINT_URL_S3", "PENSTOCK_GS_ENDPOINT", "AZURE_STORAGE_BLOB_ENDPOINT", "HF_ENDPOINT"},
         options_.endpoint);
    text({"PENSTOCK_S3_ADDRESSING"}, options_.addressing);
    text({"AWS_REGION"}, options_.region);
    // One without the other has none, whatever the environment has for others.
    const bool has_keys = options_.access_key_id || options_.secret_access_key;
    const auto given = [&](const std::optional<std::string>& key) { return has_keys ? key.value_or("") : key; };
    text({"AWS_ACCESS_KEY_ID", "PENSTOCK_GS_ACCESS_KEY_ID"}, given(options_.access_key_id));
    text({"AWS_SECRET_ACCESS_KEY", "PENSTOCK_GS_SECRET_ACCESS_KEY"}, given(options_.secret_access_key));
    text({"AWS_SESSION_TOKEN"}, given(options_.session_token));
    amazon();
    azure();
    if (options_.anonymous.has_value()) {
      for (const char* const name : {"PENSTOCK_S3_ANONYMOUS", "PENSTOCK_AZ_ANONYMOUS"}) {
        set(name, options_.anonymous.value_or(false) ? "1" : "0");
      }
    }
    text({"HF_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN", "PENSTOCK_HTTP_TOKEN"}, options_.token);
    if (options_.token) set("PENSTOCK_HTTP_TOKEN_HOST", std::string(host));
    return std::make_shared<const Values>(std::move(out_));
  }

 private:
  void set(const char* name, std::string value) { out_.of.insert_or_assign(name, std::move(value)); }
  void text(std::initializer_list<const char*> names, const std::optional<std::string>& value) {
    for (const char* const name : names) {
      if (value) set(name, *value);
    }
  }
  // Whoever says who asks is not to be signed for by what the environment has for others.

  void amazon() {
    if (options_.access_key_id) set("PENSTOCK_S3_ANONYMOUS", {});
    if (!options_.token || options_.access_key_id) return;
    for (const char* const name : {"PENSTOCK_GS_ACCESS_KEY_ID", "PENSTOCK_GS_SECRET_ACCESS_KEY"}) set(name, {});
  }

  void azure() {
    text({"AZURE_STORAGE_ACCOUNT"}, options_.account);
    if (!options_.account_key && !options_.sas_token && !options_.token) return;
    for (const char* const name : {"AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN",
                                   "AZURE_STORAGE_TOKEN", "PENSTOCK_AZ_ANONYMOUS"}) {
      set(name, {});
    }
    text({"AZURE_STORAGE_KEY"}, options_.account_key);
    text({"AZURE_STORAGE_SAS_TOKEN"}, options_.sas_token);
    text({"AZURE_STORAGE_TOKEN"}, options_.token);
  }
  template <class T>
  void number(const char* name, const std::optional<T>& value) {
    if (value) set(name, core::format("{}", *value));
  }
  void cache(const CacheOptions& cache) {
    set("PENSTOCK_CACHE", cache.folder);
    set("PENSTOCK_CACHE_BYTES", core::format("{}", cache.max_bytes));
    set("PENSTOCK_CACHE_TRUST_SECONDS", core::format("{}", cache.trust_seconds));
  }

  const RemoteOptions& options_;
  Values out_;
};

}  // namespace
}  // namespace io::remote

Source open_source(TextView path, const RemoteOptions& options) {
  const std::string_view location = path;
  const bool is_http = location.starts_with("http://") || location.starts_with("https://");
  const std::string_view host = is_http ? io::remote::authority_of(location) : std::string_view();
  const io::remote::ValuesScope scope(io::remote::ValuesOfOptions(options).values(host));
  // Options out of range are told for files too.
  static_cast<void>(io::remote::settings());
  static_cast<void>(io::remote::cache_settings());
  return open_source(location);
}

}  // namespace penstock
