// Stores explain a refusal by a small XML document. Only its code and message are shown, and what of the request is
// secret is taken out of them: a store may repeat what it was sent.

#include "io/remote/store_error.h"

#include <initializer_list>
#include <utility>

#include "core/text.h"
#include "io/remote/json_text.h"
#include "io/remote/signature.h"
#include "io/remote/xml.h"

namespace penstock::io::remote {
namespace {

constexpr std::size_t kMostShown = 200;

}  // namespace

void hide_query(HttpRequest& request) {
  constexpr std::size_t kLeast = 8;  // shorter values sign nothing, and would take words out of messages
  const std::string_view url = request.url;
  for (std::size_t at = url.find('?'); at != std::string_view::npos; at = url.find_first_of("&;", at + 1)) {
    const std::string_view one = url.substr(at + 1, url.find_first_of("&;#", at + 1) - at - 1);
    const std::string_view value = one.substr(one.find('=') + 1);
    if (value.size() < kLeast) continue;
    request.secrets.emplace_back(value);
    request.secrets.push_back(url_decoded(value));
    request.secrets.push_back(url_decoded(value, false));
  }
}

std::string harmless(const HttpRequest& request, std::string text) {
  for (const std::string& secret : request.secrets) {
    if (secret.size() < 4) continue;
    for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), "...");
      at += 3;
    }
  }
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return core::escaped(text);
}

StoreError store_error(const HttpRequest& request, const Answer& answer) {
  if (answer.text.find("<Error") == std::string::npos) {
    // Hugging Face explains itself in headers, and Azure where an answer has no body.
    const std::string code = answer.header("x-ms-error-code");
    return {harmless(request, code.empty() ? answer.header("x-error-code") : code),
            harmless(request, answer.header("x-error-message"))};
  }
  return {harmless(request, xml_text(answer.text, "Code")), harmless(request, xml_text(answer.text, "Message"))};
}

StoreError service_error(const HttpRequest& request, const Answer& answer) {
  if (!answer.text.starts_with('{')) return store_error(request, answer);
  const auto first = [&](std::initializer_list<std::string_view> names) {
    std::string found;
    for (const std::string_view name : names) found = found.empty() ? json_text(answer.text, name) : found;
    return harmless(request, std::move(found));
  };
  return {first({"error", "code", "Code"}), first({"error_description", "message", "Message"})};
}

}  // namespace penstock::io::remote
