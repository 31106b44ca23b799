// The memory that kernels run on: what it stops, and in which order threads run.

#include "simulator/ptx/machine.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <set>

#include "simulator/ptx/kernels.h"

namespace penstock::simulator::ptx {
namespace {

constexpr int kLine = 12;

class PtxMachine : public testing::Test {
 protected:
  // Of each the kernel is given the first 64 bytes.
  static constexpr std::size_t kGiven = 64;
  alignas(16) std::array<std::byte, 96> written_{};
  alignas(16) std::array<std::byte, 96> read_{};
  alignas(16) std::array<std::byte, 16> parameters_{};
  const std::array<Range, 2> ranges_ = {Range{written_.data(), kGiven, true}, Range{read_.data(), kGiven, false}};
  Machine machine_{ranges_, parameters_};

  std::uint64_t at(std::size_t place) { return reinterpret_cast<std::uint64_t>(written_.data()) + place; }
  static std::string fault_of(const std::function<void()>& access) {
    try {
      access();
    } catch (const Fault& fault) {
      EXPECT_EQ(fault.line, kLine);
      return fault.what();
    }
    return "";
  }
};

TEST_F(PtxMachine, LoadsWhatWasStored) {
  machine_.begin_thread(0);
  machine_.store_global<std::uint32_t>(at(60), 0x01020304, kLine);
  EXPECT_EQ(machine_.load_global<std::uint16_t>(at(62), kLine), 0x0102);
}

TEST_F(PtxMachine, StopsAtTheEndsOfArrays) {
  machine_.begin_thread(0);
  EXPECT_NE(fault_of([&] { machine_.load_global<std::uint32_t>(at(64), kLine); }), "");
  EXPECT_NE(fault_of([&] { machine_.store_global<std::uint8_t>(at(0) - 1, 1, kLine); }), "");
  EXPECT_NE(fault_of([&] { machine_.load_global<std::uint64_t>(0, kLine); }), "");
  EXPECT_NE(
      fault_of([&] { machine_.store_global<std::uint8_t>(reinterpret_cast<std::uint64_t>(read_.data()), 1, kLine); }),
      "");
  EXPECT_NE(fault_of([&] { machine_.load_parameter<std::uint64_t>(machine_.parameters() + 16, kLine); }), "");
  EXPECT_NE(fault_of([&] { machine_.load_constant<std::uint32_t>(at(0), kLine); }), "");
}

TEST_F(PtxMachine, StopsAtAddressesThatAreNotAligned) {
  machine_.begin_thread(0);
  EXPECT_NE(fault_of([&] { machine_.load_global<std::uint32_t>(at(2), kLine); }), "");
  EXPECT_NE(fault_of([&] { Machine::check_aligned(at(8), 16, kLine); }), "");
}

TEST_F(PtxMachine, StopsWhereThreadsMeet) {
  machine_.begin_thread(0);
  machine_.store_global<std::uint32_t>(at(0), 1, kLine);
  machine_.load_global<std::uint32_t>(at(8), kLine);
  EXPECT_EQ(fault_of([&] { machine_.store_global<std::uint8_t>(at(3), 1, kLine); }), "");  // its own byte once more
  machine_.begin_thread(1);
  EXPECT_EQ(fault_of([&] { machine_.load_global<std::uint32_t>(at(8), kLine); }), "");  // two readers
  EXPECT_NE(fault_of([&] { machine_.store_global<std::uint8_t>(at(3), 1, kLine); }), "");
  EXPECT_NE(fault_of([&] { machine_.load_global<std::uint8_t>(at(0), kLine); }), "");
  EXPECT_NE(fault_of([&] { machine_.store_global<std::uint8_t>(at(11), 1, kLine); }), "");
}

TEST_F(PtxMachine, TakesArraysThatOverlapForOne) {
  const std::array<Range, 2> halves = {Range{written_.data(), 40, false}, Range{written_.data() + 8, 56, true}};
  Machine machine(halves, parameters_);
  machine.begin_thread(0);
  machine.load_global<std::uint8_t>(at(8), kLine);
  machine.begin_thread(1);
  EXPECT_NE(fault_of([&] { machine.store_global<std::uint8_t>(at(8), 1, kLine); }), "");
  EXPECT_EQ(fault_of([&] { machine.store_global<std::uint8_t>(at(63), 1, kLine); }), "");
}

std::set<std::uint64_t>* seen = nullptr;

TEST(PtxLaunch, EachThreadRunsOnceInEveryOrder) {
  const Kernel note{"note",
                    "",
                    [](const Thread& thread, Machine&) {
                      const std::uint64_t block = thread.ctaid.x + thread.nctaid.x * std::uint64_t{thread.ctaid.y};
                      const std::uint64_t inside = thread.tid.x + thread.ntid.x * std::uint64_t{thread.tid.y};
                      EXPECT_TRUE(seen->insert(block * thread.ntid.count() + inside).second);
                    },
                    0,
                    {}};
  for (const Order order : {Order::kForward, Order::kBackward, Order::kShuffled}) {
    for (const Launch& launch :
         {Launch{{1}, {1}, order}, Launch{{7}, {101}, order}, Launch{{2, 3}, {4, 5}, order}, Launch{{30}, {30}, order},
          Launch{{391}, {256}, order}, Launch{{3 * 587}, {64}, order}}) {
      std::set<std::uint64_t> threads;
      seen = &threads;
      run(note, launch, {}, {});
      EXPECT_EQ(threads.size(), launch.grid.count() * launch.block.count());
      EXPECT_EQ(*threads.rbegin(), threads.size() - 1);
    }
  }
}

}  // namespace
}  // namespace penstock::simulator::ptx
