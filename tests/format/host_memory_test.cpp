// What a load to a device takes of the host's memory: the pinned ring, however large the file.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/pinned_ring.h"
#include "penstock/load.h"
#include "support/devices.h"
#include "support/files.h"
#include "support/process.h"

namespace penstock {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr std::uint64_t kMega = std::uint64_t{1} << 20;
constexpr std::uint64_t kTensor = 512 * kMega;

/// A line of /proc/self/status, which counts kilobytes.
std::uint64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoull(line.substr(name.size() + 1)) * 1024;
  }
  ADD_FAILURE() << "/proc/self/status has no " << name;
  return 0;
}

/// Two tensors of zeros in a file of holes.
std::string sparse_file(const test::TemporaryFolder& folder) {
  const std::string size = std::to_string(kTensor);
  std::string header = R"({"a":{"dtype":"U8","shape":[)" + size + R"(],"data_offsets":[0,)" + size +
                       R"(]},"b":{"dtype":"U8","shape":[)" + size + R"(],"data_offsets":[)" + size + "," +
                       std::to_string(2 * kTensor) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string start(8, '\0');
  start[0] = static_cast<char>(header.size() % 256);
  start[1] = static_cast<char>(header.size() / 256);
  const std::string path = folder / "x.safetensors";
  test::write_file(path, start + header);
  std::filesystem::resize_file(path, start.size() + header.size() + 2 * kTensor);
  return path;
}

class HostMemory : public test::WithDevice {};

/// In a process of its own, whose peak nothing else made.
TEST_F(HostMemory, DISABLED_Load) {
  const test::TemporaryFolder folder;
  const std::string path = sparse_file(folder);
  const Tensor warm = Tensor::zeros({16}).to(device);
  const std::uint64_t before = status_bytes("VmRSS");
  const Value there = load_value(path, {.device = device, .threads = 4});
  const std::uint64_t peak = status_bytes("VmHWM");
  ASSERT_EQ(there["b"].as_tensor().nbytes(), kTensor);
  // The memory of a simulated device is this process's own; that of a real one is not.
  const std::uint64_t after = status_bytes("VmRSS");
  const std::uint64_t on_device = after - before > 2 * kTensor ? 2 * kTensor : 0;
  const std::uint64_t ring = io::PinnedRing::kSlotBytes * io::PinnedRing::kSlots;
  EXPECT_LE(peak, before + on_device + ring + 16 * kMega);
}

TEST_F(HostMemory, OfALoadIsTheRing) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const test::Ended ended = test::run_again("PENSTOCK_SIM_AUDIT=1", "HostMemory.DISABLED_Load");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

}  // namespace
}  // namespace penstock
