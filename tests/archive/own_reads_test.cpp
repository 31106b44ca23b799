// What a source of the program's own throws is an Error, wherever it is read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "penstock/load.h"
#include "penstock/loader.h"
#include "penstock/ops.h"
#include "penstock/save.h"
#include "penstock/source.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

/// A file whose reads throw from one of them on.
class Breaking final : public ByteSource {
 public:
  Breaking(Source below, int good) : below_(std::move(below)), good_(good) {}
  const std::string& name() const noexcept override { return below_.name(); }
  std::uint64_t size() const noexcept override { return below_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (reads_++ >= good_) throw std::runtime_error("the tape is torn");
    below_.read(offset, into);
  }

 private:
  Source below_;
  int good_;
  mutable std::atomic<int> reads_ = 0;
};

TEST(OwnReads, WhatTheyThrowIsAnErrorWithThePath) {
  const test::TemporaryFolder folder;
  const Tensor large = Tensor::zeros({1 << 20}, DType::float32);
  for (const char* extension : {".npy", ".npz", ".pt", ".safetensors"}) {
    const std::string path = folder / (std::string("large") + extension);
    save(Value({{"w", large}}).is(Value::Kind::kDict) && std::string(extension) != ".npy" ? Value({{"w", large}})
                                                                                         : Value(large),
         path, {.sync = false});
    int failed = 0;
    for (int good = 0; good < 8; ++good) {
      const auto own = std::make_shared<const Breaking>(open_source(path), good);
      const auto error = test::error_of([&] { open(Source(own)).load(); });
      if (!error) continue;
      ++failed;
      EXPECT_EQ(error->code(), ErrorCode::kUserCode) << extension << good;
      EXPECT_THAT(error->what(), HasSubstr("the tape is torn"));
      EXPECT_EQ(error->path(), path);
    }
    EXPECT_GT(failed, 1) << extension;
  }
}

}  // namespace
}  // namespace penstock
