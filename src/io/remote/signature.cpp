// AWS Signature Version 4. A request is written down in one canonical way; that text is hashed; and the hash is signed
// with a key that is made of the secret, the day, the region and the service:
//
//   canonical request -> SHA-256 -> string to sign -> HMAC with the key of the day -> Authorization
//
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html

#include "io/remote/signature.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/ascii.h"
#include "core/format.h"
#include "io/remote/sha256.h"

namespace penstock::io::remote {
namespace {

bool is_unreserved(char c) noexcept {
  return core::is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/// Without spaces at the ends, and with one where there were several.
std::string with_single_spaces(std::string_view value) {
  std::string out;
  for (const char c : value) {
    const bool space = c == ' ' || c == '\t';
    if (space && (out.empty() || out.back() == ' ')) continue;
    out += space ? ' ' : c;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

std::string percent_encoded(std::string_view text, bool keep_slash) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c) || (c == '/' && keep_slash)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string url_decoded(std::string_view text, bool is_form) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool coded =
        text[i] == '%' && i + 2 < text.size() && core::hex_digit(text[i + 1]) >= 0 && core::hex_digit(text[i + 2]) >= 0;
    if (coded) {
      out += static_cast<char>(core::hex_digit(text[i + 1]) * 16 + core::hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += is_form && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string query_text(const Query& query) {
  Query encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(percent_encoded(name, false), percent_encoded(value, false));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string out;
  for (const auto& [name, value] : encoded) out += core::format("{}{}={}", out.empty() ? "" : "&", name, value);
  return out;
}

std::string authorization(const Signable& request, const Keys& keys, const SigningScope& scope) {
  auto headers = request.headers;
  std::sort(headers.begin(), headers.end());
  std::string written;
  std::string names;
  for (const auto& [name, value] : headers) {
    written += core::format("{}:{}\n", name, with_single_spaces(value));
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical = core::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                                             query_text(request.query), written, names, request.payload_hash);
  const std::string_view day = scope.timestamp.substr(0, 8);
  const std::string where = core::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
  const std::string to_sign =
      core::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", scope.timestamp, where, hex(sha256(canonical)));
  Digest key = hmac_sha256(bytes_of("AWS4" + keys.secret), day);
  for (const std::string_view part : {scope.region, scope.service, std::string_view("aws4_request")}) {
    key = hmac_sha256(key, part);
  }
  return core::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}", keys.id, where, names,
                      hex(hmac_sha256(key, to_sign)));
}

}  // namespace penstock::io::remote
