#pragma once

/// What Penstock's headers need of the compiler, said before anything else in them fails.

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "Penstock needs C++20: compile with -std=c++20, or in CMake link Penstock::penstock, which asks for it"
#endif
