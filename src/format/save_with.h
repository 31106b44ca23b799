#pragma once

// Behind `save` of the public header: what the command, shards of datasets and checkpoints ask for besides its options.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "format/format.h"
#include "format/unloaded.h"
#include "io/file/output.h"
#include "penstock/save.h"

namespace penstock::format {

/// What only our own programs give to `save`, beside its public options.
struct SaveExtras {
  /// Called with the bytes written so far now and then, in the calling thread.
  std::function<void(std::uint64_t bytes)> progress = {};
  io::Existing existing = io::Existing::kReplace;
  /// Gives a file its name, by its `commit`; null: nothing else is to be done. Not of a folder.
  std::function<void(io::Output& out)> commit = {};
};

/// Whether `save` writes it. A format that is a folder has no `write`: dcp/new_checkpoint.h is for it.
inline bool can_write(const Format& format) noexcept { return format.write != nullptr || format.is_folder; }

void save_with(const Value& value, std::string_view path, const SaveOptions& options, const SaveExtras& extras);

/// Writes what the file of `options.format` holds into `out`; errors call it `name`. Not of a folder.
void save_to(const Value& value, io::ByteSink& out, std::string_view name, const SaveOptions& options);
/// Bytes of all tensors in a value, each node once.
std::uint64_t tensor_bytes(const Value& value);

/// The same for tensors that are not loaded.
void save_with(const Unloaded& content, std::string_view path, const SaveOptions& options, const SaveExtras& extras);

/// Writes everything that `save` writes, but the file appears only when the caller commits it.
std::unique_ptr<io::Output> prepare_save(const Value& value, std::string_view path, const SaveOptions& options,
                                         const SaveExtras& extras);

}  // namespace penstock::format
