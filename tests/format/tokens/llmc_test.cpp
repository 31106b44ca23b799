#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "format/rows.h"
#include "penstock/load.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/token_files.h"

namespace penstock::format {
namespace {

using test::llmc;
using test::source_of;

std::string gpt2(std::int32_t count, const std::vector<std::uint16_t>& tokens) {
  return llmc(20240520, 1, count, tokens);
}

std::optional<Error> error_of(const std::string& file) {
  return test::error_of([&] { open(source_of(file, "x.bin")); });
}

TEST(Llmc, BothWidthsAreTokens) {
  const Archive narrow = open(source_of(gpt2(3, {50256, 1, 65535})));
  EXPECT_EQ(narrow.format(), "llmc");
  EXPECT_TRUE(Tensor::identical(narrow.load().as_tensor(), Tensor::of<std::uint16_t>({50256, 1, 65535})));
  const Archive wide = open(source_of(llmc<std::uint32_t>(20240801, 7, 2, {128000, 70000})));
  EXPECT_TRUE(Tensor::identical(wide.load().as_tensor(), Tensor::of<std::uint32_t>({128000, 70000})));
  EXPECT_EQ(wide.metadata().at("version"), "7");
}

TEST(Llmc, NoTokensAreNone) { EXPECT_EQ(open(source_of(gpt2(0, {}))).load().as_tensor().shape(), Shape({0})); }

TEST(Llmc, AnotherVersionIsUnsupported) {
  const auto error = error_of(llmc<std::uint16_t>(20240520, 2, 1, {1}));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_EQ(error->offset(), 4);
}

TEST(Llmc, CountsThatLieAreErrors) {
  EXPECT_EQ(error_of(gpt2(-1, {1}))->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error_of(gpt2(3, {1, 2}))->code(), ErrorCode::kTruncated);
  EXPECT_EQ(error_of(gpt2(0x7fffffff, {1, 2}))->code(), ErrorCode::kTruncated);
  const auto error = error_of(gpt2(1, {1, 2}));
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error->message(), "2 bytes are behind the last token that the header counts");
  EXPECT_EQ(error->offset(), 1026);
}

TEST(Llmc, ANumberThatBecameAnotherIsAnError) {
  std::string file = gpt2(1, {1});
  file[0] = '\0';
  EXPECT_EQ(test::code_of([&] { kLlmcFormat.read_index(source_of(file, "x.bin"), {}); }), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace penstock::format
