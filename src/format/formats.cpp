// The table of formats and how a file finds its row: each row looks at the first bytes, in the order of the table. A
// name's extension decides only when a file is written.

#include <algorithm>
#include <array>
#include <string>

#include "core/format.h"
#include "core/text.h"
#include "format/dcp/dcp.h"
#include "format/foreign.h"
#include "format/rows.h"
#include "format/zip/kind.h"
#include "io/locations.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

/// Enough to see a tar archive's magic.
constexpr std::size_t kForeignBytes = 512;

std::string known_formats() {
  std::string out;
  for (const Format& format : formats()) {
    for (const std::string_view extension : format.extensions) {
      if (out.find(core::format("{},", extension)) == out.npos) out += core::format("{}, ", extension);
    }
  }
  out.resize(out.size() - 2);
  return out;
}

[[noreturn]] void throw_foreign(const ByteSource& source) {
  if (source.size() == 0) {
    throw Error(
        ErrorCode::kUnknownFormat,
        "the file is empty, or does not report its size, as files in /proc; it should hold tensors: write it again",
        {source.name(), 0});
  }
  std::vector<std::byte> head(std::min<std::uint64_t>(source.size(), kForeignBytes));
  source.read(0, head);
  const bool is_zip = sniff_zip(head, source) != ZipKind::kNone;
  // A server may redirect to one that only this machine can ask, such as a service that gives keys.
  const Quotes quotes = io::waits_for_server(source.name()) ? Quotes::kNothing : Quotes::kFirstBytes;
  throw Error(ErrorCode::kUnknownFormat,
              core::format("the content is of no known format: it looks like {}; Penstock reads {}",
                           is_zip ? describe_zip(source) : describe_foreign(head, quotes), known_formats()),
              {source.name(), 0});
}

}  // namespace

std::span<const Format> formats() noexcept {
  static const std::array kFormats{kNpyFormat,         kPtFormat,         kPtLegacyFormat, kNpzFormat,
                                   kSafetensorsFormat, kShardIndexFormat, kDcpFormat,      kDcpShardsFormat,
                                   kRankFilesFormat,   kMegatronFormat,   kLlmcFormat,     kTenbinFormat,
                                   kTarFormat};
  return kFormats;
}

const Format* find_format(const ByteSource& source) {
  std::array<std::byte, kSniffBytes> head{};
  const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), kSniffBytes));
  source.read(0, std::span(head).first(known));
  for (const Format& format : formats()) {
    if (format.sniff(std::span<const std::byte>(head).first(known), source)) return &format;
  }
  return nullptr;
}

const Format& detect(const ByteSource& source) {
  if (const Format* const format = find_format(source)) return *format;
  throw_foreign(source);
}

}  // namespace penstock::format
