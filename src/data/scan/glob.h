#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/scan/path_table.h"
#include "penstock/dataset.h"
#include "penstock/error.h"

namespace penstock::data {

/// The regular files that `pattern` stands for, sorted: a file, a folder (the files in it with a tensor format's
/// extension), or a glob, in which the component `**` means any number of folders: links to such too, but for those
/// that lead back up, and none that is hidden. `options.index` is heeded. kNotFound when there is none; kPermission,
/// kIo for a folder that cannot be listed, or an index that cannot be written.
PathTable expand(std::string_view pattern, const FilesOptions& options = {});

/// All regular files below `folder`, whatever they are called, but for hidden ones; sorted. Hidden folders, links that
/// lead back up and what `exclude` names are left out, and so are folders that cannot be listed: `refused` has an error
/// for each.
struct FilesBelow {
  PathTable files;
  std::vector<Error> refused;
};
FilesBelow files_below(const std::string& folder, const std::vector<std::string>& exclude = {});

}  // namespace penstock::data
