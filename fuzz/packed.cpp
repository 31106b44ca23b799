// Packed samples: the file is one shard, whose every sample must be readable or refused.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "data/dataset_impl.h"
#include "penstock/error.h"
#include "penstock/pack.h"

namespace {

constexpr std::int64_t kSamples = 100;
constexpr std::uint64_t kMostBytes = 1 << 20;

void read_all(const std::string& path) {
  const penstock::Dataset dataset = penstock::packed(path);
  for (std::int64_t i = 0; i < std::min(dataset.size(), kSamples); ++i) {
    if (dataset.impl().read_bytes(i) > kMostBytes) std::abort();  // more than the file has
    static_cast<void>(dataset.get(i));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = ::memfd_create("shard", MFD_CLOEXEC);
  if (size <= kMostBytes && ::write(file, data, size) == static_cast<ssize_t>(size)) {
    try {
      read_all("/proc/self/fd/" + std::to_string(file));
    } catch (const penstock::Error& error) {
      if (error.message().empty()) std::abort();
    }
  }
  ::close(file);
  return 0;
}
