#include "format/elsewhere.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "format/pt/content.h"
#include "format/safetensors/header.h"
#include "format/text/npy_dtype.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

using enum DType::Code;

std::vector<DType> every_type() {
  std::vector<DType> types;
  for (int code = 0; code < static_cast<int>(kBytes); ++code) types.emplace_back(static_cast<DType::Code>(code));
  for (const auto& [code, descr] : std::vector<std::pair<DType::Code, std::string>>{{kBytes, "|S1"},
                                                                                    {kText, "<U1"},
                                                                                    {kVoid, "|V1"},
                                                                                    {kDateTime64, "<M8[s]"},
                                                                                    {kTimeDelta64, "<m8[s]"},
                                                                                    {kStructured, "[('a', '|i1')]"},
                                                                                    {kOpaque, "<f16"},
                                                                                    {kOpaque, "bits2x4"},
                                                                                    {kOpaque, "int4"},
                                                                                    {kOpaque, "object"}}) {
    types.push_back(DType::with_descr(code, 1, descr));
  }
  return types;
}

bool held(const DType& dtype, const std::string& extension) {
  try {
    if (extension == ".pt") {
      require_torch_dtype(dtype);
    } else if (extension == ".safetensors") {
      require_safetensors("x", dtype, 1);
    } else {
      npy_descr_literal(dtype);
    }
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    return false;
  }
}

TEST(Elsewhere, NamesFormatsThatHoldTheType) {
  for (const DType& dtype : every_type()) {
    const std::string advice = elsewhere(dtype);
    for (const std::string extension : {".pt", ".safetensors", ".npy"}) {
      if (advice.find(extension) == std::string::npos) continue;
      EXPECT_TRUE(held(dtype, extension)) << dtype.name() << ": " << advice;
    }
  }
}

TEST(Elsewhere, NamesAFormatWhereOneIsLeft) {
  for (const DType& dtype : every_type()) {
    const bool any = held(dtype, ".pt") || held(dtype, ".safetensors") || held(dtype, ".npy");
    EXPECT_EQ(elsewhere(dtype).find("save as") != std::string::npos, any) << dtype.name();
  }
}

}  // namespace
}  // namespace penstock::format
