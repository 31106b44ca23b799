#pragma once

/// Labels of files, joined by the names of the files. Labels in the order of the samples need no join: `zip(files(...),
/// rows("labels.npy"))`, `zip(files(...), strings(names))`. Those that folders name are FilesOptions::class_folders.

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/text_view.h"

namespace penstock {

struct LabelOptions {
  /// The columns of the table, by the names in its first line. Empty: the first column has the file names, the second
  /// one the labels.
  std::string file = {};
  std::string label = {};
};

/// Each sample as the tuple of itself and its label, from a table in a CSV file (UTF-8, commas, quotes as in RFC 4180)
/// whose first line names the columns. A file name of the table stands for the file whose path ends with it: "7.npy",
/// "cat/7.npy", or "cat/7" without the extension; the longest one counts. A name that ends several paths labels all of
/// these files. Labels that are all whole numbers are integers, and those that are all numbers floats. Other labels are
/// classes: the label is the number of the class, whose name Dataset::classes() has, in bytewise order. Names that
/// stand for no file are fine; kInvalidArgument names a file without a label or with an empty one, a name with two
/// labels, a whole number beyond 64 bits, a line with too few or too many columns, a column that is not there, and a
/// dataset whose samples are no files.
Dataset with_labels(const Dataset& dataset, TextView table, const LabelOptions& options = {});
/// The same with pairs of file name and label.
Dataset with_labels(const Dataset& dataset, const std::vector<std::pair<std::string, std::string>>& table);
inline Dataset with_labels(const Dataset& dataset, std::initializer_list<std::pair<std::string, std::string>> table) {
  return with_labels(dataset, std::vector<std::pair<std::string, std::string>>(table));
}

}  // namespace penstock
