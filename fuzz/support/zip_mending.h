#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::fuzz {

/// Whether this may be a zip archive.
bool is_zip(std::span<const std::byte> file) noexcept;

/// Writes the true CRCs of the members into a zip archive, wherever it has them, so that what was changed in a member
/// is not refused for that. What cannot be understood is left as it is.
void mend_checksums(std::span<std::byte> file);

struct Member {
  std::string name;
  std::vector<std::byte> content;  ///< inflated
};
/// The members of an archive; nothing where it cannot be taken apart.
std::optional<std::vector<Member>> members_of(std::span<const std::byte> file);
/// An archive of these members, stored, as torch or NumPy lays it out; empty where their names cannot be written.
std::string archive_of(std::span<const Member> members, bool as_torch);

}  // namespace penstock::fuzz
