#include "support/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "support/require.h"

namespace penstock::fuzz {

namespace {

int open_new(InputFile::Where where) {
  if (where == InputFile::Where::kMemory) return ::memfd_create("fuzz-input", MFD_CLOEXEC);
  return ::open(std::filesystem::temp_directory_path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

}  // namespace

InputFile::InputFile(std::span<const std::byte> content, Where where)
    : file_(open_new(where)), path_("/proc/self/fd/" + std::to_string(file_.get())) {
  const ssize_t written = ::write(file_.get(), content.data(), content.size());
  require(written == static_cast<ssize_t>(content.size()), "the input cannot be written to a file");
}

}  // namespace penstock::fuzz
