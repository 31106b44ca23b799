#include "format/tar/sample_walk.h"

#include "format/tar/header.h"
#include "penstock/error.h"

namespace penstock::format {

std::optional<TarSampleWalk::Span> TarSampleWalk::next() {
  // An archive without members still has its end; no byte at all is what is left of a copy or program that failed.
  if (walk_.at() == 0 && bytes_.view(0, kTarBlock).empty()) {
    throw Error(ErrorCode::kTruncated, "the shard has no bytes, not even the end of an archive; copy it again",
                {.path = path_, .offset = 0});
  }
  std::optional<Span> open;
  std::string key;
  std::optional<TarMember> member = std::exchange(pending_, std::nullopt);
  for (;; member.reset()) {
    if (!member) member = next_member(open);
    if (!member) return open;
    auto name = sample_name(*member);
    if (!name) {
      strays_.add(*member);
      if (!open) bytes_.forget(member->end);
      continue;
    }
    if (open && name->key != key) {
      pending_ = std::move(member);
      return open;
    }
    open = Span{open ? open->begin : member->begin, member->end};
    key = std::move(name->key);
  }
}

std::optional<TarMember> TarSampleWalk::next_member(std::optional<Span>& open) {
  if (is_over_) return std::nullopt;
  try {
    return walk_.next();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTruncated || !open || error.offset() != walk_.at()) throw;
    open->end = bytes_.size();
    is_over_ = true;
    return std::nullopt;
  }
}

}  // namespace penstock::format
