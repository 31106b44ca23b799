#pragma once

// Walks over folders for the files that match a pattern, every level in parallel; what a kept index says of a folder
// that did not change stands for looking into it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/scan/exclusion.h"
#include "data/scan/folder_list.h"
#include "penstock/error.h"

namespace penstock::data {

/// One component of a pattern.
struct PatternPart {
  enum class Kind : std::uint8_t {
    kLiteral,     ///< this name
    kGlob,        ///< names that match
    kAnyDepth,    ///< `**`: any number of folders; last: any file below
    kTensorFile,  ///< not hidden, with the extension of a format that holds samples
  };
  Kind kind;
  std::string text;
};

/// The parts of a glob. Neighbouring `**` are one, and so are neighbouring '/', unless names may be empty, as in keys.
std::vector<PatternPart> split_pattern(std::string_view pattern, bool has_empty_names = false);

/// A folder, and the parts of a pattern that what lies in it may match: their positions, in order.
struct Visit {
  std::string folder;
  std::vector<std::uint32_t> parts;

  friend bool operator==(const Visit&, const Visit&) = default;
};

/// What a visit found.
struct Listing {
  Visit visit;
  FolderIdentity identity;
  std::string names;  ///< of the files that match: sorted bytewise, each once, NUL behind each
  std::vector<Visit> next;
};

/// The files below `folder` that match all `parts`, of which there is at least one: a listing for each folder looked
/// into, every level in parallel. `known` listings stand for folders that have not changed since; `fresh` is the number
/// of others. Listings of one folder may be several, when it is reached by several ways. A folder that is not there has
/// no files; one that cannot be listed is kPermission or kIo, or with `keep_going` one of `refused`, and has none.
struct Scan {
  std::vector<Listing> listings;
  std::size_t fresh = 0;
  std::vector<Error> refused;
};
struct ScanOptions {
  std::vector<Listing> known = {};
  Exclusion exclude = {};
  bool keep_going = false;
};
Scan scan_folders(const std::string& folder, std::span<const PatternPart> parts, ScanOptions options = {});

}  // namespace penstock::data
