// A CRC-32 of a whole run is combined from those of its parts, which may arrive in any order: each part is computed
// where it arrives, and the last one to arrive sorts them, combines them and compares.

#include "io/move/checksums.h"

#include <algorithm>
#include <tuple>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "io/copy/crc32.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

std::uint64_t end_of(const Checksum& checksum) noexcept { return checksum.buffer_offset + checksum.length; }

}  // namespace

Checksums::Checksums(std::span<const Checksum> checksums, std::span<const SourcePtr> sources)
    : checksums_(checksums), sources_(sources) {
  states_.reserve(checksums.size());
  for (const Checksum& checksum : checksums) {
    core::checked_add(checksum.buffer_offset, checksum.length, "a checksum's run");
    if (checksum.length == 0) {
      compare(checksum, crc32(0, {}));
    } else {
      states_.push_back({&checksum, checksum.length});
    }
  }
  const auto key = [](const State& s) { return std::tie(s.checksum->buffer, s.checksum->buffer_offset); };
  std::sort(states_.begin(), states_.end(), [&](const State& a, const State& b) { return key(a) < key(b); });
}

std::size_t Checksums::first_behind(std::uint32_t buffer, std::uint64_t buffer_offset) const {
  const auto ends_before = [](const State& state, const std::pair<std::uint32_t, std::uint64_t>& at) {
    return std::pair(state.checksum->buffer, end_of(*state.checksum)) <= at;
  };
  const auto at = std::lower_bound(states_.begin(), states_.end(), std::pair(buffer, buffer_offset), ends_before);
  return static_cast<std::size_t>(at - states_.begin());
}

bool Checksums::cover(std::uint32_t buffer, std::uint64_t buffer_offset, std::uint64_t length) const {
  return next_run(buffer, buffer_offset, buffer_offset + length).has_value();
}

std::optional<Checksums::Run> Checksums::next_run(std::uint32_t buffer, std::uint64_t begin, std::uint64_t end) const {
  const std::size_t i = first_behind(buffer, begin);
  if (i == states_.size()) return std::nullopt;
  const Checksum& checksum = *states_[i].checksum;
  if (begin >= end || checksum.buffer != buffer || checksum.buffer_offset >= end) return std::nullopt;
  const std::uint64_t first = std::max(begin, checksum.buffer_offset);
  return Run{i, first, std::min(end, end_of(checksum)) - first};
}

void Checksums::arrived(std::uint32_t buffer, std::uint64_t buffer_offset, std::span<const std::byte> bytes) {
  const std::uint64_t end = buffer_offset + bytes.size();
  std::uint64_t at = buffer_offset;
  while (const std::optional<Run> run = next_run(buffer, at, end)) {
    arrived(*run, crc32(0, bytes.subspan(run->begin - buffer_offset, run->length)));
    at = run->begin + run->length;
  }
}

void Checksums::arrived(const Run& run, std::uint32_t crc) {
  State& state = states_[run.checksum];
  const Part part{run.begin, run.length, crc};
  std::uint32_t computed = part.crc;
  {
    const std::scoped_lock lock(mutex_);
    state.missing -= std::min(state.missing, part.length);
    if (part.length != state.checksum->length) state.parts.push_back(part);
    if (state.missing > 0) return;
    if (!state.parts.empty()) {
      std::sort(state.parts.begin(), state.parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
      computed = crc32(0, {});
      for (const Part& p : state.parts) computed = crc32_combine(computed, p.crc, p.length);
    }
  }
  compare(*state.checksum, computed);
}

void Checksums::compare(const Checksum& checksum, std::uint32_t computed) const {
  // To combine takes as long as to read a few hundred bytes.
  if (checksum.before != 0) computed = crc32_combine(checksum.before, computed, checksum.length);
  require_crc(computed, checksum.crc32, checksum.length,
              {.path = checksum.source < sources_.size() ? sources_[checksum.source]->name() : std::string(),
               .offset = checksum.offset,
               .tensor = checksum.record});
}

void Checksums::require_complete() const {
  for (const State& state : states_) {
    if (state.missing == 0) continue;
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("the plan leaves {} of a run with a checksum unread", core::counted(state.missing, "byte")),
        {.path = {}, .offset = state.checksum->offset, .tensor = state.checksum->record});
  }
}

}  // namespace penstock::io
