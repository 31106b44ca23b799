// What a load to a device takes of the host's memory: the pinned ring, however large the file.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "device/pinned_ring.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "support/devices.h"
#include "support/files.h"
#include "support/process.h"
#include "support/sanitized.h"

namespace penstock {
namespace {

using test::kMega;
using test::kSanitized;

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

/// As much, in the other byte order.
std::string swapped_file(const test::TemporaryFolder& folder) {
  std::string header =
      "{'descr': '>i4', 'fortran_order': False, 'shape': (" + std::to_string(2 * kTensor / 4) + ",), }";
  header.resize(117, ' ');
  const std::string path = folder / "x.npy";
  test::write_file(path, std::string("\x93NUMPY\x01\0\x76\0", 10) + header + "\n");
  std::filesystem::resize_file(path, 128 + 2 * kTensor);
  return path;
}

/// A quarter of that, deflated.
std::string deflated_file(const test::TemporaryFolder& folder) {
  std::vector<std::pair<std::string, Value>> items;
  const Tensor zeros = Tensor::zeros({kTensor / 16}, DType::uint8);
  for (int i = 0; i < 8; ++i) items.emplace_back(std::to_string(i), Value::tensor(zeros));
  const std::string path = folder / "x.npz";
  save(Value::dict(std::move(items)), path, {.compress = true, .sync = false});
  return path;
}

class HostMemory : public test::WithDevice {
 protected:
  void expect_the_ring(const std::string& path, std::uint64_t bytes) {
    const Tensor warm = Tensor::zeros({16}).to(device);
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins here
    const std::uint64_t before = status_bytes("VmRSS");
    const Value there = load(path, {.device = device, .threads = 4});
    const std::uint64_t peak = status_bytes("VmHWM");
    // The memory of a simulated device is this process's own; that of a real one is not.
    const std::uint64_t after = status_bytes("VmRSS");
    const std::uint64_t on_device = after - before > bytes ? bytes : 0;
    const char* const megabytes = std::getenv("PENSTOCK_RING");
    const std::uint64_t ring = megabytes != nullptr
                                   ? std::stoull(megabytes) * kMega
                                   : device::PinnedRing::kSlotBytes * device::PinnedRing::kDefaultSlots;
    EXPECT_LE(peak, before + on_device + ring + 24 * kMega);
  }
};

/// In processes of their own, whose peaks nothing else made.
TEST_F(HostMemory, DISABLED_Plain) {
  const test::TemporaryFolder folder;
  expect_the_ring(sparse_file(folder), 2 * kTensor);
}
TEST_F(HostMemory, DISABLED_Swapped) {
  const test::TemporaryFolder folder;
  expect_the_ring(swapped_file(folder), 2 * kTensor);
}
TEST_F(HostMemory, DISABLED_Deflated) {
  const test::TemporaryFolder folder;
  expect_the_ring(deflated_file(folder), kTensor / 2);
}

TEST_F(HostMemory, OfALoadIsTheRing) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  for (const char* name : {"Plain", "Swapped", "Deflated"}) {
    const test::Ended ended = test::run_again("PENSTOCK_SIM_AUDIT=1", std::string("HostMemory.DISABLED_") + name);
    EXPECT_EQ(ended.status, 0) << name << '\n' << ended.output;
  }
  const test::Ended smaller = test::run_again("PENSTOCK_RING=16 PENSTOCK_SIM_AUDIT=1", "HostMemory.DISABLED_Plain");
  EXPECT_EQ(smaller.status, 0) << smaller.output;
}

}  // namespace
}  // namespace penstock
