// A store may do what it was asked and its answer may be lost. The next try is then refused: there is no such upload
// any more, or there is an object of that name already. So before a refusal counts that was not the first answer, the
// object is asked for its ETag, which tells whether it is ours.

#include "io/remote/object.h"

#include <array>
#include <charconv>
#include <optional>
#include <stop_token>
#include <utility>

#include "core/format.h"
#include "core/stop_scope.h"
#include "core/text.h"
#include "io/copy/crc32.h"
#include "io/remote/fetch.h"
#include "io/remote/md5.h"
#include "io/remote/sha256.h"
#include "io/remote/store.h"
#include "io/remote/store_error.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

constexpr int kAbortTries = 3;
constexpr std::string_view kObjectType = "application/octet-stream";

using Headers = std::vector<std::pair<std::string, std::string>>;

Exchange exchange_for(const Location& object, Ask ask) {
  Exchange exchange;
  exchange.request = [&object, ask = std::move(ask)] { return request_for(object, ask); };
  address(exchange, object);
  exchange.writes = true;
  return exchange;
}

std::string md5_etag(std::span<const std::byte> bytes) { return core::format("\"{}\"", hex(md5(bytes))); }

std::string crc32_text(std::span<const std::byte> bytes) {
  const std::uint32_t sum = crc32(0, bytes);
  const auto byte = [sum](int shift) { return static_cast<std::uint8_t>(sum >> shift); };
  return base64(std::array{byte(24), byte(16), byte(8), byte(0)});
}

/// What the store compares the bytes with.
std::pair<std::string, std::string> checksum(const Location& object, std::span<const std::byte> bytes) {
  if (object.kind == Kind::kGs) return {"content-md5", base64(md5(bytes))};
  return {"x-amz-checksum-crc32", crc32_text(bytes)};
}

/// Google's stores know no such condition in what speaks like Amazon's.
void refuse_existing(const Location& object, Existing existing, Headers& headers) {
  if (existing == Existing::kReplace) return;
  if (object.kind == Kind::kS3) {
    headers.emplace_back("if-none-match", "*");
    return;
  }
  if (!object_exists(object)) return;
  throw Error(ErrorCode::kInvalidArgument,
              "there is an object of this name already: name another one, or replace it with --force",
              {.path = object.shown});
}

/// The answer to HEAD; nothing where there is no object, or none that can be seen.
std::optional<Answer> head_of(const Location& object, bool patient) {
  Exchange exchange = exchange_for(object, {.method = "HEAD"});
  exchange.patient = patient;
  run_all({&exchange, 1});
  if (!exchange.error) return std::move(exchange.answer);
  const ErrorCode code = exchange.error->code();
  const bool unseen = code == ErrorCode::kPermission && exchange.answer.status == 403 && object.kind == Kind::kS3;
  if (code == ErrorCode::kNotFound || unseen || !patient) return std::nullopt;
  throw *exchange.error;
}

/// Runs it; where a try may have been carried out, an object with `etag` is what was wanted.
void run_until_there(const Location& object, Exchange& exchange, const std::function<std::string()>& etag,
                     bool& may_be_there) {
  may_be_there = true;  // also when waiting for the answer ends by a stop
  run_all({&exchange, 1});
  if (!exchange.error) return;
  may_be_there = exchange.unsettled;
  if (exchange.unsettled) {
    const std::optional<Answer> head = head_of(object, false);
    const std::string ours = etag();
    if (head && !ours.empty() && head->header("etag") == ours) return;
  }
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

std::string list_of(std::span<const Part> parts) {
  std::string xml = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    xml += core::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag>", i + 1, xml_encoded(parts[i].etag));
    if (!parts[i].crc32.empty()) xml += core::format("<ChecksumCRC32>{}</ChecksumCRC32>", parts[i].crc32);
    xml += "</Part>";
  }
  return xml + "</CompleteMultipartUpload>";
}

}  // namespace

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t n) { return i + n < bytes.size() ? std::uint32_t{bytes[i + n]} : 0U; };
    const std::uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (int shift = 18; shift >= 0; shift -= 6) out += kLetters[three >> shift & 63];
  }
  for (std::size_t i = 0; i < (3 - bytes.size() % 3) % 3; ++i) out[out.size() - 1 - i] = '=';
  return out;
}

std::string etag_of(std::span<const Part> parts) {
  std::vector<std::byte> sums;
  for (const Part& part : parts) {
    constexpr std::size_t kMd5 = 2 + 32;  // quoted
    if (part.etag.size() != kMd5) return {};
    for (std::size_t i = 1; i + 1 < kMd5; i += 2) {
      unsigned value = 0;
      const char* const end = part.etag.data() + i + 2;
      if (std::from_chars(part.etag.data() + i, end, value, 16).ptr != end) return {};
      sums.push_back(static_cast<std::byte>(value));
    }
  }
  return core::format("\"{}-{}\"", hex(md5(sums)), parts.size());
}

Location parse_object(std::string_view url) {
  Location object = parse(url);
  if (!object.key.empty() && !object.key.ends_with('/')) return object;
  throw Error(ErrorCode::kIsDirectory,
              core::format("this names {} where an object is to be written; add a name to it",
                           object.key.empty() ? "a bucket" : "a folder of a bucket"),
              {.path = object.shown});
}

bool is_same_object(const Location& a, const Location& b) noexcept {
  return a.kind == b.kind && a.url == b.url && a.bucket == b.bucket && a.key == b.key;
}

bool object_exists(const Location& object) { return head_of(object, true).has_value(); }

void remove_object(const Location& object) {
  Exchange exchange = exchange_for(object, {.method = "DELETE"});
  run({&exchange, 1});
}

void put_object(const Location& object, std::span<const std::byte> bytes, Existing existing, bool& may_be_there) {
  Headers headers = {{"content-type", std::string(kObjectType)}, checksum(object, bytes)};
  refuse_existing(object, existing, headers);
  Exchange exchange = exchange_for(object, {.method = "PUT", .signed_headers = std::move(headers), .payload = bytes});
  run_until_there(
      object, exchange, [&] { return md5_etag(bytes); }, may_be_there);
}

std::string begin_parts(const Location& object) {
  Headers headers = {{"content-type", std::string(kObjectType)}};
  if (object.kind == Kind::kS3) headers.emplace_back("x-amz-checksum-algorithm", "CRC32");
  Exchange exchange =
      exchange_for(object, {.method = "POST", .query = {{"uploads", ""}}, .signed_headers = std::move(headers)});
  exchange.expects = "</UploadId>";
  run({&exchange, 1});
  return xml_text(exchange.answer.text, "UploadId");
}

Part put_part(const Location& object, const std::string& id, std::size_t number, std::span<const std::byte> bytes) {
  const auto sum = checksum(object, bytes);
  Exchange exchange = exchange_for(object, {.method = "PUT",
                                            .query = {{"partNumber", std::to_string(number)}, {"uploadId", id}},
                                            .signed_headers = {{"content-type", std::string(kObjectType)}, sum},
                                            .payload = bytes});
  run({&exchange, 1});
  Part part{.etag = exchange.answer.header("etag"), .crc32 = object.kind == Kind::kGs ? std::string() : sum.second};
  if (!part.etag.empty()) return part;
  throw Error(ErrorCode::kIo, "the store gives no ETag for a part of the object; check AWS_ENDPOINT_URL",
              {.path = object.shown});
}

void complete_parts(const Location& object, const std::string& id, std::span<const Part> parts, Existing existing,
                    bool& may_be_there) {
  Headers headers = {{"content-type", "application/xml"}};
  refuse_existing(object, existing, headers);
  Exchange exchange = exchange_for(
      object,
      {.method = "POST", .query = {{"uploadId", id}}, .signed_headers = std::move(headers), .body = list_of(parts)});
  exchange.expects = "</CompleteMultipartUploadResult>";
  run_until_there(
      object, exchange, [&] { return etag_of(parts); }, may_be_there);
}

bool abort_parts(const Location& object, const std::string& id) noexcept {
  try {
    // A stop that was asked of this thread is why it is called.
    const std::stop_source never;
    const std::stop_token token = never.get_token();
    const core::StopScope scope(token);
    for (int i = 0; i < kAbortTries; ++i) {
      Exchange exchange = exchange_for(object, {.method = "DELETE", .query = {{"uploadId", id}}});
      exchange.patient = false;
      run_all({&exchange, 1});
      if (!exchange.error || exchange.answer.status == 404) return true;
    }
  } catch (const std::exception&) {
    // Rules of the bucket end it.
  }
  return false;
}

}  // namespace penstock::io::remote
