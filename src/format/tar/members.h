#pragma once

// The members of a tar archive, one after the other.

#include <cstdint>
#include <optional>
#include <string>

#include "format/tar/bytes.h"

namespace penstock::format {

struct TarMember {
  enum class Kind : std::uint8_t { kFile, kFolder, kLink, kDevice, kSparse, kOther };

  Kind kind = Kind::kFile;
  std::string name = {};    ///< the bytes as they are: a label, which leads nowhere
  std::uint64_t begin = 0;  ///< of its first header, which may be one that only lengthens its name
  std::uint64_t data = 0;   ///< of its content
  std::uint64_t size = 0;   ///< of its content
  std::uint64_t end = 0;    ///< behind its padding
  bool is_cut = false;      ///< the archive ends within its content or the padding behind it

  /// The last part of the name.
  std::string_view file_name() const noexcept;
};

/// What a member that is no file is, for errors: "a link".
std::string_view kind_text(TarMember::Kind kind) noexcept;

/// Walks over an archive from front to back. Long names (GNU's and pax's) and sizes (pax's) are taken into account;
/// contents are passed by. Two zero blocks end an archive, but another one may have been appended to it: the walk goes
/// on to the end of the bytes. Not thread-safe.
class TarWalk {
 public:
  /// `begin`: where the first header is. `path` is the archive's, for errors.
  TarWalk(TarBytes& bytes, std::string path, std::uint64_t begin = 0)
      : bytes_(bytes), path_(std::move(path)), at_(begin) {}

  /// The next member; nothing at the end. kCorrupt for a block that is no header, kTruncated where the archive ends
  /// within a header, kLimit for a name of more than 1 MiB.
  std::optional<TarMember> next();
  /// Where the next header is to be.
  std::uint64_t at() const noexcept { return at_; }
  /// Whether a block of zeros, which ends an archive, followed the last member. Programs that were killed write none.
  bool has_end() const noexcept { return has_end_; }

 private:
  /// What headers before a member's own say of it.
  struct Before {
    std::optional<std::string> name;
    std::optional<std::string> sparse_name;  ///< of a file with holes, whose other name is made up
    std::optional<std::uint64_t> size;
    bool is_sparse = false;
  };
  void read_extension(char type, std::uint64_t size, Before& before);
  void read_pax(std::string_view records, std::uint64_t offset, bool is_global, Before& before) const;
  void take(std::string_view key, std::string_view value, std::uint64_t offset, bool is_global, Before& before) const;
  std::uint64_t behind(std::uint64_t offset, std::uint64_t bytes, const std::string& name) const;
  void pass_sparse_map(bool is_extended, TarMember& member);

  TarBytes& bytes_;
  std::string path_;
  std::uint64_t at_;
  bool has_end_ = false;
};

}  // namespace penstock::format
