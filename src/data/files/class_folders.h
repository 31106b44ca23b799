#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/scan/path_table.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// Tuples of the samples of `files`, which are files below the folder `root` ("" or with '/' at its end), and the
/// number of the class that the first folder below it names. kInvalidArgument for a file that lies in no class's
/// folder.
Dataset with_class_folders(Dataset files, const std::string& root);
/// The folder in front of the first part of a pattern that stands for several names; a folder itself.
std::string class_root(std::string_view pattern);
/// The folder that all paths lie below.
std::string class_root(const std::vector<std::string>& paths);

/// The folder that all paths of a table lie below.
std::string shared_folder(const PathTable& paths);

/// Tuples of each sample, which is a file, and its label; `classes` are the names of the classes that labels are
/// numbers of, or empty. Of equal sizes.
Dataset labelled(Dataset files, const Dataset& labels, std::vector<std::string> classes);

}  // namespace penstock::data
