#pragma once

// What stores say when they refuse, as a sentence for a person with nothing secret in it.

#include <string>

#include "io/remote/reactor.h"

namespace penstock::io::remote {

/// What a store says went wrong.
struct StoreError {
  std::string code = {};     ///< "NoSuchKey"; empty where it gives none
  std::string message = {};  ///< short, without secrets, safe to show
};
StoreError store_error(const HttpRequest& request, const Answer& answer);
/// The same of a service that gives keys, which may explain itself in JSON.
StoreError service_error(const HttpRequest& request, const Answer& answer);

/// What the query of the request's URL says is shown by no error from here on: a server may repeat it, coded or not.
void hide_query(HttpRequest& request);

/// `text` without anything of `request` that is secret, escaped and cut to what a sentence takes.
std::string harmless(const HttpRequest& request, std::string text);

}  // namespace penstock::io::remote
