#pragma once

// What a location, a path or a URL, answers by its text and by what lies beside it. Together with open_source and
// open_output (file/output.h) this is where most of the library tells a path from a URL; by core/url_scheme.h.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::io {

/// Where the query of a URL by http begins; else the end. The key of an object in a bucket may have a '?' of its own.
std::size_t query_begin(std::string_view location) noexcept;
/// Without that query.
std::string_view path_part(std::string_view location) noexcept;
/// How much of it a "../" must not take off: the '/' of a path, scheme and host or bucket of a URL, with the '/' behind
/// it. 0 for what is seen from the folder one is in.
std::size_t root_size(std::string_view location) noexcept;

/// What lies under `name`, which has no '/', beside what the location names. kUnsupported for a URL with a secret in
/// its query, which leads to one object alone.
std::string beside(std::string_view location, std::string_view name);
/// The same, to open what a file that nobody vouches for calls `name`: empty where there is no such file, kUnsafe where
/// it is a link that leads out of the folder. Whether an object is there is found out by opening it; a store has no
/// links.
std::string beside_inside(std::string_view location, std::string_view name);
/// For behind the opening of what `beside_inside` gave: somebody may have put a link there in between. kUnsafe or
/// kChanged unless `opened` is the file that lies there inside of the folder.
void require_inside_folder(std::string_view location, std::string_view name, const ByteSource& opened);
/// What lies under `name` in the folder that the location names; empty for a URL with a secret in its query.
std::string in_folder(std::string_view folder, std::string_view name);
/// The names of what lies in a folder, or in one of a bucket, in no order. The errors of listing it.
std::vector<std::string> names_in(const std::string& folder);
/// Whether a folder of this machine lies there. A store has none.
bool is_local_folder(std::string_view location);
/// For whoever looks from another folder: a URL as it is, a file: URL as its path. Nothing is resolved, and a '/' at
/// the end stays. Empty where the system does not tell.
std::string absolute(std::string_view location);
/// The same text where the system does not tell.
std::string absolute_or_same(std::string_view location);

/// Whether the error of opening the location says that nothing is there. A store that lists nothing to strangers
/// refuses (kPermission) to say so.
bool tells_absence(const Error& error, std::string_view location) noexcept;
/// As open_source; nothing where tells_absence.
std::optional<Source> open_if_there(const std::string& location);
/// Whether opening the location, or writing to it, waits for a server, which may never answer.
bool waits_for_server(std::string_view location) noexcept;

}  // namespace penstock::io
