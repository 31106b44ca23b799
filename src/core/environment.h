#pragma once

namespace penstock::core {

/// The variable of the environment; null where it is not set, and in a process that has more rights than its user
/// (setuid, file capabilities): what names libraries and folders there must not be the user's to choose. All of
/// Penstock reads the environment here.
const char* environment(const char* name) noexcept;

}  // namespace penstock::core
