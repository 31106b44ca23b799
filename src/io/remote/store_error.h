#pragma once

// What stores say when they refuse, as a sentence for a person with nothing secret in it.

#include <string>
#include <string_view>

#include "io/remote/reactor.h"

namespace penstock::io::remote {

/// The text of the first element `tag`, entities decoded; empty where there is none.
std::string xml_text(std::string_view xml, std::string_view tag);
/// "&amp;" as "&".
std::string xml_decoded(std::string_view text);

/// What a store says went wrong.
struct StoreError {
  std::string code = {};     ///< "NoSuchKey"; empty where it gives none
  std::string message = {};  ///< short, without secrets, safe to show
};
StoreError store_error(const HttpRequest& request, const Answer& answer);
/// The same of a service that gives keys, which may explain itself in JSON.
StoreError service_error(const HttpRequest& request, const Answer& answer);

/// `text` without anything of `request` that is secret, escaped and cut to what a sentence takes.
std::string harmless(const HttpRequest& request, std::string text);

}  // namespace penstock::io::remote
