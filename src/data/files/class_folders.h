#pragma once

// Labels of files from the names of their folders, as torchvision's ImageFolder has them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/scan/path_table.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// Names of classes in order, and the number of each file's class.
struct ClassFolders {
  std::vector<std::string> classes;
  std::vector<std::int32_t> numbers;
};

/// The classes of `files`: the first folder below the one that was listed, or that all paths of a list lie below, names
/// each file's. kInvalidArgument for a file that lies in no class's folder.
ClassFolders class_folders(const Dataset& files);
/// Tuples of the samples of `files` and the numbers of their classes, as class_folders finds them.
Dataset with_class_folders(Dataset files);
/// The folder in front of the first part of a pattern that stands for several names; a folder itself.
std::string class_root(std::string_view pattern);
/// The folder that all paths of a table lie below.
std::string shared_folder(const PathTable& paths);

/// Tuples of each sample, which is a file, and its label; `classes` are the names of the classes that labels are
/// numbers of, or empty. Of equal sizes.
Dataset labelled(Dataset files, const Dataset& labels, std::vector<std::string> classes);

}  // namespace penstock::data
