// A store may do what it was asked and its answer may be lost. The next try is then refused: there is no such upload
// any more, or there is an object of that name already. So before a refusal counts that was not the first answer, the
// store is asked whether what is there is ours.

#include "io/remote/object_requests.h"

#include "core/format.h"
#include "io/remote/base64.h"
#include "io/remote/fetch.h"
#include "io/remote/md5.h"
#include "penstock/error.h"

namespace penstock::io::remote {

Exchange exchange_for(const Location& object, Ask ask) {
  Exchange exchange;
  exchange.request = [&object, ask = std::move(ask)] { return request_for(object, ask); };
  address(exchange, object);
  exchange.writes = true;
  return exchange;
}

std::optional<Answer> head_of(const Location& object, bool patient) {
  Exchange exchange = exchange_for(object, {.method = "HEAD"});
  exchange.patient = patient;
  run_all({&exchange, 1});
  if (!exchange.error) return std::move(exchange.answer);
  const ErrorCode code = exchange.error->code();
  const bool unseen = code == ErrorCode::kPermission && exchange.answer.status == 403 &&
                      store_of(object.kind).writing->refuses_existing;
  if (code == ErrorCode::kNotFound || unseen || !patient) return std::nullopt;
  throw *exchange.error;
}

void refuse_existing(const Location& object, Existing existing, Headers& headers) {
  if (existing == Existing::kReplace) return;
  if (store_of(object.kind).writing->refuses_existing) {
    headers.emplace_back("if-none-match", "*");
    return;
  }
  if (!head_of(object, true)) return;
  throw Error(ErrorCode::kInvalidArgument,
              "there is an object of this name already: name another one, or replace it with --force",
              {.path = object.shown});
}

void run_until_there(Exchange& exchange, const std::function<bool()>& is_ours, bool& may_be_there) {
  may_be_there = true;  // also when waiting for the answer ends by a stop
  run_all({&exchange, 1});
  if (!exchange.error) return;
  may_be_there = exchange.unsettled;
  // libcurl sends a request again by itself where a connection that it used before is closed on it, and tells nobody: a
  // refusal that an earlier try of ours may have led to is looked into in any case.
  const long status = exchange.answer.status;
  const bool may_be_ours = exchange.unsettled || status == 404 || status == 409 || status == 412;
  if (may_be_ours && is_ours()) return;
  throw *exchange.error;
}

std::string xml_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string md5_text(std::span<const std::byte> bytes) { return base64(md5(bytes)); }

}  // namespace penstock::io::remote
