// A `.pt`, an `.npz` and many other kinds of file are zip archives. The names of their members tell them apart.

#include "format/zip/kind.h"

#include <algorithm>
#include <iterator>

#include "core/ascii.h"
#include "core/format.h"
#include "core/text.h"
#include "format/zip/layout.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

bool ends_with_record(std::string_view name, std::string_view end) noexcept {
  return name.size() >= end.size() && is_record_name(name.substr(name.size() - end.size()), end);
}

bool looks_like_zip(std::span<const std::byte> head) noexcept {
  if (head.size() < 4) return false;
  const std::uint32_t signature = zip::u32(head.data());
  return signature == zip::kLocalSignature || signature == zip::kEndSignature || signature == zip::kEnd64Signature;
}

bool is_array_name(std::string_view name) noexcept { return ends_with_record(name, ".npy"); }

bool is_torch_record(std::string_view name) noexcept {
  static constexpr std::string_view kRecords[] = {
      ".data/extern_modules", ".data/serialization_id", ".data/version", ".format_version", "byteorder",
      "archive_format",       "models/model.json"};
  if (is_record_name(base_of(name), "data.pkl")) return true;
  const std::size_t slash = name.find('/');
  if (slash == name.npos) return false;
  const std::string_view record = name.substr(slash + 1);
  return std::any_of(std::begin(kRecords), std::end(kRecords),
                     [&](std::string_view wanted) { return is_record_name(record, wanted); });
}

/// Whether a file without members may be an `.npz`: it has that ending, or none.
bool may_be_empty_npz(std::string_view path) noexcept {
  const std::string_view name = base_of(path);
  return name.ends_with(".npz") || name.find('.', 1) == name.npos;
}

/// A member by which a kind of archive is known.
struct Mark {
  std::string_view name;  ///< in lower case; one that begins with '/' is the end of a name
  std::string_view what;
};

constexpr Mark kMarks[] = {
    {"[content_types].xml", "an Office document (.docx, .xlsx, .pptx)"},
    {"androidmanifest.xml", "an Android package (.apk)"},
    {"meta-inf/container.xml", "an EPUB book"},
    {"meta-inf/manifest.xml", "an OpenDocument file (.odt, .ods)"},
    {"meta-inf/manifest.mf", "a Java archive (.jar)"},
    {"model.weights.h5", "a Keras model (.keras)"},
    {"serialized_exported_program.json",
     "a program that torch.export saved (.pt2): save its state_dict with torch.save"},
    {"/wheel", "a Python wheel (.whl)"},
    {"doc.kml", "a map of Google Earth (.kmz)"},
};

std::string_view mark_of(std::string_view name) noexcept {
  for (const Mark& mark : kMarks) {
    const bool is_end = mark.name.front() == '/';
    if (is_end ? ends_with_record(name, mark.name) : is_record_name(name, mark.name)) return mark.what;
  }
  return {};
}

/// Endings of files that hold tensors by themselves.
bool is_tensor_file(std::string_view name) noexcept {
  static constexpr std::string_view kEndings[] = {".pt", ".pth", ".ckpt", ".npz", ".safetensors", ".h5"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return ends_with_record(name, ending); });
}

std::string describe_members(std::span<const ZipEntry> entries) {
  if (entries.empty()) return "a zip archive without members";
  const auto torch_record =
      std::find_if(entries.begin(), entries.end(), [](const ZipEntry& e) { return is_torch_record(e.name); });
  if (torch_record != entries.end()) {
    return core::format(
        "an archive of torch.save (it has {}) that begins with {}, which is in no folder, so that torch does not read "
        "it either: pack it again without that member",
        core::quoted(member_name(*torch_record)), core::quoted(member_name(entries.front())));
  }
  for (const ZipEntry& entry : entries) {
    if (const std::string_view what = mark_of(entry.name); !what.empty()) return std::string(what);
  }
  const auto inner =
      std::find_if(entries.begin(), entries.end(), [](const ZipEntry& e) { return is_tensor_file(e.name); });
  if (inner != entries.end()) {
    return core::format("a zip archive that holds the file {}: unpack it first", core::quoted(member_name(*inner)));
  }
  return core::format("a zip archive of other files (the first is {}): it has neither a member '.npy' nor 'data.pkl'",
                      core::quoted(member_name(entries.front())));
}

}  // namespace

bool is_record_name(std::string_view name, std::string_view wanted) noexcept {
  return name.size() == wanted.size() &&
         std::equal(name.begin(), name.end(), wanted.begin(), [](char a, char b) { return core::lower(a) == b; });
}

int compare_in_any_case(std::string_view a, std::string_view b) noexcept {
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(),
                                         [](char x, char y) { return core::lower(x) == core::lower(y); });
  if (at == a.end() || other == b.end()) return at != a.end() ? 1 : other != b.end() ? -1 : 0;
  return static_cast<unsigned char>(core::lower(*at)) < static_cast<unsigned char>(core::lower(*other)) ? -1 : 1;
}

std::string_view base_of(std::string_view name) noexcept { return name.substr(name.rfind('/') + 1); }

bool is_torch_archive(std::span<const ZipEntry> entries) noexcept {
  return std::any_of(entries.begin(), entries.end(), [](const ZipEntry& entry) { return is_torch_record(entry.name); });
}

ZipKind sniff_zip(std::span<const std::byte> head, const ByteSource& source) {
  if (!looks_like_zip(head)) return ZipKind::kNone;
  try {
    const ZipDirectory directory = list_zip_members(source);
    const std::span<const ZipEntry> entries = directory.entries;
    if (entries.empty()) return may_be_empty_npz(source.name()) ? ZipKind::kPlain : ZipKind::kForeign;
    if (is_torch_archive(entries)) return ZipKind::kTorch;
    const bool arrays =
        std::any_of(entries.begin(), entries.end(), [](const ZipEntry& entry) { return is_array_name(entry.name); });
    return arrays ? ZipKind::kPlain : ZipKind::kForeign;
  } catch (const Error&) {
    return ZipKind::kPlain;
  }
}

std::string describe_zip(const ByteSource& source) {
  try {
    return describe_members(list_zip_members(source).entries);
  } catch (const Error&) {
    return "a zip archive";
  }
}

}  // namespace penstock::format
