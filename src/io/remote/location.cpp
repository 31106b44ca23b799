// What a URL names.

#include "io/remote/location.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/ascii.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "core/text.h"
#include "io/file/url.h"
#include "io/remote/settings.h"
#include "io/remote/signature.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

[[noreturn]] void refuse(std::string message, std::string_view shown) {
  throw Error(ErrorCode::kInvalidArgument, std::move(message), {.path = std::string(shown)});
}

/// Bytes that no URL may hold as %XX. What is encoded already stays.
std::string made_valid(std::string_view url) {
  constexpr std::string_view kNever = " \"<>\\^`{|}";
  std::string out;
  for (const char c : url) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x7e || kNever.find(c) != std::string_view::npos) {
      out += percent_encoded({&c, 1}, true);
    } else {
      out += c;
    }
  }
  return out;
}

void require_text(std::string_view url) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::none_of(url.begin(), url.end(), control)) return;
  refuse("the URL has a control character in it; write it as %XX", url);
}

Location parse_http(std::string_view url) {
  const std::string_view scheme = scheme_of(url);
  std::string_view rest = url.substr(scheme.size() + 3);
  rest = rest.substr(0, rest.find('#'));
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  rest.remove_prefix(authority.size());
  if (authority.find('@') != std::string_view::npos) {
    refuse("the URL has a user name or password in it, which would end up in logs; leave it out", url);
  }
  if (authority.empty() || authority.front() == ':') refuse("the URL names no host", url);
  Location out{.kind = Kind::kHttp};
  out.url = made_valid(core::format("{}://{}{}{}", scheme, authority, rest.starts_with('/') ? "" : "/", rest));
  out.shown = core::shown_path(core::format("{}://{}{}", scheme, authority, rest));
  out.has_secret = out.shown.ends_with(core::kHiddenQuery);
  return out;
}

bool is_bucket(Kind kind, std::string_view name) {
  // Azure's have neither '.' nor '_', and some of its own begin with '$'. So hosts of accounts are none.
  const std::string_view others = kind == Kind::kAz ? "-" : "-._";
  if (kind == Kind::kAz && name.starts_with('$')) name.remove_prefix(1);
  const auto allowed = [&](char c) { return core::is_letter_or_digit(c) || others.find(c) != std::string_view::npos; };
  return !name.empty() && name.size() <= 255 && std::all_of(name.begin(), name.end(), allowed) && name != "." &&
         name != "..";
}

/// What users of Azure write where the account is part of a URL, and where that goes here.
void require_az(std::string_view bucket, std::string_view rest, std::string_view url) {
  if (bucket.find('@') != std::string_view::npos) {
    refuse(
        "the account is not part of such a URL; write abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/BLOB, or name it "
        "in AZURE_STORAGE_ACCOUNT and write az://CONTAINER/BLOB",
        url);
  }
  if (core::has_signature(rest.substr(std::min(rest.size(), rest.find('?'))))) {
    refuse("the URL has a signature in it, which would end up in logs; put it into AZURE_STORAGE_SAS_TOKEN", url);
  }
}

/// Where blobs of the account are served whose host a URL names: both of its services have the same blobs. No other
/// host is asked, because it would be sent what proves who asks.
std::string endpoint_of_account(std::string_view host, std::string_view url) {
  constexpr std::string_view kServices[] = {"dfs.", "blob."};
  constexpr std::string_view kClouds[] = {"core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net"};
  const std::size_t dot = std::min(host.size(), host.find('.'));
  const std::string_view name = host.substr(0, dot);
  std::string_view cloud = host.substr(std::min(host.size(), dot + 1));
  const auto service =
      std::find_if(std::begin(kServices), std::end(kServices), [&](auto each) { return cloud.starts_with(each); });
  if (service != std::end(kServices)) cloud.remove_prefix(service->size());
  const bool is_azure = std::find(std::begin(kClouds), std::end(kClouds), cloud) != std::end(kClouds);
  if (service == std::end(kServices) || !is_azure || !is_azure_account(name)) {
    refuse(core::format("{} is no host of an account of Azure, such as ACCOUNT.dfs.core.windows.net; name another one "
                        "in AZURE_STORAGE_BLOB_ENDPOINT, and write az://CONTAINER/BLOB",
                        core::quoted(host)),
           url);
  }
  return core::format("https://{}.blob.{}", name, cloud);
}

Location parse_bucket(const core::UrlScheme& scheme, std::string_view url) {
  const Kind kind = scheme.kind;
  const std::string_view rest = url.substr(scheme.name.size() + 3);
  std::string_view bucket = rest.substr(0, rest.find('/'));
  const std::size_t behind = std::min(rest.size(), bucket.size() + 1);
  std::string endpoint;
  if (const std::size_t at = bucket.rfind('@'); scheme.has_account && at != bucket.npos) {
    if (bucket.find_first_of(":@") == at) endpoint = endpoint_of_account(bucket.substr(at + 1), url);
    if (!endpoint.empty()) bucket = bucket.substr(0, at);
  }
  if (kind == Kind::kAz) require_az(bucket, rest, url);
  // A secret may have a '/' in it.
  const bool has_colon = bucket.find(':') != std::string_view::npos;
  if (bucket.find('@') != std::string_view::npos || (has_colon && rest.find('@') != std::string_view::npos)) {
    refuse("the URL has keys in it, which would end up in logs; leave them out", url);
  }
  if (!is_bucket(kind, bucket)) {
    const bool is_container = kind == Kind::kAz;
    refuse(core::format("{} is not the name of a {}; write {}://{}", core::quoted(bucket),
                        is_container ? "container" : "bucket", scheme.name,
                        scheme.has_account ? "CONTAINER@ACCOUNT.dfs.core.windows.net/BLOB"
                        : is_container     ? "CONTAINER/BLOB"
                                           : "BUCKET/KEY"),
           url);
  }
  return {.kind = kind,
          .bucket = std::string(bucket),
          .endpoint = std::move(endpoint),
          .key = std::string(rest.substr(behind)),
          .shown = std::string(url)};
}

std::string hf_endpoint(std::string_view url) try {
  const std::string given = endpoint_of(variable("HF_ENDPOINT"), "HF_ENDPOINT");
  return given.empty() ? "https://huggingface.co" : given;
} catch (const Error& error) {
  throw error.within({.path = std::string(url)});
}

/// "hf://[datasets/]OWNER/REPO[@REV]/PATH"
Location parse_hf(std::string_view url) {
  const auto wrong = [&] { refuse("write hf://OWNER/REPO[@REV]/PATH or hf://datasets/OWNER/REPO[@REV]/PATH", url); };
  std::string_view rest = url.substr(5);
  const auto next = [&] {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    return part;
  };
  std::string_view owner = next();
  std::string type;
  if (owner == "datasets" || owner == "spaces") {
    type = std::string(owner) + "/";
    owner = next();
  }
  std::string_view repo = next();
  std::string_view rev = "main";
  if (const std::size_t at = repo.find('@'); at != std::string_view::npos) {
    rev = repo.substr(at + 1);
    repo = repo.substr(0, at);
  }
  if (owner.empty() || repo.empty() || rev.empty() || rest.empty()) wrong();
  const std::string endpoint = hf_endpoint(url);
  const std::string revision = rev.find('%') != std::string_view::npos ? std::string(rev) : percent_encoded(rev, false);
  return {.kind = Kind::kHf,
          .url = core::format("{}/{}{}/{}/resolve/{}/{}", endpoint, type, percent_encoded(owner, false),
                              percent_encoded(repo, false), revision, percent_encoded(rest, true)),
          .shown = std::string(url)};
}

const core::UrlScheme& row_of(std::string_view url) noexcept {
  const core::UrlScheme* const scheme = core::url_scheme(url);
  return scheme == nullptr ? core::kUrlSchemes[0] : *scheme;
}

Kind kind_of(std::string_view url) noexcept { return row_of(url).kind; }

}  // namespace

std::string_view scheme_of(std::string_view url) noexcept {
  const std::size_t end = url.find("://");
  return end == std::string_view::npos ? std::string_view{} : url.substr(0, end);
}

Location parse(std::string_view url) {
  const Kind kind = kind_of(url);
  // A key may have any character; requests have it as %XX.
  if (kind == Kind::kHttp || kind == Kind::kHf) require_text(url);
  Location out = kind == Kind::kHttp ? parse_http(url)
                 : kind == Kind::kHf ? parse_hf(url)
                                     : parse_bucket(row_of(url), url);
  out.values = ValuesScope::current();
  return out;
}

bool is_azure_account(std::string_view name) noexcept {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !name.empty() && name.size() <= 63 && name.find_first_not_of(kAllowed) == name.npos;
}

std::optional<Location> parse_in_bucket(std::string_view location) {
  return is_in_store(location) ? std::optional(parse(location)) : std::nullopt;
}

std::string sibling(std::string_view shown, std::string_view name) {
  const bool encodes = is_url(shown) && kind_of(shown) == Kind::kHttp;
  if (encodes) {
    if (shown.ends_with(core::kHiddenQuery)) {
      throw Error(
          ErrorCode::kUnsupported,
          core::format("the files beside a URL with a signature or token in its query cannot be opened by it; open the "
                       "index by {}, hf:// or a URL without a query",
                       core::store_schemes("or")),
          {.path = std::string(shown)});
    }
    shown = shown.substr(0, shown.find('?'));
  }
  return std::string(shown.substr(0, shown.rfind('/') + 1)) +
         (encodes ? percent_encoded(name, false) : std::string(name));
}

std::string in_folder(std::string_view url, std::string_view name) {
  const Location location = parse(url);
  if (location.has_secret) return {};
  std::string_view folder = location.shown;
  if (location.kind == Kind::kHttp) folder = folder.substr(0, folder.find('?'));
  while (folder.ends_with('/')) folder.remove_suffix(1);
  return sibling(core::format("{}/", folder), name);
}

std::string_view authority_of(std::string_view url) noexcept {
  const std::string_view rest = url.substr(std::min(url.size(), scheme_of(url).size() + 3));
  return rest.substr(0, rest.find_first_of("/?#"));
}

std::string_view host_of(std::string_view url) noexcept {
  const std::string_view authority = authority_of(url);
  const std::size_t end = authority.starts_with('[') ? authority.find(']') + 1 : authority.find(':');
  const std::string_view host = authority.substr(0, end);
  const std::string_view port = authority.substr(host.size());
  const bool is_port = port.empty() || (port.front() == ':' && port.find_first_not_of("0123456789", 1) == port.npos);
  return is_port ? host : authority;
}

std::string endpoint_of(std::string url, std::string_view setting) {
  while (url.ends_with('/')) url.pop_back();
  const bool is_http = url.starts_with("http://") || url.starts_with("https://");
  const auto is_plain = [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; };
  const bool is_clean = url.find_first_of("?#@\\") == url.npos && std::all_of(url.begin(), url.end(), is_plain);
  if (url.empty() || (is_http && is_clean && !host_of(url).empty())) return url;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("{} must begin with http:// or https:// and have no user and no query, such as "
                           "http://localhost:9000",
                           setting));
}

bool is_private(std::string_view url) noexcept {
  if (scheme_of(url) != "http") return scheme_of(url) == "https";
  if (host_of(url).size() >= INET_ADDRSTRLEN) return false;
  const std::string host = core::lower(host_of(url));
  if (host == "localhost" || host == "[::1]") return true;
  // Names such as "127.example.org" are hosts anywhere.
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

std::string resolved(std::string_view url, std::string_view target) {
  target = target.substr(0, target.find('#'));
  if (target.empty() || target.find_first_of("\r\n\t") != target.npos) return {};
  const std::string root = core::format("{}://{}", scheme_of(url), authority_of(url));
  const std::string_view path = target.substr(0, target.find('?'));
  const std::size_t scheme = target.substr(0, target.find_first_of("/?")).find(':');
  std::string out;
  if (scheme != target.npos) {
    out = core::lower(target.substr(0, scheme)).append(target.substr(scheme));
  } else if (target.starts_with("//")) {
    out = core::format("{}:{}", scheme_of(url), target);
  } else if (target.starts_with('/')) {
    out = root + std::string(target);
  } else {
    const std::string here = or_else(std::string(url.substr(root.size(), url.find('?') - root.size())), "/");
    // A server may have another thing behind "..", which libcurl is told to send as it is.
    const std::filesystem::path to = std::filesystem::path(here).parent_path() / path;
    out = core::format("{}{}{}", root, path.empty() ? here : to.lexically_normal().string(),
                       target.substr(path.size()));
  }
  if (!out.starts_with("http://") && !out.starts_with("https://")) return {};
  const std::string_view authority = authority_of(out);
  if (authority.empty() || authority.find('@') != std::string_view::npos) return {};
  return made_valid(out);
}

}  // namespace penstock::io::remote
