#pragma once

// Writes `.pt`. content.h makes the pickle; this lays out the archive as torch does.

#include <cstddef>
#include <string>
#include <string_view>

#include "format/format.h"
#include "format/zip/writer.h"

namespace penstock::format {

/// Writes a `.pt` zip archive that torch.load(weights_only=True) reads, laid out as torch.save does: the same records
/// in the same order. kUnsupported names the place of the first value or dtype that torch would not load so.
void write_pt(const Value& value, io::ByteSink& sink, const SaveOptions& options, std::string_view path);
/// The same of tensors that are not loaded.
void write_unloaded_pt(const Unloaded& content, io::ByteSink& sink, const SaveOptions& options, std::string_view path);

// What a writer of single tensors shares with it.

/// Of the storages' bytes.
inline constexpr std::size_t kPtAlignment = 64;
/// What every record's name begins with.
std::string pt_prefix(std::string_view path);
/// The records before the storages, and those behind everything.
void write_pt_facts(ZipWriter& zip, const std::string& prefix);
void write_pt_end(ZipWriter& zip, const std::string& prefix, std::string_view pickle);

}  // namespace penstock::format
