#include "penstock/standard.h"

#ifdef _GLIBCXX_DEBUG
namespace penstock::detail {
void the_library_and_the_program_need_the_same_GLIBCXX_DEBUG() noexcept {}
}  // namespace penstock::detail
#endif
