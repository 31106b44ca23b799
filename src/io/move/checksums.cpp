// Buffers are filled in parts of any size, by any thread. The records of a move are sorted by their place in the
// buffers, so that a binary search finds the record of each part. The CRC-32 of a part is computed by the thread that
// read it; the thread that brings the last part of a record compares.

#include "io/move/checksums.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "io/copy/crc32.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

std::uint64_t end_of(const Checksum& checksum) noexcept { return checksum.buffer_offset + checksum.length; }

}  // namespace

Checksums::Checksums(std::span<const Checksum> checksums) {
  checksums_.reserve(checksums.size());
  for (const Checksum& checksum : checksums) {
    core::checked_add(checksum.buffer_offset, checksum.length, "a checksum's run");
    checksums_.push_back(checksum);
    if (checksum.length > 0) continue;
    checksums_.back().check.finish();
    checksums_.pop_back();
  }
  const auto key = [](const Checksum& c) { return std::pair(c.buffer, c.buffer_offset); };
  std::ranges::sort(checksums_, {}, key);
}

std::size_t Checksums::first_behind(std::uint32_t buffer, std::uint64_t buffer_offset) const {
  const auto end = [](const Checksum& c) { return std::pair(c.buffer, end_of(c)); };
  const auto at = std::ranges::upper_bound(checksums_, std::pair(buffer, buffer_offset), {}, end);
  return static_cast<std::size_t>(at - checksums_.begin());
}

bool Checksums::cover(std::uint32_t buffer, std::uint64_t buffer_offset, std::uint64_t length) const {
  return next_run(buffer, buffer_offset, buffer_offset + length).has_value();
}

std::optional<Checksums::RecordRun> Checksums::next_run(std::uint32_t buffer, std::uint64_t begin,
                                                        std::uint64_t end) const {
  const std::size_t i = first_behind(buffer, begin);
  if (i == checksums_.size()) return std::nullopt;
  const Checksum& checksum = checksums_[i];
  if (begin >= end || checksum.buffer != buffer || checksum.buffer_offset >= end) return std::nullopt;
  const std::uint64_t first = std::max(begin, checksum.buffer_offset);
  return RecordRun{i, first, std::min(end, end_of(checksum)) - first};
}

void Checksums::arrived(std::uint32_t buffer, std::uint64_t buffer_offset, std::span<const std::byte> bytes) {
  const std::uint64_t end = buffer_offset + bytes.size();
  std::uint64_t at = buffer_offset;
  while (const std::optional<RecordRun> run = next_run(buffer, at, end)) {
    arrived(*run, crc32(0, bytes.subspan(run->begin - buffer_offset, run->length)));
    at = run->begin + run->length;
  }
}

void Checksums::arrived(const RecordRun& run, std::uint32_t crc) {
  RecordCheck& check = checksums_[run.checksum].check;
  {
    const std::scoped_lock lock(mutex_);
    check.add_part({run.begin, run.length, crc});
    if (check.missing() > 0) return;
  }
  // No other thread has bytes of this record any more.
  check.finish();
}

void Checksums::require_complete() const {
  for (const Checksum& checksum : checksums_) {
    const std::uint64_t missing = checksum.check.missing();
    if (missing == 0) continue;
    const Record& record = checksum.check.record();
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the plan leaves {} of a run with a checksum unread", core::counted(missing, "byte")),
                {.path = {}, .offset = record.offset, .tensor = std::string(record.name)});
  }
}

}  // namespace penstock::io
