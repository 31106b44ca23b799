// Every way in which a request can end, and what it means: try again, or an error that says what to do. One table of
// causes, so that all kinds of requests (ranges, lists, keys) speak alike.

#include "io/remote/judge.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "io/remote/proxy.h"
#include "io/remote/settings.h"
#include "io/remote/store_error.h"
#include "io/remote/xml.h"

namespace penstock::io::remote {
namespace {

constexpr unsigned kMostRefusedConnections = 3;
constexpr unsigned kMostNewTokens = 3;

// Behind 504: what Cloudflare, which stands before R2 and many others, says of a server that it does not reach.
constexpr auto kRetriedStatus = std::to_array<long>({408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524});
constexpr auto kRetriedCodes = std::to_array<std::string_view>(
    {"SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "Throttling", "ThrottlingException",
     // The upload was damaged on its way, or others wrote the object at the same time.
     "BadDigest", "XAmzContentChecksumMismatch", "Md5Mismatch", "ConditionalRequestConflict", "OperationAborted",
     // Services that give keys say so of themselves, and of those that they ask.
     "IDPCommunicationError", "temporarily_unavailable"});
/// The object lies where it has to be taken out of first: Glacier, Azure's archive tier.
constexpr auto kArchivedCodes = std::to_array<std::string_view>({"InvalidObjectState", "BlobArchived"});
constexpr auto kNoBucketCodes =
    std::to_array<std::string_view>({"NoSuchBucket", "ContainerNotFound", "ResourceNotFound"});
/// The keys were valid but have expired.
constexpr auto kEndedCodes = std::to_array<std::string_view>({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"});

bool has(std::span<const std::string_view> codes, std::string_view code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

Verdict failed(const Exchange& exchange, ErrorCode code, std::string message) {
  return {.kind = Verdict::Kind::kFail,
          .error = Error(code, std::move(message), {.path = exchange.name, .offset = exchange.offset})};
}

/// The proxy that the request went to, for errors that may be about it.
std::optional<Proxy> proxy_of(const HttpRequest& request) {
  return request.past_proxies ? std::nullopt : proxy_for(request.url);
}

std::string through(const HttpRequest& request) {
  const std::optional<Proxy> proxy = proxy_of(request);
  return proxy ? core::format("; it was asked by the proxy {}, which {} names", core::quoted(proxy->shown),
                              proxy->variable)
               : std::string();
}

/// A proxy that answers, and lets nothing through.
Verdict refused_by_proxy(const Exchange& exchange, const HttpRequest& request, const std::string& said) {
  return failed(
      exchange, ErrorCode::kPermission,
      core::format("{}{}; check its user name and password, and whether it allows this host", said, through(request)));
}

/// That a file of certificates, which a setting names, is none.
std::string no_certificates(const HttpRequest& request, const std::string& file) {
  return core::format("the file of certificates {} cannot be read, which {} names; name one that can",
                      core::quoted(file),
                      request.ca_file.empty() ? "SSL_CERT_FILE" : "AWS_CA_BUNDLE or the profile's ca_bundle");
}

Verdict judge_ca_file(const Exchange& exchange, const HttpRequest& request, const std::string& problem) {
  const std::string& file = request.ca_file.empty() ? settings().ca_file : request.ca_file;
  if (!file.empty()) return failed(exchange, ErrorCode::kIo, no_certificates(request, file));
  return failed(exchange, ErrorCode::kIo,
                core::format("the certificates of this machine cannot be read: {}; install the Debian package "
                             "ca-certificates",
                             problem));
}

/// The connection or the reply itself failed.
Verdict judge_connection(const Exchange& exchange, const HttpRequest& request, const Answer& answer) {
  const std::string problem = without_proxy_secrets(harmless(request, answer.problem));
  if (answer.endless_head) {
    return failed(exchange, ErrorCode::kIo,
                  "the server sends header lines without an end, so Penstock stops talking to it; check the URL");
  }
  switch (answer.code) {
    case curl::kWriteError:
      return answer.too_long ? again("the server sent more bytes than were asked for")
                             : failed(exchange, ErrorCode::kOutOfMemory, "there is no memory for the server's answer");
    case curl::kNoMemory:  // libcurl gives this also for a header line that is longer than its limit
      return failed(exchange, ErrorCode::kIo,
                    "a header line of the server's answer is too long, or there is no memory for it, so Penstock stops "
                    "talking to it; check the URL");
    case curl::kTimedOut:
      return again(
          core::format("no data, or less than 1 KiB a second, arrived within the time limit, "
                       "PENSTOCK_REMOTE_TIMEOUT ({}){}",
                       problem, through(request)));
    case curl::kNoConnection:
      if (exchange.tries < kMostRefusedConnections) return again(core::format("no connection ({})", problem));
      return failed(exchange, ErrorCode::kIo,
                    core::format("no connection to the server: {}; check that it runs, and its port{}", problem,
                                 through(request)));
    case curl::kNoProxyHost:
    case curl::kProxy:
      return failed(
          exchange, ErrorCode::kIo,
          core::format("the proxy does not answer as one: {}{}; check that variable", problem, through(request)));
    case curl::kNoHost:
      return failed(exchange, ErrorCode::kIo,
                    core::format("the host is not known: {}; check the name, and this machine's network", problem));
    case curl::kTlsConnect:
      // Of a busy server too, which closes a connection before it is one.
      if (exchange.tries < kMostRefusedConnections) return again(core::format("no TLS connection ({})", problem));
      return failed(exchange, ErrorCode::kIo,
                    core::format("no TLS connection to the server: {}; check that its port speaks https{}", problem,
                                 through(request)));
    case curl::kNotTrusted:
    case curl::kCertificateProblem:
    case curl::kCipher:
      return failed(exchange, ErrorCode::kIo,
                    core::format("the server is not trusted: {}; name its certificate in SSL_CERT_FILE (of S3, "
                                 "AWS_CA_BUNDLE is taken first) if you trust it",
                                 problem));
    case curl::kBadCaFile:
      return judge_ca_file(exchange, request, problem);
    case curl::kPartialFile:
      return again("the answer was cut");
    case curl::kBadUrl:
      return failed(exchange, ErrorCode::kInvalidArgument,
                    core::format("not a valid URL: {}{}", problem, through(request)));
    case curl::kGotNothing:
    case curl::kSendError:
    case curl::kReceiveError:
    case curl::kHttp2:
    case curl::kHttp2Stream:
      return again(core::format("the connection broke ({}){}", problem, through(request)));
    default:
      return failed(exchange, ErrorCode::kIo, core::format("the request failed: {}{}", problem, through(request)));
  }
}

std::string said(long status, const StoreError& store) {
  std::string out = core::format("the server answered {}", status);
  if (store.code.empty() && store.message.empty()) return out;
  return out +
         core::format(" ({}{}{})", store.code, store.code.empty() || store.message.empty() ? "" : ": ", store.message);
}

/// Learns the bucket's region from a store that names it, so that the next try is signed for that region.
bool learnt_region(const Exchange& exchange, const Answer& answer) {
  if (exchange.terms.learn_region == nullptr) return false;
  std::string region = answer.header("x-amz-bucket-region");
  if (region.empty()) region = xml_text(answer.text, "Region");
  return !region.empty() && exchange.terms.learn_region(exchange.bucket, region);
}

bool renewed_keys(const Exchange& exchange) {
  return exchange.terms.renew_keys != nullptr && exchange.terms.renew_keys();
}

/// For an object that was overwritten: its ETag then, and its ETag now if the server says it.
std::string versions(const Exchange& exchange, const Answer& answer) {
  const std::string now = core::escaped(answer.header("etag"));
  return core::format("its ETag was {}{}{}", core::escaped(exchange.etag), now.empty() ? "" : " and is now ", now);
}

/// Refusals that have another meaning for a write than for a read; none for the others.
std::optional<Verdict> judge_write(const Exchange& exchange, const StoreError& store, long status,
                                   const std::string& text) {
  if (status == 412 || store.code == "BlobAlreadyExists") {
    return failed(exchange, ErrorCode::kInvalidArgument,
                  text + "; there is an object of this name already: name another one, or replace it with --force");
  }
  if (store.code == "NoSuchUpload") {
    return failed(exchange, ErrorCode::kIo,
                  text + "; somebody ended the upload, as rules of a bucket do with old ones: write it again");
  }
  if (store.code == "InvalidBlockList") {
    return failed(exchange, ErrorCode::kIo,
                  text + "; somebody else wrote the object meanwhile, which ends all uploads of it: write it again");
  }
  if (store.code == "InvalidBlobOrBlock") {
    return failed(exchange, ErrorCode::kIo,
                  text +
                      "; an upload of another program may be unfinished there, whose blocks are in the way for a "
                      "week: write to another name, or delete the object first");
  }
  if (status == 501) {
    return failed(exchange, ErrorCode::kUnsupported,
                  text + "; the store lacks something that writing takes: ask its maker, or copy a file there");
  }
  if (status >= 200 && status < 300) {
    return failed(
        exchange, ErrorCode::kIo,
        core::format("{}, which does not say that the object is there; check {}", text, exchange.terms.endpoint));
  }
  return std::nullopt;
}

/// What to look at where no store refused: a service that gives keys says by which settings it was asked.
std::string check(const Exchange& exchange, std::string_view otherwise) {
  return core::format("; check {}", exchange.terms.keys.empty() ? otherwise : exchange.terms.keys);
}

/// 401 and 403: who asks may not, or did not say who it is.
Verdict judge_permission(const Exchange& exchange, const HttpRequest& request, const StoreError& store,
                         const std::string& text) {
  if (store.code == "RequestTimeTooSkewed") {
    return failed(exchange, ErrorCode::kPermission,
                  text + "; this machine's clock is wrong, and signatures hold for minutes: set it (timedatectl)");
  }
  if (!request.unsigned_because.empty()) {
    return failed(exchange, ErrorCode::kPermission, core::format("{}; {}", text, request.unsigned_because));
  }
  if (exchange.bucket.empty()) {
    return failed(exchange, ErrorCode::kPermission,
                  text + check(exchange, "the token, and whether the URL has expired"));
  }
  return failed(exchange, ErrorCode::kPermission,
                core::format("{}; check the keys ({}) and what they may {}{}{}", text, exchange.terms.keys,
                             exchange.writes ? "write" : "read", request.signer.empty() ? "" : "; ", request.signer));
}

/// Where nothing was found.
std::string what_to_check(const Exchange& exchange, const HttpRequest& request, const StoreError& store) {
  if (exchange.bucket.empty()) return check(exchange, "the URL");
  // Azure says so too of what a stranger may not see.
  if (store.code == "ResourceNotFound" && !request.unsigned_because.empty()) return "; " + request.unsigned_because;
  const bool no_bucket = has(kNoBucketCodes, store.code);
  return no_bucket ? core::format("; check the bucket's name and {}", exchange.terms.endpoint) : "; check the key";
}

Verdict judge_refusal(const Exchange& exchange, const HttpRequest& request, const StoreError& store,
                      const Answer& answer) {
  const long status = answer.status;
  const std::string text = said(status, store);
  if (exchange.writes) {
    if (const auto verdict = judge_write(exchange, store, status, text)) return *verdict;
  }
  if (has(kArchivedCodes, store.code)) {
    return failed(exchange, ErrorCode::kUnsupported,
                  text + "; the object is archived: have the store restore it, and open it then");
  }
  if (store.code == "PublicAccessNotPermitted") return judge_permission(exchange, request, store, text);
  switch (status) {
    case 401:
    case 403:
      return judge_permission(exchange, request, store, text);
    case 407:
      return refused_by_proxy(exchange, request, text);
    case 404:
      return failed(exchange, ErrorCode::kNotFound, text + what_to_check(exchange, request, store));
    case 412:
      return failed(exchange, ErrorCode::kChanged,
                    core::format("{}; the object was written anew since it was opened ({}): open it again", text,
                                 versions(exchange, answer)));
    case 416:
      return failed(exchange, ErrorCode::kChanged, text + "; the object is shorter now than when it was opened");
    default:
      return failed(exchange, ErrorCode::kIo,
                    text + (exchange.bucket.empty() ? check(exchange, "the URL, and what the server's log says")
                                                    : "; check the URL, and what the server's log says"));
  }
}

}  // namespace

void require_certificates(const HttpRequest& request, const Settings& settings) {
  const std::string& file = request.ca_file.empty() ? settings.ca_file : request.ca_file;
  struct stat status {};
  if (file.empty() || ::stat(file.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  throw Error(ErrorCode::kIo, no_certificates(request, file));
}

bool is_redirect(long status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_refusal(const Answer& answer) noexcept {
  constexpr std::array kNotReached = {curl::kNoConnection, curl::kNoHost,     curl::kNoProxyHost,
                                      curl::kBadUrl,       curl::kNotTrusted, curl::kTlsConnect,
                                      curl::kCipher,       curl::kBadCaFile,  curl::kCertificateProblem};
  if (answer.status >= 300 && answer.status < 500) return true;
  return answer.status == 0 && std::find(kNotReached.begin(), kNotReached.end(), answer.code) != kNotReached.end();
}

Verdict judge(const Exchange& exchange, const HttpRequest& request, const Answer& answer) {
  if (answer.code != curl::kOk && answer.status < 300) return judge_connection(exchange, request, answer);
  const bool is_service = exchange.bucket.empty() && !exchange.terms.keys.empty();
  const StoreError store = is_service ? service_error(request, answer) : store_error(request, answer);
  const long status = answer.status;
  const bool has_status = std::find(kRetriedStatus.begin(), kRetriedStatus.end(), status) != kRetriedStatus.end();
  if (has_status || has(kRetriedCodes, store.code)) return again(said(status, store));
  // The status is the proxy's then: the server was not reached.
  if (answer.proxy_status >= 300) {
    return refused_by_proxy(exchange, request, said(status, store));
  }
  if ((status == 301 || status == 307 || status == 400 || status == 403) && learnt_region(exchange, answer)) {
    return again("the bucket is in another region");
  }
  if (has(kEndedCodes, store.code)) {
    if (renewed_keys(exchange)) return again("the keys had expired");
    return failed(exchange, ErrorCode::kPermission, said(status, store) + "; the keys have expired: get new ones");
  }
  // A token that ended, or was taken back; one that is refused anew would be fetched for ever.
  if (status == 401 && store.code == "InvalidAuthenticationInfo" && exchange.tries < kMostNewTokens &&
      renewed_keys(exchange)) {
    return again("the token had expired");
  }
  if (is_redirect(status) && is_service) {
    return failed(exchange, ErrorCode::kIo, said(status, store) + "; a redirect is not followed" + check(exchange, ""));
  }
  if (is_redirect(status)) {
    return failed(exchange, ErrorCode::kIo,
                  said(status, store) + (exchange.bucket.empty()
                                             ? "; the redirect is refused: at most 5 are followed, to http or https "
                                               "alone, and never from https to http"
                                             : core::format("; {}check {}",
                                                            exchange.terms.learn_region != nullptr
                                                                ? "set AWS_REGION to the bucket's region, or "
                                                                : "",
                                                            exchange.terms.endpoint)));
  }
  if (status == 0) return failed(exchange, ErrorCode::kIo, "what answers is not an HTTP server");
  return judge_refusal(exchange, request, store, answer);
}

}  // namespace penstock::io::remote
