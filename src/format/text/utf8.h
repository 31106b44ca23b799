#pragma once

// Text of files as UTF-8.

#include <string>
#include <string_view>

#include "core/utf8.h"

namespace penstock::format {

using core::append_utf8;
using core::is_utf8;
using core::is_utf8_with_surrogates;

/// Text of code page 437, that of the first PCs, as UTF-8. ASCII stays as it is.
std::string from_cp437(std::string_view bytes);

}  // namespace penstock::format
