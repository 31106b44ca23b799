#pragma once

#include <memory>
#include <string>

#include "data/pack/new_place.h"

namespace penstock::data {

/// kInvalidArgument where something is there already that is no empty folder, or where objects have that prefix;
/// kUnsupported for URLs that nothing can be written to; the errors of `save`, and of listing a bucket.
std::unique_ptr<NewPlace> choose_place(const std::string& path);
/// kInvalidArgument where choose_place would find something there. A URL ends with a slash.
void require_new_place(const std::string& path);

}  // namespace penstock::data
