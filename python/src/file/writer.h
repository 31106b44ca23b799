#pragma once

// Writing: what penstock.save and penstock.Writer share.

#include <map>
#include <optional>
#include <string>

#include "interpreter/nanobind.h"

namespace penstock::python {

/// The texts that a `.safetensors` keeps; nothing for None. kDTypeMismatch for what is no text.
std::optional<std::map<std::string, std::string>> metadata_from(nb::handle metadata);

}  // namespace penstock::python
