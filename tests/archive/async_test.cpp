#include "penstock/async.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "support/errors.h"
#include "support/files.h"
#include "support/limited_addresses.h"
#include "support/process.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::code_of;
using test::dict_of;
using test::numbered_tensor;

class AsyncTest : public testing::Test {
 protected:
  const Tensor tensor = numbered_tensor({100, 100}, DType::float32);
  test::TemporaryFolder folder{test::quick_folder()};
};

TEST_F(AsyncTest, TheResultAndErrorsArriveByTheFuture) {
  save_async(dict_of({{"w", tensor}}), folder / "x.pt").get();
  EXPECT_TRUE(Tensor::identical(load_async(folder / "x.pt").get()["w"].as_tensor(), tensor));
  EXPECT_TRUE(Tensor::identical(load_async(std::filesystem::path(folder / "x.pt")).get()["w"].as_tensor(), tensor));
  auto missing = load_async(folder / "none.pt");
  EXPECT_EQ(code_of([&] { missing.get(); }), ErrorCode::kNotFound);
  auto unsupported = save_async(Value::integer(3), folder / "x.npy");
  EXPECT_EQ(code_of([&] { unsupported.get(); }), ErrorCode::kUnsupported);
  EXPECT_EQ(folder.names().size(), 1U);
}

TEST_F(AsyncTest, FileUrlsAreTheirPaths) {
  for (const std::string scheme : {"file://", "file:"}) {
    save_async(Value::tensor(tensor), scheme + (folder / "x.npy")).get();
    EXPECT_TRUE(Tensor::identical(load_async(scheme + (folder / "x.npy")).get().as_tensor(), tensor));
  }
  auto elsewhere = load_async("file://another.host/x.npy");
  EXPECT_EQ(code_of([&] { elsewhere.get(); }), ErrorCode::kUnsupported);
}

TEST_F(AsyncTest, ACopyIsWhatTheTensorWas) {
  const Tensor changing = tensor.clone();
  const Value shared = dict_of({{"a", changing}, {"b", changing.slice(0, 0, 1)}});
  std::promise<void> go;
  SaveOptions held;
  held.before_commit = [wait = go.get_future().share()] { wait.wait(); };
  auto first = save_async(shared, folder / "x.pt", {.save = held});
  auto second = save_async(shared, folder / "x.pt", {});
  std::memset(changing.data(), 0, changing.nbytes());
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout) << "one at a time for a path";
  go.set_value();
  first.get();
  second.get();
  const Value back = load(folder / "x.pt");
  EXPECT_TRUE(Tensor::identical(back["a"].as_tensor(), tensor));
  const Tensor a = back["a"].as_tensor();
  const Tensor b = back["b"].as_tensor();
  EXPECT_EQ(a.data(), b.data()) << "what is shared stays shared";
}

/// In a process of its own, which keeps no memory of threads that ended.
TEST_F(AsyncTest, DISABLED_ASaveWithoutAThread) {
  std::promise<void> there;
  std::promise<void> go;
  SaveOptions held;
  held.before_commit = [&] {
    there.set_value();
    go.get_future().wait();
  };
  auto first = save_async(dict_of({{"w", tensor}}), folder / "x.pt", {.save = held});
  there.get_future().wait();
  {
    const test::LimitedAddresses little(1 << 20);
    EXPECT_EQ(code_of([&] { return save_async(dict_of({{"w", tensor}}), folder / "x.pt"); }), ErrorCode::kLimit);
  }
  auto third = save_async(dict_of({{"last", tensor}}), folder / "x.pt");
  EXPECT_EQ(third.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout)
      << "the first one has not ended";
  go.set_value();
  first.get();
  third.get();
  EXPECT_TRUE(load(folder / "x.pt").contains("last"));
}

TEST_F(AsyncTest, ASaveThatGetsNoThreadLetsNoOtherOvertake) {
  if (const auto why = test::LimitedAddresses::why_not(); !why.empty()) GTEST_SKIP() << why;
  const test::Ended ended = test::run_again("", "AsyncTest.DISABLED_ASaveWithoutAThread");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST_F(AsyncTest, TheLastSaveOfAPathStays) {
  std::vector<std::future<void>> saves;
  const std::string twin = (folder.path() / "." / "x.npy").string();
  for (std::int64_t i = 0; i < 20; ++i) {
    const Tensor number = Tensor::of({i});
    saves.push_back(save_async(Value::tensor(number), i % 2 == 0 ? twin : folder / "x.npy", {.copy = i % 3 == 0}));
  }
  for (std::future<void>& each : saves) each.get();
  EXPECT_EQ(load_tensor(folder / "x.npy").item<std::int64_t>(), 0 + 19);
}

TEST_F(AsyncTest, AFailedSaveLetsTheNextOneGoOn) {
  std::stop_source stop;
  stop.request_stop();
  auto stopped = save_async(Value::tensor(tensor), folder / "x.npy", {.save = {.stop = stop.get_token()}});
  auto next = save_async(Value::tensor(tensor), folder / "x.npy");
  EXPECT_EQ(code_of([&] { stopped.get(); }), ErrorCode::kCancelled);
  next.get();
  EXPECT_TRUE(Tensor::identical(load_tensor(folder / "x.npy"), tensor));
}

}  // namespace
}  // namespace penstock
