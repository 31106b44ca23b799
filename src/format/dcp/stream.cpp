// Chunks and objects are streams of torch.save, back to back in a file. Each is read through a window, by the reader of
// `.pt`.

#include "format/dcp/stream.h"

#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/text.h"
#include "format/check_index.h"
#include "format/rows.h"
#include "io/source/opened_file.h"
#include "io/source/window_source.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

constexpr std::string_view kAdvice = "the file is damaged, or it and .metadata are not of one save: copy both again";

/// Counts offsets of the window from the begin of the file, and names the item.
Error placed(const Error& error, const Source& file, const StreamSpan& place, const std::string& item) {
  const ErrorCode code = error.code();
  const bool of_content =
      code == ErrorCode::kCorrupt || code == ErrorCode::kTruncated || code == ErrorCode::kUnknownFormat;
  const std::string record =
      error.tensor().empty() || error.tensor() == item ? "" : core::format("{}: ", core::quoted(error.tensor()));
  return {of_content ? ErrorCode::kCorrupt : code,
          of_content ? core::format("{}{} ({})", record, error.message(), kAdvice) : record + error.message(),
          {.path = file.name(), .offset = place.offset + error.offset().value_or(0), .tensor = item}};
}

}  // namespace

void require_range(const Source& file, const StreamSpan& place, const std::string& item) {
  if (core::range_fits(place.offset, place.length, file.size())) return;
  throw Error(ErrorCode::kTruncated,
              core::format("it should take {} bytes here, and the file ends at byte {}: the file was cut, or is of "
                           "another save than .metadata; copy it again",
                           place.length, file.size()),
              {.path = file.name(), .offset = place.offset, .tensor = item});
}

Index read_stream(const Source& file, std::uint32_t number, const StreamSpan& place, io::OpenedFile::Ends ends,
                  const std::string& item, const OpenOptions& options) {
  require_range(file, place, item);
  try {
    Source bytes = io::window_of(file, place.offset, place.length);
    const bool has_ends = ends.whole || ends.head.size != 0;
    const Source window = has_ends ? std::make_shared<io::OpenedFile>(std::move(bytes), std::move(ends))
                                   : std::make_shared<io::OpenedFile>(std::move(bytes));
    const Format* const format = find_format(*window);
    if (format == nullptr || format->name != kPtFormat.name) {
      throw Error(ErrorCode::kUnknownFormat, "there is no stream of torch.save where .metadata says");
    }
    Index index = format->read_index(window, options);
    check_index(index);
    index.sources.clear();
    for (StorageEntry& storage : index.storages) {
      storage.source = number;
      storage.offset += place.offset;
    }
    return index;
  } catch (const Error& error) {
    throw placed(error, file, place, item);
  }
}

}  // namespace penstock::format::dcp
