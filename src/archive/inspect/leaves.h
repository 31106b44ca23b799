#pragma once

// All that an archive holds and that is no tensor, by the keys that lead there: what `diff` and `hash` compare besides
// tensors, and what names on the command line may mean.

#include <string>
#include <vector>

#include "penstock/load.h"
#include "penstock/value.h"

namespace penstock::archive {

/// What a nested content holds besides tensors: numbers, text, None, dtypes, bare names, objects of unknown classes,
/// sets, and containers with nothing in them. Attributes of tensors are among them, by `state`. A key of a dict that
/// its path does not tell from others (a tuple in a tuple, a frozenset, an object) is one too: a set of it alone.
struct Leaf {
  /// The keys that lead to it joined with dots, as names of tensors are made; positions in digits.
  std::string path;
  Value value;
};

/// Every leaf once for each way that leads to it, in the order of the file. An object comes before its arguments and
/// state, under their common path. What holds itself is left out where it comes again. kLimit where ways multiply
/// (core::SharedWalk).
std::vector<Leaf> leaves_of(const Archive& archive);

/// The paths of the leaves and of the tensors in a part that `path` leads to.
std::vector<std::string> paths_in(const Value& part, const std::string& path);

/// The path of an item of a dict at `path`.
std::string path_below(const std::string& path, const Value& key);

/// A text for which two leaves are equal exactly when theirs are, whatever the format they come from: the kind, a
/// colon, and the value. Of an object, and of a list, tuple or dict, its kind or class alone; but all of a set's items.
std::string canonical(const Value& value);

}  // namespace penstock::archive
