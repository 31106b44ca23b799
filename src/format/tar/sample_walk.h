#pragma once

// Where one sample of an archive ends and the next begins, for all that walk over archives without taking them apart.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "format/tar/bytes.h"
#include "format/tar/members.h"
#include "format/tar/sample_name.h"

namespace penstock::format {

/// Walks over the samples of an archive: the members that follow one another with one key. Members of no sample are
/// passed by. Not thread-safe.
class TarSampleWalk {
 public:
  struct Span {
    std::uint64_t begin;  ///< of the first member's first header
    std::uint64_t end;    ///< behind the last member, which may be behind the end of an archive that was cut
  };

  TarSampleWalk(TarBytes& bytes, std::string path) : bytes_(bytes), path_(std::move(path)), walk_(bytes, path_) {}

  /// The next sample; nothing at the end. A header that is cut belongs to the sample before it, which reaches to the
  /// archive's end then, so that its read says so. Errors as TarWalk::next; kTruncated for no bytes at all.
  std::optional<Span> next();
  /// The members so far that belong to no sample.
  const TarStrays& strays() const noexcept { return strays_; }
  /// For behind the last sample: whether blocks of zeros end the archive. Also true of one that was cut within a
  /// member, because the read of that sample says so.
  bool has_end() const noexcept { return walk_.has_end() || walk_.at() != bytes_.size(); }

 private:
  std::optional<TarMember> next_member(std::optional<Span>& open);

  TarBytes& bytes_;
  std::string path_;
  TarWalk walk_;
  TarStrays strays_;
  std::optional<TarMember> pending_;  ///< the first of the next sample
  bool is_over_ = false;              ///< a header was cut, which was told by the last sample
};

}  // namespace penstock::format
