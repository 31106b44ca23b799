#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "penstock/save.h"

namespace penstock::format {

/// `save` that calls progress(bytes written so far) now and then, in the calling thread.
void save_told(const Value& value, std::string_view path, const SaveOptions& options,
               const std::function<void(std::uint64_t bytes)>& progress);

}  // namespace penstock::format
