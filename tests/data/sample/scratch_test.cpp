#include "data/sample/scratch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace penstock::data {
namespace {

TEST(Arena, PiecesAreAlignedAndApart) {
  std::mt19937 random(3);
  Arena arena;
  for (int round = 0; round < 20; ++round) {
    struct Piece {
      std::byte* at;
      std::size_t bytes;
      std::byte mark;
    };
    std::vector<Piece> pieces;
    for (int i = 0; i < 200; ++i) {
      const std::size_t bytes = random() % (i % 50 == 0 ? 400'000 : 3000);
      const std::size_t align = std::size_t{1} << random() % 9;
      std::byte* at = arena.allocate(bytes, align);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(at) % align, 0u);
      std::size_t kept = bytes;
      if (random() % 3 == 0) arena.trim_last(kept = random() % (bytes + 1));
      const auto mark = static_cast<std::byte>(random());
      std::memset(at, static_cast<int>(mark), kept);
      pieces.push_back({at, kept, mark});
    }
    for (const Piece& piece : pieces) {
      for (std::size_t i = 0; i < piece.bytes; ++i) ASSERT_EQ(piece.at[i], piece.mark);
    }
    arena.reset();
    ASSERT_EQ(arena.used(), 0u);
  }
}

TEST(Arena, TheSameWorkAgainGetsTheSameMemory) {
  Arena arena;
  const auto work = [&] {
    std::vector<std::byte*> out;
    for (int i = 0; i < 100; ++i) out.push_back(arena.allocate(10'000));
    arena.reset();
    return out;
  };
  work();
  const auto second = work();
  EXPECT_EQ(work(), second);
  EXPECT_EQ(work(), second);
}

TEST(Arena, TrimmedBytesAreHandedOutAgain) {
  Arena arena;
  std::byte* first = arena.allocate(100'000, 64);
  const std::size_t before = arena.used() - 100'000;  // what alignment took
  arena.trim_last(10);
  EXPECT_EQ(arena.allocate(1, 1), first + 10);
  EXPECT_EQ(arena.used(), before + 11);
}

TEST(Scratch, KeepsOneStateForEachOwner) {
  struct Counter : Scratch::State {
    int value = 0;
  };
  Scratch scratch;
  const int a = 0;
  const int b = 0;
  scratch.state<Counter>(&a).value = 1;
  scratch.state<Counter>(&b).value = 2;
  scratch.reset();
  EXPECT_EQ(scratch.state<Counter>(&a).value, 1);
  EXPECT_EQ(scratch.state<Counter>(&b).value, 2);
}

}  // namespace
}  // namespace penstock::data
