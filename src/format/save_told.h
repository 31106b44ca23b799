#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "format/format.h"
#include "format/safetensors/safetensors.h"
#include "io/file/output.h"
#include "penstock/save.h"

namespace penstock::format {

/// What `save` is told beside its options.
struct SaveAside {
  /// Called with the bytes written so far now and then, in the calling thread.
  std::function<void(std::uint64_t bytes)> progress = {};
  io::Existing existing = io::Existing::kReplace;
};

void save_told(const Value& value, std::string_view path, const SaveOptions& options, const SaveAside& aside);

/// The same of tensors that are not loaded, those of `structure`, which `payload` writes one after the other. The
/// format must be one with `writes_entries`.
void save_told(const Value& structure, std::span<const TensorEntry> entries, const WritePayload& payload,
               std::string_view path, const SaveOptions& options, const SaveAside& aside);

/// What `save` would commit: everything is written, and appears by `commit` alone.
std::unique_ptr<io::Output> prepare_save(const Value& value, std::string_view path, const SaveOptions& options,
                                         const SaveAside& aside);

}  // namespace penstock::format
