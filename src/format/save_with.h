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

/// What only our own programs give to `save`, beside its public options.
struct SaveExtras {
  /// Called with the bytes written so far now and then, in the calling thread.
  std::function<void(std::uint64_t bytes)> progress = {};
  io::Existing existing = io::Existing::kReplace;
};

/// Whether `save` writes it. A format that is a folder has no `write`: dcp/new_checkpoint.h is for it.
inline bool can_write(const Format& format) noexcept { return format.write != nullptr || format.is_folder; }

void save_with(const Value& value, std::string_view path, const SaveOptions& options, const SaveExtras& extras);

/// The same for tensors that are not loaded: those of `structure`, whose bytes `payload` writes one after the other.
/// The format must have `writes_entries`.
void save_with(const Value& structure, std::span<const TensorEntry> entries, const WritePayload& payload,
               std::string_view path, const SaveOptions& options, const SaveExtras& extras);

/// Writes everything that `save` writes, but the file appears only when the caller commits it.
std::unique_ptr<io::Output> prepare_save(const Value& value, std::string_view path, const SaveOptions& options,
                                         const SaveExtras& extras);

}  // namespace penstock::format
