// Header after header: each says how long its content is, and so where the next one lies. Headers of types that only
// say more of the member behind them (a long name, a size beyond 8 GiB) are read and not given.
#include "format/tar/members.h"

#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/parse_number.h"
#include "core/text.h"
#include "format/tar/header.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

/// Of names and pax records, which a hostile archive could make as long as it likes.
constexpr std::uint64_t kMostExtension = std::uint64_t{1} << 20;
/// Headers in front of one member that only say more of it.
constexpr int kMostExtensions = 64;

TarMember::Kind kind_of(char type) noexcept {
  switch (type) {
    case '0':
    case '7':
      return TarMember::Kind::kFile;
    case '1':
    case '2':
      return TarMember::Kind::kLink;
    case '3':
    case '4':
    case '6':
      return TarMember::Kind::kDevice;
    case '5':
      return TarMember::Kind::kFolder;
    case 'S':
      return TarMember::Kind::kSparse;
    default:
      return TarMember::Kind::kOther;
  }
}

/// Whether the size of such a member is that of bytes behind its header. Links and folders may tell a size of what they
/// lead to.
bool has_content(TarMember::Kind kind) noexcept {
  return kind == TarMember::Kind::kFile || kind == TarMember::Kind::kSparse || kind == TarMember::Kind::kOther;
}

/// A pax header for one member: POSIX's, and that of old Solaris, which is alike.
bool is_pax(char type) noexcept { return type == 'x' || type == 'X'; }

bool is_extension(char type) noexcept { return is_pax(type) || type == 'g' || type == 'L' || type == 'K'; }

}  // namespace

std::string_view TarMember::file_name() const noexcept {
  const std::string_view whole = name;
  return whole.substr(whole.rfind('/') + 1);
}

std::string_view kind_text(TarMember::Kind kind) noexcept {
  switch (kind) {
    case TarMember::Kind::kFile:
      return "a file";
    case TarMember::Kind::kFolder:
      return "a folder";
    case TarMember::Kind::kLink:
      return "a link";
    case TarMember::Kind::kDevice:
      return "a device or pipe";
    case TarMember::Kind::kSparse:
      return "a file with holes";
    default:
      return "of an unknown kind";
  }
}

std::optional<TarMember> TarWalk::next() {
  Before before;
  TarMember out{.begin = at_};
  for (int extensions = 0;; at_ += kTarBlock) {
    const std::span<const std::byte> block = bytes_.view(at_, kTarBlock);
    const bool is_between = extensions == 0;  // members, where an archive may end and another begin
    if (is_zero_block(block) && is_between) {
      if (block.size() < kTarBlock) return std::nullopt;
      has_end_ = true;
      out.begin = at_ + kTarBlock;
      continue;
    }
    if (block.size() < kTarBlock) {
      throw Error(ErrorCode::kTruncated, "the archive ends within a header; it is not complete: copy it again",
                  {.path = path_, .offset = at_});
    }
    const TarHeader header = read_tar_header(block, at_, path_);
    if (is_extension(header.type)) {
      if (++extensions > kMostExtensions) {
        throw Error(ErrorCode::kLimit,
                    "more than 64 headers follow one another without a member; make the archive anew",
                    {.path = path_, .offset = at_});
      }
      read_extension(header.type, header.size, before);
      at_ -= kTarBlock;  // which the loop adds
      continue;
    }
    out.kind = before.is_sparse ? TarMember::Kind::kSparse : kind_of(header.type);
    if (before.sparse_name) before.name = std::move(before.sparse_name);
    out.name = before.name ? std::move(*before.name) : header.name;
    out.data = at_ + kTarBlock;
    pass_sparse_map(header.is_extended, out);
    out.size = has_content(out.kind) ? before.size.value_or(header.size) : 0;
    const std::uint64_t end = behind(out.data, out.size, out.name);
    out.is_cut = end > bytes_.size();
    out.end = at_ = end;
    has_end_ = false;
    return out;
  }
}

std::uint64_t TarWalk::behind(std::uint64_t offset, std::uint64_t bytes, const std::string& name) const {
  const std::optional<std::uint64_t> padded = tar_padded(bytes);
  const std::optional<std::uint64_t> end = padded ? core::try_add(offset, *padded) : std::nullopt;
  if (end && *end <= (std::uint64_t{1} << 63)) return *end;
  throw Error(ErrorCode::kCorrupt, "the size of a member is beyond that of any file; make the archive anew",
              {.path = path_, .offset = offset, .tensor = core::escaped(name)});
}

/// Reads the content of an extension, and goes behind it.
void TarWalk::read_extension(char type, std::uint64_t size, Before& before) {
  const std::uint64_t data = at_ + kTarBlock;
  if (size > kMostExtension) {
    throw Error(ErrorCode::kLimit,
                core::format("a name or its like is to have {}, more than 1 MiB; make the archive anew",
                             core::format_bytes(size)),
                {.path = path_, .offset = at_});
  }
  const std::span<const std::byte> bytes = bytes_.view(data, static_cast<std::size_t>(size));
  if (bytes.size() < size) {
    throw Error(ErrorCode::kTruncated, "the archive ends within a header; it is not complete: copy it again",
                {.path = path_, .offset = at_});
  }
  const std::string_view text = core::text_of(bytes);
  if (type == 'L') before.name = std::string(text.substr(0, text.find('\0')));
  if (is_pax(type) || type == 'g') read_pax(text, data, type == 'g', before);
  at_ = behind(data, size, {});
}

/// Each record is "LENGTH KEY=VALUE\n", and its length counts itself.
void TarWalk::read_pax(std::string_view records, std::uint64_t offset, bool is_global, Before& before) const {
  while (!records.empty() && records.front() != '\0') {
    const std::size_t blank = records.find(' ');
    const auto length =
        blank == records.npos ? std::nullopt : core::parse_number<std::uint64_t>(records.substr(0, blank));
    const bool fits = length && *length > blank + 1 && *length <= records.size() && records[*length - 1] == '\n';
    const std::string_view record = fits ? records.substr(blank + 1, *length - blank - 2) : std::string_view();
    const std::size_t equals = record.find('=');
    if (!fits || equals == record.npos) {
      throw Error(ErrorCode::kCorrupt, "a pax header has a record whose length or form is wrong; make the archive anew",
                  {.path = path_, .offset = offset});
    }
    take(record.substr(0, equals), record.substr(equals + 1), offset, is_global, before);
    records.remove_prefix(static_cast<std::size_t>(*length));
    offset += *length;
  }
}

void TarWalk::take(std::string_view key, std::string_view value, std::uint64_t offset, bool is_global,
                   Before& before) const {
  const bool is_sparse = key.starts_with("GNU.sparse.");
  if (key != "path" && key != "size" && !is_sparse) return;
  if (is_global) {
    throw Error(ErrorCode::kUnsupported,
                core::format("a pax header gives all members one {}, which no program does that packs samples; make "
                             "the archive anew",
                             core::escaped(key)),
                {.path = path_, .offset = offset});
  }
  before.is_sparse = before.is_sparse || is_sparse;
  const std::string_view text = value.substr(0, value.find('\0'));
  if (key == "path") before.name = std::string(text);
  if (key == "GNU.sparse.name") before.sparse_name = std::string(text);
  if (key != "size") return;
  before.size = core::parse_number<std::uint64_t>(value);
  if (before.size) return;
  throw Error(ErrorCode::kCorrupt, "a pax header gives a member a size that is no number; make the archive anew",
              {.path = path_, .offset = offset});
}

/// Old GNU archives have more of a sparse file's map in blocks between header and content; each says whether one
/// follows.
void TarWalk::pass_sparse_map(bool is_extended, TarMember& member) {
  constexpr std::size_t kIsExtended = 504;
  while (is_extended) {
    const std::span<const std::byte> block = bytes_.view(member.data, kTarBlock);
    if (block.size() < kTarBlock) {
      throw Error(ErrorCode::kTruncated, "the archive ends within a header; it is not complete: copy it again",
                  {.path = path_, .offset = at_});
    }
    is_extended = block[kIsExtended] != std::byte{0};
    member.data += kTarBlock;
  }
}

}  // namespace penstock::format
