#pragma once

namespace penstock::test {

/// Whether a sanitizer watches this program that reserves address space without end and makes system calls of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace penstock::test
