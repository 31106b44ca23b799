// libcurl is opened when the first URL is, and never linked: whoever reads files alone needs neither it nor TLS.

#include <dlfcn.h>
#include <sys/auxv.h>

#include <cstdlib>
#include <string>

#include "core/environment.h"
#include "core/format.h"
#include "core/symbols.h"
#include "io/remote/curl_api.h"
#include "penstock/error.h"

namespace penstock::io::remote::curl {
namespace {

struct LoadedApi {
  Api api = {};
  std::string why_not = {};
};

/// A program that runs with more rights than its user takes no orders from that user's environment. Ours come by
/// secure_getenv; libcurl reads these by getenv, and there is no option to leave the file of keys out.
void forget_environment_of_others() {
  if (::getauxval(AT_SECURE) == 0) return;
  for (const char* const name :
       {"SSLKEYLOGFILE", "CURL_SSL_BACKEND", "CURL_CA_BUNDLE", "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
        "ALL_PROXY", "no_proxy", "NO_PROXY", "NETRC", "CURL_HOME"}) {
    ::unsetenv(name);
  }
}

LoadedApi open_library() {
  LoadedApi found;
  forget_environment_of_others();
  const char* const chosen = core::environment("PENSTOCK_LIBCURL");
  const char* const name = chosen != nullptr && *chosen != '\0' ? chosen : "libcurl.so.4";
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    found.why_not = core::format(
        "opening a URL takes the library libcurl, which is not there ({}); install the Debian package libcurl4, or "
        "name the library with PENSTOCK_LIBCURL",
        reason != nullptr ? reason : "no reason given");
    return found;
  }
  core::Symbols symbols(library);
  Api& api = found.api;
  symbols.required("curl_global_init", api.global_init);
  symbols.required("curl_easy_init", api.easy_init);
  symbols.required("curl_easy_reset", api.easy_reset);
  symbols.required("curl_easy_cleanup", api.easy_cleanup);
  symbols.required("curl_easy_setopt", api.easy_setopt);
  symbols.required("curl_easy_getinfo", api.easy_getinfo);
  symbols.required("curl_easy_strerror", api.easy_strerror);
  symbols.required("curl_multi_init", api.multi_init);
  symbols.required("curl_multi_setopt", api.multi_setopt);
  symbols.required("curl_multi_add_handle", api.multi_add);
  symbols.required("curl_multi_remove_handle", api.multi_remove);
  symbols.required("curl_multi_perform", api.multi_perform);
  symbols.required("curl_multi_poll", api.multi_poll);
  symbols.required("curl_multi_wakeup", api.multi_wakeup);
  symbols.required("curl_multi_info_read", api.multi_info_read);
  symbols.required("curl_slist_append", api.list_append);
  symbols.required("curl_slist_free_all", api.list_free);
  if (symbols.missing() != nullptr) {
    found.why_not = core::format("the library {} has no {}: it is not libcurl, or one before 7.68; install another",
                                 name, symbols.missing());
  } else if (api.global_init(kGlobalDefault) != kOk) {
    found.why_not = core::format("the library {} does not start; its TLS library may be broken", name);
  }
  return found;
}

}  // namespace

const Api& Api::get() {
  // Never closed: threads may be at work in it to the end.
  static const LoadedApi& found = *new LoadedApi(open_library());
  if (!found.why_not.empty()) throw Error(ErrorCode::kUnsupported, found.why_not);
  return found.api;
}

}  // namespace penstock::io::remote::curl
