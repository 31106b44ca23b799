#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "format/format.h"
#include "format/safetensors/safetensors.h"
#include "penstock/save.h"

namespace penstock::format {

/// `save` that calls progress(bytes written so far) now and then, in the calling thread.
void save_told(const Value& value, std::string_view path, const SaveOptions& options,
               const std::function<void(std::uint64_t bytes)>& progress);

/// The same of tensors that are not loaded, those of `structure`, which `payload` writes one after the other. The
/// format must be one with `writes_entries`.
void save_told(const Value& structure, std::span<const TensorEntry> entries, const WritePayload& payload,
               std::string_view path, const SaveOptions& options,
               const std::function<void(std::uint64_t bytes)>& progress);

}  // namespace penstock::format
