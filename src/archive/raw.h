#pragma once

#include "penstock/raw.h"

namespace penstock::archive {

/// `raw` of a file that may be no such file, because the caller did not say so by that name: kInvalidArgument where the
/// array would begin in the header of a file of a known format, or in a compressed file that is named as one.
LazyTensor headerless(Source source, const RawLayout& layout);

}  // namespace penstock::archive
