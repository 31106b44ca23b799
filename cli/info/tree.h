#pragma once

// `penstock info`: content as a tree; json_content.h has it as JSON.

#include "penstock/load.h"
#include "penstock/value.h"

namespace penstock::cli {

/// Prints what an archive holds as a tree: for each layer its elements and bytes, for each tensor type and shape (and
/// the file that holds it, where there are several), for numbers and text their values. Names with dots are layers in
/// layers. A part that lies in several places is printed in the first and counted there. `depth`: levels that are
/// printed; what lies below is summed up.
void print_tree(const Archive& archive, std::size_t depth);

/// Whether it is a dict, a list, a tuple, a set or an object.
bool is_container(const Value& value);

}  // namespace penstock::cli
