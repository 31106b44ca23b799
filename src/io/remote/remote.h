#pragma once

// Bytes by URL, for the rest of the library: the tables of sources and readers, and whoever treats a path as a file's.
// docs/design/remote.md says what is decided.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/copy/scatter.h"
#include "io/read/reader.h"
#include "io/remote/location.h"
#include "io/remote/values.h"
#include "penstock/report.h"
#include "penstock/source.h"

namespace penstock::io::remote {

/// The row of the table of sources for each of our schemes. The errors are in docs/design/remote.md.
Source open_url(std::string_view url);
/// Opens locations of any kind; the URLs among them all at once. The first error is thrown.
std::vector<Source> open_sources(std::span<const std::string> locations);
/// The same, given to `take` in their order; a file is opened when it is its turn, so that whoever keeps no source
/// needs no descriptor for each.
void open_each(std::span<const std::string> locations, const std::function<void(const Source&)>& take);

/// While it lives, locations that the calling thread opens have the options of `source`: those of files beside it.
class SameOptions {
 public:
  explicit SameOptions(const ByteSource& source) noexcept;

 private:
  ValuesScope scope_;
};

/// Whether it was opened with options in place of the environment's.
bool has_own_options(const ByteSource& source) noexcept;

/// What opening the source took, where it is behind a URL.
RemoteTraffic opening_traffic(const ByteSource& source) noexcept;

/// Whether a change of the source while it is read is noticed: false for an object behind a URL whose server names no
/// version of it.
bool notices_changes(const ByteSource& source) noexcept;
/// What the server calls this version of the object; empty for all other sources, and where it has no name for it.
std::string version_name(const ByteSource& source);

/// The row of the table of readers.
bool url_usable(const ByteSource& source) noexcept;
ReadCosts url_costs(const ByteSource& source) noexcept;
void url_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);
void url_read_runs(const ByteSource& source, std::span<const SourceRun> runs);

/// Reads of several sources that are behind URLs, all at once; those behind a cache one source after the other.
void read_runs(std::span<const SourceRuns> reads);

}  // namespace penstock::io::remote
