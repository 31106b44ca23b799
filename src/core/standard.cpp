#include "penstock/standard.h"

#ifdef _GLIBCXX_DEBUG
namespace penstock::detail {
void the_library_and_the_program_need_the_same_GLIBCXX_DEBUG() noexcept {}
}  // namespace penstock::detail
#endif

#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
namespace penstock::detail {
void the_library_and_the_program_need_the_same_GLIBCXX_USE_CXX11_ABI() noexcept {}
}  // namespace penstock::detail
#endif
