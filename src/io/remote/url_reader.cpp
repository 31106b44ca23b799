// The reader of sources that are behind a URL: one call fills all parts by as few requests as may be in flight
// together.

#include <vector>

#include "io/remote/remote.h"
#include "io/remote/remote_source.h"

namespace penstock::io::remote {
namespace {

/// Null for any other source. Each load asks a few times, and a descriptor, which files have, answers in a tenth of the
/// instructions.
const RemoteSource* as_remote(const ByteSource& source) noexcept {
  return source.descriptor() >= 0 ? nullptr : dynamic_cast<const RemoteSource*>(&source);
}

}  // namespace

bool url_usable(const ByteSource& source) noexcept { return as_remote(source) != nullptr; }

ReadCosts url_costs(const ByteSource& source) noexcept { return dynamic_cast<const RemoteSource&>(source).costs(); }

SameOptions::SameOptions(const ByteSource& source) noexcept
    : scope_([&] {
        const RemoteSource* const remote = as_remote(source);
        return remote != nullptr && remote->values() ? remote->values() : ValuesScope::current();
      }()) {}

bool has_own_options(const ByteSource& source) noexcept {
  const RemoteSource* const remote = as_remote(source);
  return remote != nullptr && remote->values() != nullptr && !remote->values()->of.empty();
}

RemoteTraffic opening_traffic(const ByteSource& source) noexcept {
  const RemoteSource* const remote = as_remote(source);
  return remote != nullptr ? remote->opening_traffic() : RemoteTraffic();
}

bool notices_changes(const ByteSource& source) noexcept {
  const RemoteSource* const remote = as_remote(source);
  return remote == nullptr || remote->has_version();
}

std::string version_name(const ByteSource& source) {
  const RemoteSource* const remote = as_remote(source);
  return remote == nullptr ? std::string() : remote->version_name();
}

void url_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  dynamic_cast<const RemoteSource&>(source).read(offset, parts);
}

void url_read_runs(const ByteSource& source, std::span<const SourceRun> runs) {
  dynamic_cast<const RemoteSource&>(source).read(runs);
}

void read_runs(std::span<const SourceRuns> reads) {
  std::vector<Exchange> exchanges;
  for (const SourceRuns& one : reads) {
    const auto& source = dynamic_cast<const RemoteSource&>(*one.source);
    if (source.reads_alone()) {
      source.read(one.runs);
    } else {
      source.add_exchanges(one.runs, exchanges);
    }
  }
  run(exchanges);
}

}  // namespace penstock::io::remote
