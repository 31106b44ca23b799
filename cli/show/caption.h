#pragma once

#include <optional>
#include <string>

#include "cli/show/sheet.h"
#include "penstock/load.h"

namespace penstock::cli {

/// "weight  float32 [64, 3, 7, 7]".
std::string title_of(const LazyTensor& tensor);
/// What is drawn of it, and in which colours, in lines of at most `columns` where words allow.
std::string caption_of(const LazyTensor& tensor, const Reading& reading, const Sheet& sheet, const Drawn& drawn,
                       std::size_t columns);
/// `text` broken at spaces.
std::string wrapped(const std::string& text, std::size_t columns);
/// A number as the elements of the type are written: integers with all digits.
std::string number_text(const DType& dtype, long double number);

}  // namespace penstock::cli
