#pragma once

/// What Penstock's headers need of the compiler, said before anything else in them fails.

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "Penstock needs C++20: compile with -std=c++20, or in CMake link Penstock::penstock, which asks for it"
#endif

#include <cstddef>  // defines what the standard library says of itself

#ifdef _GLIBCXX_DEBUG
namespace penstock::detail {
/// Containers of a program with _GLIBCXX_DEBUG have another layout than those of a library without it, and what one
/// hands to the other crashes. Such a program refers to this, which only a library with _GLIBCXX_DEBUG has, so that the
/// linker says what is wrong.
void the_library_and_the_program_need_the_same_GLIBCXX_DEBUG() noexcept;
[[gnu::used]] static void (*const kSameContainers)() noexcept =
    &the_library_and_the_program_need_the_same_GLIBCXX_DEBUG;
}  // namespace penstock::detail
#endif

#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
namespace penstock::detail {
/// The same for the strings of before GCC 5, which old builds of LibTorch ask for.
void the_library_and_the_program_need_the_same_GLIBCXX_USE_CXX11_ABI() noexcept;
[[gnu::used]] static void (*const kSameStrings)() noexcept =
    &the_library_and_the_program_need_the_same_GLIBCXX_USE_CXX11_ABI;
}  // namespace penstock::detail
#endif
