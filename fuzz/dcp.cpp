// A folder of a distributed checkpoint: the input is its one file of streams, behind the length of `.metadata` (4
// bytes) and `.metadata`. What opens must load, whole and one tensor at a time, or give an Error.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "penstock/load.h"
#include "support/outcome.h"
#include "support/scratch_folder.h"

namespace penstock::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxPayload = std::uint64_t{16} << 20;

/// One folder for the whole run.
const fs::path& folder() {
  static const ScratchFolder scratch;
  return scratch.path();
}

void write(const char* name, const std::uint8_t* data, std::size_t size) {
  std::ofstream out(folder() / name, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

bool read(bool verify) {
  const Archive archive = open(folder(), {.verify = verify});
  std::uint64_t payload = 0;
  for (const TensorEntry& entry : archive.entries()) {
    payload += std::min<std::uint64_t>(entry.nbytes(), kMaxPayload + 1);
    if (payload > kMaxPayload) return true;
  }
  static_cast<void>(archive.load({.verify = verify, .threads = 1}).to_string());
  for (std::size_t i = 0; i < archive.entries().size(); ++i) {
    const LazyTensor tensor = archive.entry(i);
    if (tensor.shape().rank() == 0 || tensor.shape()[0] == 0) continue;
    attempt([&] { return tensor.slice(0, tensor.shape()[0] / 2, tensor.shape()[0]).load({.threads = 1}); });
  }
  return true;
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::fuzz;
  std::uint32_t length = 0;
  if (size < sizeof length) return 0;
  std::memcpy(&length, data, sizeof length);
  data += sizeof length;
  size -= sizeof length;
  length = std::min(length, static_cast<std::uint32_t>(size));
  write(".metadata", data, length);
  write("__0_0.distcp", data + length, size - length);
  const auto outcome = attempt([] { return read(true); });
  // Behind a checksum lies all that damage could do.
  if (outcome.failed_by(penstock::ErrorCode::kChecksum)) attempt([] { return read(false); });
  return 0;
}
