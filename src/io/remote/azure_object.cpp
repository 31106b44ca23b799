// Blocks belong to the name of a blob and not to an upload, so the names of an upload's blocks begin with a random
// word: its id. By them a committed blob is known for ours, and a list of blocks that is sent again after its answer
// was lost makes the same blob. All names of blocks have one length, as Azure wants it. What is never committed, Azure
// deletes by itself: there is no request that takes blocks back and leaves what the name has now.
//
// https://learn.microsoft.com/rest/api/storageservices/put-block-list

#include "io/remote/azure_object.h"

#include <array>
#include <optional>
#include <random>
#include <utility>

#include "core/format.h"
#include "io/remote/base64.h"
#include "io/remote/fetch.h"
#include "io/remote/list_page.h"
#include "io/remote/sha256.h"
#include "io/remote/xml.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// What is written is there when the service says 201: whatever answers otherwise (a page of a proxy) wrote nothing.
Verdict require_created(const Answer& answer) {
  if (answer.status == 201) return {};
  return again(core::format("the server answered {}, which does not say that the object is there", answer.status));
}

/// Whether the blob that is there was put with these bytes.
bool has_md5(const Location& object, const std::string& md5) {
  const std::optional<Answer> head = head_of(object, false);
  return head && head->header("content-md5") == md5;
}

void put_blob(const Location& object, std::span<const std::byte> bytes, Existing existing, bool& may_be_there) {
  const std::string md5 = md5_text(bytes);
  Headers headers = {{"content-type", std::string(kObjectType)}, {"content-md5", md5}, {"x-ms-blob-type", "BlockBlob"}};
  refuse_existing(object, existing, headers);
  Exchange exchange = exchange_for(object, {.method = "PUT", .signed_headers = std::move(headers), .payload = bytes});
  exchange.accept = require_created;
  run_until_there(
      exchange, [&] { return has_md5(object, md5); }, may_be_there);
}

std::string new_id(const Location&) {
  std::random_device random;
  std::array<std::uint8_t, 12> bytes{};
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return hex(bytes);
}

std::string block_name(const std::string& id, std::size_t number) {
  const std::string text = core::format("{}-{:05}", id, number);
  return base64({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

UploadedPart put_block(const Location& object, const std::string& id, std::size_t number,
                       std::span<const std::byte> bytes) {
  const std::string name = block_name(id, number);
  Exchange exchange = exchange_for(
      object, {.method = "PUT",
               .query = {{"blockid", name}, {"comp", "block"}},
               .signed_headers = {{"content-type", std::string(kObjectType)}, {"content-md5", md5_text(bytes)}},
               .payload = bytes});
  exchange.accept = require_created;
  run({&exchange, 1});
  return {.etag = name};
}

std::string block_list(std::span<const UploadedPart> parts) {
  std::string xml = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
  for (const UploadedPart& part : parts) xml += core::format("<Latest>{}</Latest>", part.etag);
  return xml + "</BlockList>";
}

/// Whether the blob that is there has these blocks, and no others.
bool has_blocks(const Location& object, std::span<const UploadedPart> parts) {
  Exchange exchange = exchange_for(object, {.query = {{"blocklisttype", "committed"}, {"comp", "blocklist"}}});
  exchange.patient = false;
  exchange.most_text = std::size_t{4} << 20;  // 10,000 blocks
  run_all({&exchange, 1});
  if (exchange.error) return false;
  std::size_t found = 0;
  bool same = true;
  each_element(exchange.answer.text, "Block", [&](std::string_view one) {
    same = same && found < parts.size() && xml_text(one, "Name") == parts[found].etag;
    ++found;
  });
  return same && found == parts.size();
}

void commit_blocks(const Location& object, const std::string&, std::span<const UploadedPart> parts, Existing existing,
                   bool& may_be_there) {
  Headers headers = {{"content-type", "application/xml"}, {"x-ms-blob-content-type", std::string(kObjectType)}};
  refuse_existing(object, existing, headers);
  Exchange exchange = exchange_for(object, {.method = "PUT",
                                            .query = {{"comp", "blocklist"}},
                                            .signed_headers = std::move(headers),
                                            .body = block_list(parts)});
  exchange.accept = require_created;
  run_until_there(
      exchange, [&] { return has_blocks(object, parts); }, may_be_there);
}

}  // namespace

const Writing kAzureWriting{.put = put_blob, .begin = new_id, .put_part = put_block, .complete = commit_blocks};

}  // namespace penstock::io::remote
