#pragma once

// `penstock ls s3://bucket/`: what lies in a bucket where it holds no tensors.

#include <optional>
#include <string>

#include "cli/json/json.h"
#include "io/remote/list.h"

namespace penstock::cli {

/// What is in a bucket or in a folder of it; nothing for another path, or for a folder that has nothing.
std::optional<io::remote::Objects> objects_in(const std::string& path);

/// The objects as a table, below `path` where there is a title.
void print_objects(const std::string& path, const io::remote::Objects& found, bool with_title);
/// Their names alone, one a line.
void print_object_names(const std::string& path, const io::remote::Objects& found);
Json to_json(const std::string& path, const io::remote::Objects& found);

}  // namespace penstock::cli
