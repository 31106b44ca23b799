#pragma once

// Where commands write: nothing that is read is overwritten, and nothing that is there without --force.

#include <span>
#include <string>
#include <string_view>

#include "io/file/output.h"
#include "penstock/source.h"

namespace penstock::cli {

/// The word of the command line that stands for standard output.
inline constexpr std::string_view kStandardOutput = "-";

/// kInvalidArgument where `to` is that word, and the command writes files or folders alone: one called "-" is hardly
/// meant.
void require_no_stream(const std::string& to);

/// What becomes of an object that somebody wrote since require_free.
inline io::Existing existing(bool force) { return force ? io::Existing::kReplace : io::Existing::kRefuse; }

/// Refuses to write `to`, a path or a URL, where it is one of the files that are read, which are to be `done` with, and
/// where it exists unless `force`. kInvalidArgument; kUnsupported for a URL that nothing can be written to, and the
/// errors of asking a store.
void require_free(std::span<const Source> from, const std::string& to, bool force, std::string_view done);
/// The first half of that: the store is not asked.
void require_other(std::span<const Source> from, const std::string& to, std::string_view done);
/// The whole for one file.
void require_free(const std::string& from, const std::string& to, bool force, std::string_view done);

}  // namespace penstock::cli
