#pragma once

// Folders that are one thing: a distributed checkpoint, a sharded model. opening of archives asks here when a location
// is no file.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/content.h"
#include "penstock/source.h"

namespace penstock::format {

/// Of the files that hold the tensors of a distributed checkpoint.
inline constexpr std::string_view kCheckpointExtension = ".distcp";

/// The file that says what a folder holds, for folders that are one thing and no collection of files: `.metadata` of a
/// distributed checkpoint, or `model.safetensors.index.json` of a sharded model, `metadata.pkl` of torch_checkpointing.
/// A folder of the shards that torch's HuggingFaceStorageWriter leaves has no such file; a list of them stands for it.
/// Nothing for any other folder. kNotFound for a checkpoint that lacks its `.metadata`. A URL may name the folder too;
/// there the three files are asked for, and nothing is listed.
std::optional<Source> open_folder(const std::string& location);

/// Such parts of an opened archive's sources, for whoever checks every byte of them; none in a checkpoint of
/// empty tensors alone. Nothing where each source is a file of its own.
std::optional<std::vector<Content>> contents_of(std::span<const Source> sources);

}  // namespace penstock::format
