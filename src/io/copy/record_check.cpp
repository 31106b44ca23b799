// A CRC-32 can be combined from those of parts, so that each part is computed where and when it arrives, while its
// bytes are in the processor's cache. Combining two CRCs takes about as long as reading a few hundred bytes. Bytes that
// come in order therefore continue one CRC, and a record that comes as a single part is not combined at all.

#include "io/copy/record_check.h"

#include <algorithm>
#include <string>

#include "core/format.h"
#include "core/text.h"
#include "io/copy/crc32.h"
#include "penstock/error.h"

namespace penstock::io {

void RecordCheck::add(std::span<const std::byte> bytes) noexcept {
  if (!wanted_) return;
  crc_ = crc32(crc_, bytes);
  seen_ += bytes.size();
}

void RecordCheck::add_known(std::uint32_t crc, std::uint64_t length) noexcept {
  if (!wanted_) return;
  crc_ = seen_ == 0 ? crc : crc32_combine(crc_, crc, length);
  seen_ += length;
}

void RecordCheck::add_part(const RecordPart& part) {
  if (!wanted_) return;
  if (seen_ == 0 && part.length == record_.bytes) {
    crc_ = part.crc;
  } else {
    parts_.push_back(part);
  }
  seen_ += part.length;
}

void RecordCheck::combine_parts() {
  std::sort(parts_.begin(), parts_.end(), [](const RecordPart& a, const RecordPart& b) { return a.begin < b.begin; });
  for (const RecordPart& part : parts_) crc_ = crc32_combine(crc_, part.crc, part.length);
  parts_.clear();
}

bool RecordCheck::holds() {
  if (!wanted_) return true;
  combine_parts();
  return crc_ == *record_.crc32;
}

void RecordCheck::finish() {
  if (!holds()) fail();
}

void RecordCheck::check(std::span<const std::byte> bytes) {
  add(bytes);
  finish();
}

void RecordCheck::fail() const {
  throw Error(
      ErrorCode::kChecksum,
      core::format("the {} have CRC-32 {:08x}, but {:08x} is recorded for them; the file is damaged, so fetch or "
                   "write it again",
                   core::format_bytes(record_.bytes), crc_, *record_.crc32),
      {.path = std::string(record_.path), .offset = record_.offset, .tensor = std::string(record_.name)});
}

}  // namespace penstock::io
