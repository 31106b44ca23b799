#include "support/fuzz_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "penstock/load.h"
#include "support/outcome.h"
#include "support/payload.h"
#include "support/scratch_folder.h"

namespace penstock::fuzz {
namespace {

namespace fs = std::filesystem;
using RawBytes = std::span<const std::uint8_t>;

/// One folder for the whole run.
const fs::path& folder() {
  static const ScratchFolder scratch;
  return scratch.path();
}

void write(const std::string& name, RawBytes bytes) {
  std::ofstream out(folder() / name, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

bool read(bool verify) {
  const Archive archive = open(folder(), {.verify = verify});
  std::uint64_t payload = 0;
  for (const TensorEntry& entry : archive.entries()) {
    payload += std::min<std::uint64_t>(entry.nbytes(), kMostReadOnce + 1);
    if (payload > kMostReadOnce) return true;
  }
  static_cast<void>(archive.load({.verify = verify, .threads = 1}).to_string());
  for (std::size_t i = 0; i < archive.entries().size(); ++i) {
    const LazyTensor tensor = archive.entry(i);
    if (tensor.shape().rank() == 0 || tensor.shape()[0] == 0) continue;
    attempt([&] { return tensor.slice(0, tensor.shape()[0] / 2, tensor.shape()[0]).load({.threads = 1}); });
  }
  return true;
}

/// Bytes in memory that a stranger has given the name of the folder or of a file in it.
void read_alone(RawBytes bytes, const std::string& name) {
  const Tensor copy = Tensor::empty({static_cast<std::int64_t>(bytes.size())}, DType::uint8);
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  attempt([&] {
    const Archive archive = open(memory_source(copy.buffer(), name));
    require(archive.sources().size() == 1, "bytes in memory made another file be opened");
    return true;
  });
}

}  // namespace

int fuzz_folder(const std::string& first, const std::string& second, const std::uint8_t* data, std::size_t size) {
  std::uint32_t length = 0;
  if (size < sizeof length) return 0;
  std::memcpy(&length, data, sizeof length);
  const RawBytes bytes = RawBytes(data, size).subspan(sizeof length);
  const RawBytes head = bytes.first(std::min<std::size_t>(length, bytes.size()));
  const RawBytes rest = bytes.subspan(head.size());
  write(first, head);
  write(second, rest);
  const auto outcome = attempt([] { return read(true); });
  // Behind a checksum lies all that damage could do.
  if (outcome.failed_by(ErrorCode::kChecksum)) attempt([] { return read(false); });
  for (const RawBytes part : {head, rest}) {
    read_alone(part, folder().string());
    read_alone(part, (folder() / first).string());
  }
  return 0;
}

}  // namespace penstock::fuzz
