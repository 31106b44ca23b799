// A file is opened in this order: its head is read (all of it, where it is small), the format is recognised by the
// head, and the format's reader describes what the file holds. Readers see the file through OpenedFile, so that their
// many small reads are no system calls; what they describe names the source itself, and OpenedFile is let go with its
// copies.

#include "archive/opening.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "archive/archive_state.h"
#include "archive/unchanged.h"
#include "core/stopwatch.h"
#include "format/check_index.h"
#include "format/folder.h"
#include "io/locations.h"
#include "io/remote/remote.h"
#include "io/remote/traffic.h"
#include "penstock/error.h"

namespace penstock {
namespace archive {
namespace {

/// The index of `source`, read through `opened`.
format::Index read_index(const format::Format& format, const Source& source, const Source& opened,
                         const OpenOptions& options) {
  format::Index index = format.read_index(opened, options);
  if (index.sources.empty()) index.sources = {source};
  std::replace(index.sources.begin(), index.sources.end(), opened, source);
  format::check_index(index);
  return index;
}

}  // namespace

Source source_at(std::string_view location) {
  try {
    return open_source(location);
  } catch (const Error& error) {
    // A store has no object of a folder's name, and a web server may refuse to list it.
    const bool has_server = io::waits_for_server(location);
    const bool may_be_folder = has_server && io::tells_absence(error, location);
    if (error.code() != ErrorCode::kIsDirectory && !may_be_folder) throw;
    std::optional<Source> file = format::open_folder(has_server ? std::string(location) : error.path());
    if (!file) throw;
    return *std::move(file);
  }
}

Opening::Opening(Source source) : source_(std::move(source)) {
  const core::Stopwatch watch;
  io::remote::TrafficMeter meter(io::remote::TrafficScope::current());
  const io::remote::TrafficScope scope(&meter);
  try {
    opened_ = std::make_shared<io::OpenedFile>(source_);
    if (opened_->whole()) require_unchanged(*source_);
    format_ = &format::detect(*opened_);
  } catch (const Error& error) {
    throw error.within({source_.name()});
  }
  seconds_ = watch.total();
  traffic_ = io::remote::opening_traffic(*source_);
  traffic_ += meter.total();
}

std::uint64_t Opening::index_bytes() const {
  return format_->index_bytes != nullptr ? format_->index_bytes(*opened_) : source_.size();
}

Archive Opening::finish(const OpenOptions& options) {
  const core::Stopwatch watch;
  io::remote::TrafficMeter meter(io::remote::TrafficScope::current());
  const io::remote::TrafficScope scope(&meter);
  auto state = std::make_shared<detail::ArchiveState>();
  try {
    state->content = opened_->whole();
    state->format = format_;
    const io::remote::SameOptions of_files_beside_it(*source_);
    state->index = read_index(*format_, source_, opened_, options);
  } catch (const Error& error) {
    throw error.within({source_.name()});
  }
  state->verify_checksums = options.verify;
  state->open_seconds = seconds_ + watch.total();
  state->open_traffic = traffic_;
  state->open_traffic += meter.total();
  return detail::ArchiveState::handle(std::move(state));
}

}  // namespace archive

Archive open(Source source, const OpenOptions& options) { return archive::Opening(std::move(source)).finish(options); }

Archive open(TextView path, const OpenOptions& options) { return open(archive::source_at(path), options); }

}  // namespace penstock
