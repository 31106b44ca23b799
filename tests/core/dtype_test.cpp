#include "penstock/dtype.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "penstock/error.h"

namespace penstock {
namespace {

using enum DType::Code;

bool has_descr(DType::Code code) { return code >= kBytes; }

std::vector<DType::Code> all_codes() {
  std::vector<DType::Code> codes;
  for (int i = 0; i <= static_cast<int>(kOpaque); ++i) codes.push_back(static_cast<DType::Code>(i));
  return codes;
}

TEST(DType, EveryNameIsUniqueAndFindsItsType) {
  std::set<std::string> names;
  for (const DType::Code code : all_codes()) {
    const DType type(code);
    EXPECT_TRUE(names.insert(type.name()).second) << type.name();
    if (has_descr(code)) continue;
    ASSERT_TRUE(DType::from_name(type.name())) << type.name();
    EXPECT_EQ(*DType::from_name(type.name()), type);
    EXPECT_EQ(DType::from_name("torch." + type.name()), type);
    if (!type.numpy_descr().empty()) {
      EXPECT_EQ(DType::from_name(type.numpy_descr()), type);
    }
  }
}

TEST(DType, NamesOfNumPyAndPyTorch) {
  EXPECT_EQ(DType::from_name("half"), DType::float16);
  EXPECT_EQ(DType::from_name("torch.float"), DType::float32);
  EXPECT_EQ(DType::from_name("torch.int"), DType::int32);
  EXPECT_EQ(DType::from_name("long"), DType::int64);
  EXPECT_EQ(DType::from_name("f4"), DType::float32);
  EXPECT_EQ(DType::from_name("c16"), DType::complex128);
  EXPECT_EQ(DType::from_name("bf16"), DType::bfloat16);
  EXPECT_EQ(DType::from_name("fp16"), DType::float16);
  EXPECT_EQ(DType::from_name("fp32"), DType::float32);
  EXPECT_EQ(DType::from_name("fp64"), DType::float64);
  EXPECT_FALSE(DType::from_name("f16")) << "half in safetensors, 128 bits in NumPy";
  EXPECT_FALSE(DType::from_name("float")) << "float64 in NumPy, float32 in PyTorch";
  EXPECT_FALSE(DType::from_name(">f4"));
  EXPECT_FALSE(DType::from_name("str"));
  EXPECT_FALSE(DType::from_name(""));
  EXPECT_FALSE(DType::from_name("<"));
  EXPECT_FALSE(DType::from_name("float32 "));
}

TEST(DType, WidthsAgree) {
  for (const DType::Code code : all_codes()) {
    const DType type(code);
    const std::size_t parts = type.is_complex() ? 2 : 1;
    if (type.is_numeric()) {
      EXPECT_EQ(type.swap_width() * parts, type.itemsize()) << type.name();
      EXPECT_EQ(type.bits(), type.itemsize() * 8) << type.name();
    }
  }
  EXPECT_EQ(DType(kFloat6E2M3).bits(), 6U);
  EXPECT_EQ(DType(kFloat6E3M2).itemsize(), 3U) << "four values";
  EXPECT_EQ(DType(kFloat4E2M1FNx2).itemsize(), 1U);
  EXPECT_EQ(DType(kFloat4E2M1FNx2).bits(), 4U);
  EXPECT_EQ(DType(kQUInt2x4).bits(), 2U);
  EXPECT_EQ(DType(kQInt32).swap_width(), 4U);
  EXPECT_EQ(DType(kBits16).swap_width(), 2U);
}

TEST(DType, DescribedTypesAreCalledAsInNumPy) {
  const DType text = DType::with_descr(kText, 20, "<U5");
  EXPECT_EQ(text.name(), "str160");
  EXPECT_EQ(text.numpy_descr(), "<U5");
  EXPECT_EQ(text.itemsize(), 20U);
  EXPECT_EQ(text.swap_width(), 4U);
  EXPECT_EQ(DType::with_descr(kText, 0, "<U0").name(), "str");
  EXPECT_EQ(DType::with_descr(kBytes, 3, "|S3").name(), "bytes24");
  EXPECT_EQ(DType::with_descr(kVoid, 5, "|V5").name(), "void40");
  EXPECT_EQ(DType::with_descr(kDateTime64, 8, "<M8[ns]").name(), "datetime64[ns]");
  EXPECT_EQ(DType::with_descr(kDateTime64, 8, "<M8").name(), "datetime64");
  EXPECT_EQ(DType::with_descr(kTimeDelta64, 8, "<m8[25s]").name(), "timedelta64[25s]");
  EXPECT_EQ(DType::with_descr(kOpaque, 1, "torch.int4").name(), "torch.int4");
  EXPECT_EQ(DType::with_descr(kOpaque, 1, "torch.int4").numpy_descr(), "");
  const DType record = DType::with_descr(kStructured, 6, "[('a', '<f4'), ('b', '>i2')]");
  EXPECT_EQ(record.name(), "[('a', '<f4'), ('b', '>i2')]");
  EXPECT_EQ(record.numpy_descr(), record.name());
  EXPECT_EQ(record.swap_width(), 1U);
}

TEST(DType, ComparesContent) {
  EXPECT_EQ(DType::with_descr(kText, 20, "<U5"), DType::with_descr(kText, 20, "<U5"));
  EXPECT_NE(DType::with_descr(kText, 20, "<U5"), DType::with_descr(kText, 24, "<U6"));
  EXPECT_NE(DType::with_descr(kDateTime64, 8, "<M8[s]"), DType::with_descr(kDateTime64, 8, "<M8[ms]"));
  EXPECT_NE(DType::with_descr(kDateTime64, 8, "<M8[s]"), DType(kDateTime64));
  EXPECT_NE(DType::int8, DType::uint8);
}

TEST(DType, RefusesWhatItCannotHold) {
  const auto code_of = [](auto make) {
    try {
      make();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kCancelled;
  };
  EXPECT_EQ(code_of([] { DType::with_descr(kFloat32, 4, "<f4"); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { DType::with_descr(kVoid, std::size_t{1} << 32, "|V4294967296"); }), ErrorCode::kLimit);
  EXPECT_EQ(DType::with_descr(kVoid, 0xFFFFFFFF, "|V4294967295").itemsize(), 0xFFFFFFFFU);
}

TEST(DType, Kinds) {
  EXPECT_TRUE(DType::float8_e5m2.is_floating());
  EXPECT_TRUE(DType::float8_e5m2.is_numeric());
  EXPECT_FALSE(DType::float8_e8m0fnu.is_signed());
  EXPECT_FALSE(DType(kFloat4E2M1FNx2).is_numeric());
  EXPECT_FALSE(DType(kQInt8).is_integer());
  EXPECT_TRUE(DType(kQInt8).is_signed());
  EXPECT_TRUE(DType::complex32.is_complex());
  EXPECT_FALSE(DType::boolean.is_integer());
  EXPECT_TRUE(DType::boolean.is_numeric());
  EXPECT_FALSE(DType::uint8.is_signed());
  EXPECT_FALSE(DType(kDateTime64).is_numeric());
}

}  // namespace
}  // namespace penstock
