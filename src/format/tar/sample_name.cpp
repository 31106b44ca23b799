#include "format/tar/sample_name.h"

#include <algorithm>
#include <array>

#include "core/ascii.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/parse_number.h"
#include "core/text.h"
#include "core/utf8.h"
#include "format/format.h"
#include "format/text/json_value.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

struct Extension {
  std::string_view name;
  FieldKind kind;
};

constexpr std::array kFieldExtensions{
    Extension{"npy", FieldKind::kTensors},
    Extension{"npz", FieldKind::kTensors},
    Extension{"pt", FieldKind::kTensors},
    Extension{"pth", FieldKind::kTensors},
    Extension{"safetensors", FieldKind::kTensors},
    Extension{"ten", FieldKind::kTensors},
    Extension{"tb", FieldKind::kTensors},
    Extension{"cls", FieldKind::kNumber},
    Extension{"cls2", FieldKind::kNumber},
    Extension{"class", FieldKind::kNumber},
    Extension{"count", FieldKind::kNumber},
    Extension{"index", FieldKind::kNumber},
    Extension{"inx", FieldKind::kNumber},
    Extension{"id", FieldKind::kNumber},
    Extension{"txt", FieldKind::kText},
    Extension{"text", FieldKind::kText},
    Extension{"transcript", FieldKind::kText},
    Extension{"json", FieldKind::kJson},
    Extension{"jsn", FieldKind::kJson},
    Extension{"pyd", FieldKind::kPickle},
    Extension{"pkl", FieldKind::kPickle},
    Extension{"pickle", FieldKind::kPickle},
};

std::string as_utf8(std::string_view bytes) { return core::is_utf8(bytes) ? std::string(bytes) : core::escaped(bytes); }

/// "__info__": what WebDataset keeps such names for, and passes by, are not samples.
bool is_meta(std::string_view name) { return name.size() >= 4 && name.starts_with("__") && name.ends_with("__"); }

Value number_of(std::string_view text, const ErrorContext& where) {
  text = core::trimmed(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (const auto number = core::parse_number<std::int64_t>(text)) return Value::integer(*number);
  throw Error(ErrorCode::kCorrupt,
              core::format("found {}, expected a whole number of at most 64 bits, which a field of this name holds; "
                           "leave the field out with keys, or take the bytes with raw",
                           core::quoted(text)),
              where);
}

Value text_of(std::string_view text, const ErrorContext& where) {
  if (core::is_utf8(text)) return Value::string(std::string(text));
  throw Error(ErrorCode::kCorrupt, "the text is not UTF-8; leave the field out with keys, or take the bytes with raw",
              where);
}

}  // namespace

std::optional<SampleName> sample_name(const TarMember& member) {
  if (member.kind == TarMember::Kind::kFolder) return std::nullopt;
  const std::string_view name = member.name;
  const std::string_view file = member.file_name();
  const std::size_t dot = file.find('.');
  if (dot == file.npos || dot == 0) return std::nullopt;
  const std::size_t begin = name.size() - file.size();
  const std::string_view stem = file.substr(0, dot);
  if (begin == 0 && stem.size() > 4 && is_meta(stem)) return std::nullopt;
  if (begin != 0 && is_meta(name.substr(0, name.find('/')))) return std::nullopt;
  return SampleName{as_utf8(name.substr(0, begin + dot)), core::lower(as_utf8(file.substr(dot + 1)))};
}

bool is_own_field(std::string_view field) noexcept { return field == kSampleKey || field == kSampleUrl; }

void TarStrays::add(const TarMember& member) {
  const bool is_file = member.kind != TarMember::Kind::kFolder;
  if (count_ == 0 || (is_file && !has_file_)) example_ = member.name;
  has_file_ = has_file_ || is_file;
  ++count_;
}

std::string TarStrays::to_string() const {
  return core::format(
      "holds {}, such as {}, and none of a sample, whose members are named KEY.FIELD, as 0001.npy is, and not __X__; "
      "pack the files anew under such names, or unpack the archive",
      core::counted(count_, "member"), core::quoted(example_));
}

void require_tensors_in(const Format& format) {
  if (!format.is_index && !format.is_folder && !format.is_listed && !format.holds_samples) return;
  throw Error(ErrorCode::kUnsupported, "a member names other files, or is an archive; only files of tensors are read");
}

FieldKind field_kind(std::string_view field) noexcept {
  const std::string_view last = field.substr(field.rfind('.') + 1);
  const auto* const found = std::find_if(kFieldExtensions.begin(), kFieldExtensions.end(),
                                         [&](const Extension& known) { return known.name == last; });
  return found == kFieldExtensions.end() ? FieldKind::kBytes : found->kind;
}

std::optional<std::string_view> gzipped_field(std::string_view field) noexcept {
  if (field == "gz") return std::string_view();
  return field.ends_with(".gz") ? std::optional(field.substr(0, field.size() - 3)) : std::nullopt;
}

Value field_value(FieldKind kind, std::span<const std::byte> content, const std::string& path, std::uint64_t offset) {
  const std::string_view text = core::text_of(content);
  const ErrorContext where{.path = path, .offset = offset};
  switch (kind) {
    case FieldKind::kNumber:
      return number_of(text, where);
    case FieldKind::kText:
      return text_of(text, where);
    case FieldKind::kJson:
      return json_value(text, path, offset);
    case FieldKind::kPickle:
      throw Error(ErrorCode::kUnsafe,
                  "the field is a pickle, which only running code could load; leave it out with keys, or take the "
                  "bytes with raw",
                  where);
    default:
      return Value::bytes(std::string(text));
  }
}

}  // namespace penstock::format
