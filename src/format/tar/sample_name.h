#pragma once

// WebDataset's rules: what of a member's name says which sample it belongs to, and what its content is.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/tar/members.h"
#include "penstock/value.h"

namespace penstock::format {

struct Format;

/// What a sample, which is a dict by field, has its key under.
inline constexpr std::string_view kSampleKey = "__key__";
/// What it has the shard under that it was read from, where that is asked for.
inline constexpr std::string_view kSampleUrl = "__url__";

/// Of "a/b.SEG.npy": key "a/b", field "seg.npy". Both are UTF-8; bytes that are none are written out.
struct SampleName {
  std::string key;
  std::string field;
};

/// "__key__" and "__url__": what a sample has of itself, so that a member of such a field would be there twice.
bool is_own_field(std::string_view field) noexcept;

/// Nothing for a member that belongs to no sample: its file name has no dot, begins with one, or is of the form
/// "__info__.json" in no folder; it lies in a folder "__info__" at the top; or it is a folder.
std::optional<SampleName> sample_name(const TarMember& member);

/// The members of an archive that belong to no sample. Where all do, the archive was packed under other names.
class TarStrays {
 public:
  void add(const TarMember& member);
  bool empty() const noexcept { return count_ == 0; }
  /// "holds 2 members, such as 'a', and none of a sample: ...": of an archive that has no others.
  std::string to_string() const;

 private:
  std::uint64_t count_ = 0;
  std::string example_;  ///< a name, of a member that is no folder where there is one
  bool has_file_ = false;
};

/// kUnsupported for a format that a member of tensors cannot have: one that names other files, and archives.
void require_tensors_in(const Format& format);

/// What a field holds, by its last extension.
enum class FieldKind : std::uint8_t {
  kTensors,  ///< npy, npz, pt, pth, safetensors, ten, tb
  kNumber,   ///< cls, cls2, class, count, index, inx, id: a whole number as text
  kText,     ///< txt, text, transcript: UTF-8
  kJson,     ///< json, jsn
  kPickle,   ///< pyd, pkl, pickle: only running code could read them
  kBytes,    ///< all others
};
FieldKind field_kind(std::string_view field) noexcept;

/// Of "seg.npy.gz", "seg.npy": what the content is when it has been unpacked. Nothing for fields that are not packed.
std::optional<std::string_view> gzipped_field(std::string_view field) noexcept;

/// The content of a field that is no file of tensors: an integer, a text, what JSON says, or bytes. kCorrupt for what
/// is none of its kind, kUnsafe for a pickle. `path` and `offset` are the content's place, for errors.
Value field_value(FieldKind kind, std::span<const std::byte> content, const std::string& path, std::uint64_t offset);

}  // namespace penstock::format
