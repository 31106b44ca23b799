// The table of sources and open_source, which finds the row of a location. Also the checks and errors that all sources
// share.

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "core/url_scheme.h"
#include "io/remote/remote.h"
#include "io/source/folder_list.h"
#include "io/source/opened_file.h"
#include "io/source/own_read.h"
#include "io/source/source.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock {
namespace io {
namespace {

/// Of this machine.
constexpr Scheme kOwnSchemes[] = {{"", open_file}, {"file", open_file_url}};

/// Those, and every scheme of core/url_scheme.h.
constexpr auto kSchemes = [] {
  std::array<Scheme, std::size(kOwnSchemes) + std::size(core::kUrlSchemes)> out{};
  const auto rest = std::ranges::copy(kOwnSchemes, out.begin()).out;
  std::ranges::transform(core::kUrlSchemes, rest, [](const core::UrlScheme& url) {
    return Scheme{url.name, remote::open_url};
  });
  return out;
}();

}  // namespace

std::span<const Scheme> schemes() noexcept { return kSchemes; }

const ByteSource& beneath(const ByteSource& source) noexcept {
  const auto* const opened = dynamic_cast<const OpenedFile*>(&source);
  return opened == nullptr ? source : beneath(*opened->source());
}

bool opened_by_name(const ByteSource& source) noexcept {
  const ByteSource& own = beneath(source);
  return is_file(own) || remote::url_usable(own) || as_folder_list(own) != nullptr;
}

void require_inside(const ByteSource& source, std::uint64_t offset, std::uint64_t wanted) {
  const std::uint64_t size = source.size();
  if (core::range_fits(offset, wanted, size)) return;
  throw Error(
      ErrorCode::kTruncated,
      core::format("found {} of the {} wanted at byte {}, because the file has only {}; it is truncated, so "
                   "fetch or write it again",
                   size - std::min(size, offset), core::counted(wanted, "byte"), offset, core::counted(size, "byte")),
      {.path = source.name(), .offset = offset});
}

void throw_cut(const ByteSource& source, std::uint64_t offset, std::uint64_t wanted, std::uint64_t found) {
  throw Error(ErrorCode::kTruncated,
              core::format("the file was cut while it was open: it had {} and now ends {} byte {}, before the end of "
                           "the {} wanted at byte {}; open it again when it is whole",
                           core::counted(source.size(), "byte"), found > 0 ? "at" : "at or before", offset + found,
                           core::counted(wanted, "byte"), offset),
              {.path = source.name(), .offset = offset});
}

}  // namespace io

void Source::read(std::uint64_t offset, std::span<std::byte> into) const { io::read_own(*impl_, offset, into); }

std::shared_ptr<const ByteSource> Source::not_null(std::shared_ptr<const ByteSource> own) {
  if (!own) throw Error(ErrorCode::kInvalidArgument, "there is no source to open");
  return own;
}

Source open_source(TextView path) {
  const std::string_view location = path;
  const io::Scheme* plain = nullptr;
  for (const io::Scheme& scheme : io::schemes()) {
    if (scheme.name.empty()) {
      plain = &scheme;
    } else if (location.size() > scheme.name.size() && location.starts_with(scheme.name) &&
               location[scheme.name.size()] == ':') {
      return scheme.open(location);
    }
  }
  if (const std::string_view scheme = core::scheme_of(location); !scheme.empty()) {
    throw Error(ErrorCode::kUnsupported,
                core::format("there is no source for locations that start with {}; give a path, or a URL of file, {}",
                             core::quoted(std::string(scheme) + "://"), core::all_schemes("or")),
                {.path = std::string(location)});
  }
  return plain->open(location);
}

}  // namespace penstock
