#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>

namespace penstock::format {

/// Writes the checksums anew of the members whose data begin at the keys of `checksums`, in the directory and beside
/// the member. A member that records 0 is left alone, since to torch that means none. `file` is all of an archive that
/// read_zip_directory accepts; `path` is for errors.
void mend_zip_checksums(std::span<std::byte> file, const std::map<std::uint64_t, std::uint32_t>& checksums,
                        std::string_view path);

}  // namespace penstock::format
