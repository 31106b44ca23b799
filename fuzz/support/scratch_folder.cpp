#include "support/scratch_folder.h"

#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include "support/require.h"

namespace penstock::fuzz {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  const fs::path memory = "/dev/shm";
  const bool in_memory = ::access(memory.c_str(), W_OK | X_OK) == 0;
  std::string pattern = ((in_memory ? memory : fs::temp_directory_path()) / "penstock-fuzz-XXXXXX").string();
  require(::mkdtemp(pattern.data()) != nullptr, "no folder to work in");
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace penstock::fuzz
