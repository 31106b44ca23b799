#include "core/per_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <mutex>
#include <thread>

namespace penstock::core {
namespace {

struct Kept {
  std::mutex mutex;
  int value = 0;
};

// A thread holds the lock while the process forks: there is nobody in the child who would give it back.
TEST(PerProcess, AChildHasOneOfItsOwn) {
  static PerProcess<Kept> kept;  // what it made stays
  Kept& mine = kept.get();
  std::promise<void> locked;
  std::promise<void> over;
  std::thread holder([&] {
    const std::scoped_lock lock(mine.mutex);
    mine.value = 7;
    locked.set_value();
    over.get_future().wait();
  });
  locked.get_future().wait();
  const pid_t child = ::fork();
  if (child == 0) {
    Kept& own = kept.get();
    const bool is_new = own.mutex.try_lock() && own.value == 0 && &own != &mine && &own == &kept.get();
    ::_exit(is_new ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  over.set_value();
  holder.join();
  EXPECT_EQ(status, 0);
  EXPECT_EQ(&kept.get(), &mine);
  EXPECT_EQ(mine.value, 7);
}

}  // namespace
}  // namespace penstock::core
