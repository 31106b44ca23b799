#include "data/sample/held_file.h"

#include "archive/unchanged.h"
#include "io/source/own_read.h"

namespace penstock::data {

HeldFile::HeldFile(const penstock::Source& source, const DescriptorLimit& limit)
    : name_(source.name()), held_(source.version() ? 1 : 0, limit), version_(source.version()) {
  // What is no file of the system (memory) takes no descriptor.
  if (!version_ || held_.count() == 1) source_ = source;
}

void HeldFile::require_unchanged() const {
  if (source_) {
    archive::require_unchanged(**source_);
  } else if (version_) {
    static_cast<void>(opened());
  }
}

Error HeldFile::error_of_change(const Error& error) const {
  if (source_) return archive::error_of_change(error, {&*source_, 1});
  try {
    require_unchanged();
  } catch (const Error& change) {
    if (change.code() == ErrorCode::kChanged) return change;
  }
  return error;
}

void HeldFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  const penstock::Source from = source();
  io::read_own(*from, offset, into);
}

bool HeldFile::reads_at_once() const { return source_ && io::reader_for(**source_).read_runs != nullptr; }

void HeldFile::read(std::span<const io::SourceRun> runs) const { io::reader_for(**source_).read_runs(**source_, runs); }

penstock::Source HeldFile::opened() const {
  penstock::Source again = open_source(name_);
  if (again.version() == version_) return again;
  throw Error(ErrorCode::kChanged,
              "the file was replaced or written to since it was opened; open it again when it is complete",
              {.path = name_});
}

}  // namespace penstock::data
