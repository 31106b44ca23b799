// What a source of the program's own throws is an Error, wherever it is read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

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
  Breaking(Source below, int good, bool waits) : below_(std::move(below)), good_(good), waits_(waits) {}
  const std::string& name() const noexcept override { return below_.name(); }
  std::uint64_t size() const noexcept override { return below_.size(); }
  bool waits() const noexcept override { return waits_; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (reads_++ >= good_) throw std::runtime_error("the tape is torn");
    below_.read(offset, into);
  }

 private:
  Source below_;
  int good_;
  bool waits_;
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
    for (int good = 0; good < 10; ++good) {
      const bool waits = good >= 8;  // such a source has fewer reads, and larger ones
      const auto own = std::make_shared<const Breaking>(open_source(path), waits ? good - 8 : good, waits);
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

// They are read by many threads, and what lies together by one call.
TEST(OwnReads, SourcesThatWaitGiveWhatTheirFilesDo) {
  const test::TemporaryFolder folder;
  std::vector<std::pair<std::string, Value>> tensors;
  std::uint64_t bytes = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    const std::int64_t rows = i == 20 ? 200'000 : 1 + i * 37;
    const Tensor tensor = arange(0, rows * 16, 1, DType::float32).reshape({rows, 16});
    tensors.emplace_back("w" + std::to_string(i), tensor);
    bytes += tensor.nbytes();
  }
  const Value all = Value::dict(tensors);
  for (const char* extension : {".npz", ".pt", ".safetensors"}) {
    const std::string path = folder / (std::string("many") + extension);
    save(all, path, {.sync = false});
    const Archive far = open(Source(std::make_shared<const Breaking>(open_source(path), 1'000'000, true)));
    const Archive near = open(path);
    Report report;
    const Value loaded = far.load({.report = &report});
    EXPECT_GE(report.payload_bytes, bytes) << extension;
    for (const auto& [name, tensor] : tensors) {
      EXPECT_TRUE(Tensor::identical(loaded[name].as_tensor(), tensor.as_tensor())) << extension << name;
    }
    EXPECT_GE(report.depth, 1U);
    const Tensor slice = far["w20"].slice(1, 3, 5).load();
    EXPECT_TRUE(Tensor::identical(slice, near["w20"].slice(1, 3, 5).load())) << extension;
  }
}

}  // namespace
}  // namespace penstock
