#pragma once

#include <bit>
#include <optional>
#include <string_view>

#include "penstock/raw.h"

namespace penstock::archive {

/// `raw` of a file that may be no such file, because the caller did not say so by that name: kInvalidArgument where the
/// array would begin in the header of a file of a known format, or in a compressed file that is named as one.
LazyTensor headerless(Source source, const RawLayout& layout);
/// The same as an archive of one tensor.
Archive headerless_archive(Source source, const RawLayout& layout);

/// What elements of a file are, in text.
struct StoredType {
  DType dtype;
  std::endian byte_order = std::endian::native;
};
/// Of a name that DType knows, "uint16", or of NumPy's text, which has a byte order: ">u2". Nothing where it is
/// neither.
std::optional<StoredType> stored_type(std::string_view text);

}  // namespace penstock::archive
