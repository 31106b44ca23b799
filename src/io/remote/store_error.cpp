// Stores explain a refusal by a small XML document. Only its code and message are shown, and what of the request is
// secret is taken out of them: a store may repeat what it was sent.

#include "io/remote/store_error.h"

#include <array>
#include <initializer_list>
#include <utility>

#include "core/ascii.h"
#include "core/format.h"
#include "core/text.h"
#include "io/remote/json_text.h"

namespace penstock::io::remote {
namespace {

constexpr std::size_t kMostShown = 200;

constexpr auto kEntities = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}});

/// "&#10;" and "&#xA;": the character, where it is one byte; the end of the entity in `end`.
char numbered(std::string_view text, std::size_t& end) {
  end = text.find(';');
  if (end == std::string_view::npos || end > 6 || !text.starts_with("&#")) return '\0';
  const bool is_hex = text[2] == 'x';
  unsigned value = 0;
  for (const char c : text.substr(is_hex ? 3 : 2, end - (is_hex ? 3 : 2))) {
    const int digit = core::hex_digit(c);
    if (digit < 0 || digit >= (is_hex ? 16 : 10)) return '\0';
    value = value * (is_hex ? 16 : 10) + static_cast<unsigned>(digit);
  }
  return value > 0 && value < 0x80 ? static_cast<char>(value) : '\0';
}

}  // namespace

std::string xml_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    std::size_t taken = 1;
    char c = rest[0];
    if (c == '&') {
      for (const auto& [entity, stands_for] : kEntities) {
        if (!rest.starts_with(entity)) continue;
        c = stands_for[0];
        taken = entity.size();
      }
      std::size_t end = 0;
      if (const char one = numbered(rest, end); one != '\0') {
        c = one;
        taken = end + 1;
      }
    }
    out += c;
    i += taken;
  }
  return out;
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
