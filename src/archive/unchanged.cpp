// A file may be written to while it is open, and then a load would give a mixture of old and new bytes. After each load
// the file's version is compared with that of its opening (io/file/file_version.h). When a load fails, the same
// question decides whether the file is damaged or was changed: a file that was cut counts as changed if what is there
// now is a whole file, because then somebody writes it anew.

#include "archive/unchanged.h"

#include <exception>

#include "core/format.h"
#include "format/check_index.h"
#include "format/format.h"
#include "io/file/file_version.h"
#include "io/read/reader.h"
#include "io/source/composed_source.h"

namespace penstock::archive {
namespace {

/// Whether a file that is shorter now is a whole file again, so that it was written anew and not cut.
bool is_whole(const ByteSource& source) noexcept {
  try {
    const Source now = open_source(core::format("/proc/self/fd/{}", source.descriptor()));
    format::Index index = format::detect(*now).read_index(now, {});
    format::check_index(index);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool was_written_anew(const ByteSource& source) {
  const io::FileState state = io::look_at(source);
  return state == io::FileState::kChanged || (state == io::FileState::kCut && is_whole(source));
}

Error changed(const ByteSource& source) {
  return {ErrorCode::kChanged,
          "the file was written to while it was open, so that its bytes are not those that were described when it was "
          "opened; open it again when it is complete",
          {.path = source.name()}};
}

}  // namespace

void require_unchanged(const ByteSource& source) {
  if (const auto* const composed = dynamic_cast<const io::ComposedSource*>(&source)) {
    for (const Source& part : composed->parts()) require_unchanged(*part);
    return;
  }
  if (io::look_at(source) == io::FileState::kAsOpened) return;
  if (was_written_anew(source)) throw changed(source);
  // It may have been written to since, and be as long as before.
  io::require_uncut(source);
  throw changed(source);
}

Error error_of_change(const Error& error, std::span<const Source> sources) {
  const ErrorCode code = error.code();
  const bool of_bytes = code == ErrorCode::kTruncated || code == ErrorCode::kCorrupt || code == ErrorCode::kChecksum ||
                        code == ErrorCode::kIo;
  if (!of_bytes) return error;
  for (const Source& source : sources) {
    if (!error.path().empty() && error.path() != source.name()) continue;
    try {
      if (was_written_anew(*source)) return changed(*source).within({.tensor = error.tensor()});
    } catch (const Error&) {
      // The first error says more.
    }
  }
  return error;
}

}  // namespace penstock::archive
