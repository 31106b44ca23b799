// The bytes travel with a checksum that the store compares: CRC-32, and for Google's, which does not know that, MD5.
// What is there is ours when its ETag is made of the MD5 of what was sent.

#include "io/remote/s3_object.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "core/format.h"
#include "io/copy/crc32.h"
#include "io/remote/base64.h"
#include "io/remote/fetch.h"
#include "io/remote/md5.h"
#include "io/remote/sha256.h"
#include "io/remote/xml.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

std::string md5_etag(std::span<const std::byte> bytes) { return core::format("\"{}\"", hex(md5(bytes))); }

std::string crc32_text(std::span<const std::byte> bytes) {
  const std::uint32_t sum = crc32(0, bytes);
  const auto byte = [sum](int shift) { return static_cast<std::uint8_t>(sum >> shift); };
  return base64(std::array{byte(24), byte(16), byte(8), byte(0)});
}

/// What the store compares the bytes with.
std::pair<std::string, std::string> checksum(const Location& object, std::span<const std::byte> bytes) {
  if (object.kind == Kind::kGs) return {"content-md5", md5_text(bytes)};
  return {"x-amz-checksum-crc32", crc32_text(bytes)};
}

/// Whether the object that is there has this ETag.
bool has_etag(const Location& object, const std::string& etag) {
  if (etag.empty()) return false;
  const std::optional<Answer> head = head_of(object, false);
  return head && head->header("etag") == etag;
}

std::string list_of(std::span<const UploadedPart> parts) {
  std::string xml = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    xml += core::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag>", i + 1, xml_encoded(parts[i].etag));
    if (!parts[i].crc32.empty()) xml += core::format("<ChecksumCRC32>{}</ChecksumCRC32>", parts[i].crc32);
    xml += "</Part>";
  }
  return xml + "</CompleteMultipartUpload>";
}

void put_by_s3(const Location& object, std::span<const std::byte> bytes, Existing existing, bool& may_be_there) {
  Headers headers = {{"content-type", std::string(kObjectType)}, checksum(object, bytes)};
  refuse_existing(object, existing, headers);
  Exchange exchange = exchange_for(object, {.method = "PUT", .signed_headers = std::move(headers), .payload = bytes});
  // A store says which object it has now; the page of a proxy says nothing of one.
  exchange.accept = [endpoint = exchange.terms.endpoint](const Answer& answer) {
    if (!answer.header("etag").empty()) return Verdict{};
    return fail(ErrorCode::kIo, core::format("the server answered {} without an ETag, which does not say that the "
                                             "object is there; check {}",
                                             answer.status, endpoint));
  };
  run_until_there(
      exchange, [&] { return has_etag(object, md5_etag(bytes)); }, may_be_there);
}

std::string begin_by_s3(const Location& object) {
  Headers headers = {{"content-type", std::string(kObjectType)}};
  if (object.kind == Kind::kS3) headers.emplace_back("x-amz-checksum-algorithm", "CRC32");
  Exchange exchange =
      exchange_for(object, {.method = "POST", .query = {{"uploads", ""}}, .signed_headers = std::move(headers)});
  exchange.expects = "</UploadId>";
  run({&exchange, 1});
  return xml_text(exchange.answer.text, "UploadId");
}

UploadedPart put_part_by_s3(const Location& object, const std::string& id, std::size_t number,
                            std::span<const std::byte> bytes) {
  const auto sum = checksum(object, bytes);
  Exchange exchange = exchange_for(object, {.method = "PUT",
                                            .query = {{"partNumber", std::to_string(number)}, {"uploadId", id}},
                                            .signed_headers = {{"content-type", std::string(kObjectType)}, sum},
                                            .payload = bytes});
  run({&exchange, 1});
  UploadedPart part{.etag = exchange.answer.header("etag"),
                    .crc32 = object.kind == Kind::kGs ? std::string() : sum.second};
  if (!part.etag.empty()) return part;
  throw Error(ErrorCode::kIo, "the store gives no ETag for a part of the object; check the store's endpoint",
              {.path = object.shown});
}

void complete_by_s3(const Location& object, const std::string& id, std::span<const UploadedPart> parts,
                    Existing existing, bool& may_be_there) {
  Headers headers = {{"content-type", "application/xml"}};
  refuse_existing(object, existing, headers);
  Exchange exchange = exchange_for(
      object,
      {.method = "POST", .query = {{"uploadId", id}}, .signed_headers = std::move(headers), .body = list_of(parts)});
  exchange.expects = "</CompleteMultipartUploadResult>";
  run_until_there(
      exchange, [&] { return has_etag(object, etag_of(parts)); }, may_be_there);
}

Exchange abort_by_s3(const Location& object, const std::string& id) {
  return exchange_for(object, {.method = "DELETE", .query = {{"uploadId", id}}});
}

}  // namespace

const Writing kS3Writing{.put = put_by_s3,
                         .begin = begin_by_s3,
                         .put_part = put_part_by_s3,
                         .complete = complete_by_s3,
                         .abort = abort_by_s3};

/// Google's stores know no such condition in what speaks like Amazon's.
const Writing kGsWriting{.put = put_by_s3,
                         .begin = begin_by_s3,
                         .put_part = put_part_by_s3,
                         .complete = complete_by_s3,
                         .abort = abort_by_s3,
                         .refuses_existing = false};

std::string etag_of(std::span<const UploadedPart> parts) {
  std::vector<std::byte> sums;
  for (const UploadedPart& part : parts) {
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

}  // namespace penstock::io::remote
