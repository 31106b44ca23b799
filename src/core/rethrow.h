#pragma once

#include <string_view>

namespace penstock::core {

/// Throws what is being handled, which code of the program threw, as an Error whose cause it is: an Error with its own
/// code, no memory as kOutOfMemory, anything else as kUserCode. `who` is "the function of map".
[[noreturn]] void rethrow_as_error(std::string_view who);

}  // namespace penstock::core
