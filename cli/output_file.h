#pragma once

#include <span>
#include <string>
#include <string_view>

#include "penstock/source.h"

namespace penstock::cli {

/// The word of the command line that stands for standard output.
inline constexpr std::string_view kStandardOutput = "-";

/// Refuses to write `to` where it is one of the files that are read, which are to be `done` with, and where it exists
/// unless `force`. kInvalidArgument.
void require_free(std::span<const Source> from, const std::string& to, bool force, std::string_view done);
/// The same of one file.
void require_free(const std::string& from, const std::string& to, bool force, std::string_view done);

}  // namespace penstock::cli
