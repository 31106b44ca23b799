#pragma once

#include <string>

namespace penstock::io {

/// The name of NVIDIA's cuFile library, which is opened on the first call and never closed; empty where there is none.
const std::string& cufile_library();

}  // namespace penstock::io
