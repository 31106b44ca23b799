#pragma once

#include <string_view>

#include "format/format.h"

namespace penstock::format {

/// Writes a `.pt` zip archive that torch.load(weights_only=True) reads, laid out as torch.save does: the same records
/// in the same order. kUnsupported names the place of the first value or dtype that torch would not load so.
void write_pt(const Value& value, io::ByteSink& sink, const SaveOptions& options, std::string_view path);

}  // namespace penstock::format
