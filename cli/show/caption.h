#pragma once

// The words below a picture of `penstock show`.

#include <string>

#include "cli/show/sheet.h"
#include "penstock/load.h"

namespace penstock::cli {

/// "weight  float32 [64, 3, 7, 7]".
std::string title_of(const LazyTensor& tensor);
/// What is drawn of it, and in which colours, in lines of at most `columns` where words allow.
std::string caption_of(const LazyTensor& tensor, const Reading& reading, const Sheet& sheet, const Drawn& drawn,
                       std::size_t columns);
/// Advice where the values take so little of the range that all looks the same, as of digits from 0 to 16 in uint8.
std::string advice_of(const DType& dtype, const NumberRange& range, long double least, long double greatest);
/// How many elements are NaN or infinite, with the colour or the character that stands for them; empty for none.
std::string ill_of(const Seen& seen);
/// `text` broken at spaces.
std::string wrapped(const std::string& text, std::size_t columns);
/// A number as the elements of the type are written: integers with all digits.
std::string number_text(const DType& dtype, long double number);

}  // namespace penstock::cli
