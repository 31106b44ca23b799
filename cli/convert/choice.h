#pragma once

// `penstock convert`: which tensors of which files go into the new file, and how they are called there.

#include <string>
#include <vector>

#include "penstock/load.h"

namespace penstock::cli {

/// What of some files goes into a new one, and under which names. Names are keys joined with dots, as `penstock ls`
/// prints them.
struct Choice {
  std::vector<std::string> only;     ///< patterns; a name stands for what is below it too. None: everything
  std::vector<std::string> exclude;  ///< the same, of what is left out
  std::vector<std::string> rename;   ///< texts that Renaming takes; one after the other
  bool text_keys = false;            ///< keys of dicts that are integers become text

  bool is_everything() const noexcept { return only.empty() && exclude.empty() && rename.empty() && !text_keys; }
};

/// The chosen part of each archive, together in one. Content that is no dict gets the archive's name of `names`, where
/// there are some. With `rename` the content becomes one dict of names. Errors:
/// kKeyNotFound for a pattern that no name matches and for nothing chosen; kInvalidArgument for a name that two tensors
/// would get, for content that has no names, and for a dict that would have two keys of one text.
Archive chosen(const std::vector<Archive>& archives, const std::vector<std::string>& names, const Choice& choice);

}  // namespace penstock::cli
