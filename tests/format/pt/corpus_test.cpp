// Files that other programs wrote, against what torch finds in them (data/make_pt_corpus.py).

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "io/copy/crc32.h"
#include "penstock/load.h"
#include "support/bytes.h"
#include "support/errors.h"

namespace penstock::format {
namespace {

constexpr const char* kExpected = "tests/format/data/pt_corpus.json";

std::uint32_t crc_of(const Tensor& tensor) {
  const Tensor elements = tensor.contiguous();
  return io::crc32(0, {elements.data(), elements.nbytes()});
}

Shape shape_of(const nlohmann::json& sizes) {
  Shape out;
  for (const auto& size : sizes) out.push_back(size.get<std::int64_t>());
  return out;
}

void expect_tensor(const Archive& archive, const std::string& name, const nlohmann::json& expected) {
  ASSERT_TRUE(archive.contains(name)) << name;
  const LazyTensor lazy = archive[name];
  EXPECT_EQ(lazy.dtype().name(), expected["dtype"].get<std::string>()) << name;
  EXPECT_EQ(lazy.shape(), shape_of(expected["shape"])) << name;
  EXPECT_EQ(lazy.strides(), shape_of(expected["stride"])) << name;
  EXPECT_EQ(lazy.entry().requires_grad, expected["requires_grad"].get<bool>()) << name;
  EXPECT_EQ(crc_of(lazy.load()), expected["crc32"].get<std::uint32_t>()) << name;
}

TEST(PtCorpus, EveryFileIsWhatTorchFinds) {
  const auto folder = test::corpus();
  if (!folder) GTEST_SKIP() << "the corpus is not beside the project (set PENSTOCK_CORPUS)";
  std::ifstream stream(kExpected);
  ASSERT_TRUE(stream) << "run from the project's root";
  const nlohmann::json expected = nlohmann::json::parse(stream);
  ASSERT_EQ(expected.size(), 156U);
  for (const auto& [file, tensors] : expected.items()) {
    SCOPED_TRACE(file);
    const Archive archive = open((*folder / file).string());
    EXPECT_EQ(archive.format(), "pt");
    EXPECT_TRUE(archive.unknown_globals().empty());
    EXPECT_EQ(archive.entries().size(), tensors.size());
    for (const auto& [name, tensor] : tensors.items()) expect_tensor(archive, name, tensor);
  }
}

TEST(PtCorpus, WhatIsNoTensorFileIsRefused) {
  const auto folder = test::corpus();
  if (!folder) GTEST_SKIP() << "the corpus is not beside the project (set PENSTOCK_CORPUS)";
  const std::string broken = (*folder / "burn/reader/broken.pt").string();  // three bytes of text
  EXPECT_EQ(test::code_of([&] { open(broken); }), ErrorCode::kUnknownFormat);
}

TEST(PtCorpus, OneModelInTwoFormatsHasTheSameTensors) {
  const auto folder = test::corpus();
  if (!folder) GTEST_SKIP() << "the corpus is not beside the project (set PENSTOCK_CORPUS)";
  const Archive torch = open((*folder / "burn/mnist.pt").string());
  const Archive safe = open((*folder / "burn/mnist.safetensors").string());
  ASSERT_EQ(torch.entries().size(), safe.entries().size());
  const auto entries = safe.entries();
  for (const TensorEntry& entry : entries) {  // two trainings of it: other values
    ASSERT_TRUE(torch.contains(entry.name)) << entry.name;
    EXPECT_EQ(torch[entry.name].dtype(), entry.dtype) << entry.name;
    EXPECT_EQ(torch[entry.name].shape(), entry.shape) << entry.name;
  }
}

TEST(PtCorpus, LegacyStoragesAreSharedAndTheirViewsKept) {
  const auto folder = test::corpus();
  if (!folder) GTEST_SKIP() << "the corpus is not beside the project (set PENSTOCK_CORPUS)";
  const Archive archive = open((*folder / "burn/reader/legacy_uncloned_views.pt").string());
  EXPECT_EQ(archive.storages().size(), 1U);
  const Value value = archive.load();
  const Tensor first = value["tensor1"].as_tensor();
  const Tensor second = value["tensor2"].as_tensor();
  EXPECT_TRUE(first.buffer().shares_memory_with(second.buffer()));
  EXPECT_EQ(second.data() - first.data(), 160);  // elements 10 and 50
}

}  // namespace
}  // namespace penstock::format
