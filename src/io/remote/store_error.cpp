// Stores explain a refusal by a small XML document. Only its code and message are shown, and what of the request is
// secret is taken out of them: a store may repeat what it was sent.

#include "io/remote/store_error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "core/utf8.h"
#include "io/remote/json_text.h"

namespace penstock::io::remote {
namespace {

constexpr std::size_t kMostShown = 200;
constexpr std::size_t kMostEntity = 16;

constexpr auto kEntities = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}});

/// What "&amp;", "&#10;" and "&#xA;" stand for; nothing for what is no entity.
std::string entity(std::string_view text) {
  for (const auto& [name, stands_for] : kEntities) {
    if (text == name) return std::string(stands_for);
  }
  std::string out;
  if (!text.starts_with("&#")) return out;
  const bool is_hex = text.starts_with("&#x");
  const char* const end = text.data() + text.size() - 1;
  std::uint32_t value = 0;
  const auto read = std::from_chars(text.data() + (is_hex ? 3 : 2), end, value, is_hex ? 16 : 10);
  const bool is_number = read.ec == std::errc() && read.ptr == end;
  if (is_number && value > 0 && value <= 0x10FFFF) core::append_utf8(out, value);
  return out;
}

}  // namespace

std::string xml_decoded(std::string_view text) {
  std::string out;
  for (std::size_t at = text.find('&'); at != text.npos; at = text.find('&')) {
    out += text.substr(0, at);
    text.remove_prefix(at);
    const std::string_view one = text.substr(0, text.substr(0, kMostEntity).find(';') + 1);
    const std::string stands_for = entity(one);
    out += stands_for.empty() ? "&" : stands_for;
    text.remove_prefix(stands_for.empty() ? 1 : one.size());
  }
  return out.append(text);
}

std::string xml_text(std::string_view xml, std::string_view tag) {
  const std::string open = core::format("<{}>", tag);
  const std::size_t begin = xml.find(open);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = xml.substr(begin + open.size());
  const std::size_t end = rest.find(core::format("</{}>", tag));
  return end == std::string_view::npos ? std::string() : xml_decoded(rest.substr(0, end));
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
