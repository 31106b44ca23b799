#include "format/text/npy_dtype.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "support/errors.h"

namespace penstock::format {
namespace {

using enum DType::Code;

struct Descr {
  std::string_view text;
  DType dtype;
  bool swapped = false;
};

DType described(DType::Code code, std::size_t itemsize, std::string descr) {
  return DType::with_descr(code, itemsize, std::move(descr));
}

TEST(NpyDType, UnderstandsWhatNumpyWrites) {
  for (const Descr& descr : {
           Descr{"|b1", DType::boolean},
           Descr{">b1", DType::boolean},
           Descr{"|u1", DType::uint8},
           Descr{"<u2", DType::uint16},
           Descr{">u4", DType::uint32, true},
           Descr{"=u8", DType::uint64},
           Descr{"|i1", DType::int8},
           Descr{">i1", DType::int8},
           Descr{"i2", DType::int16},
           Descr{"<i4", DType::int32},
           Descr{">i8", DType::int64, true},
           Descr{"<f2", DType::float16},
           Descr{"|f4", DType::float32},
           Descr{">f8", DType::float64, true},
           Descr{"<c8", DType::complex64},
           Descr{">c16", DType::complex128, true},
           Descr{"<f1", DType::float8_e5m2},
           Descr{"|S0", described(kBytes, 0, "|S0")},
           Descr{"S", described(kBytes, 0, "|S0")},
           Descr{"|S12", described(kBytes, 12, "|S12")},
           Descr{">S3", described(kBytes, 3, "|S3")},
           Descr{"<U5", described(kText, 20, "<U5")},
           Descr{">U5", described(kText, 20, "<U5"), true},
           Descr{">U0", described(kText, 0, "<U0")},
           Descr{"|V7", described(kVoid, 7, "|V7")},
           Descr{"<V2", described(kVoid, 2, "|V2")},
           Descr{"<M8[ns]", described(kDateTime64, 8, "<M8[ns]")},
           Descr{">M8[25us]", described(kDateTime64, 8, "<M8[25us]"), true},
           Descr{"<M8", described(kDateTime64, 8, "<M8")},
           Descr{"<m8[generic]", described(kTimeDelta64, 8, "<m8[generic]")},
           Descr{">m8[D]", described(kTimeDelta64, 8, "<m8[D]"), true},
           Descr{"<f16", described(kOpaque, 16, "<f16")},
           Descr{">c32", described(kOpaque, 32, ">c32")},
           Descr{"f12", described(kOpaque, 12, "<f12")},
           Descr{"bfloat16", DType::bfloat16},
           Descr{"float8_e4m3fn", DType::float8_e4m3fn},
           Descr{"float32", DType::float32},
           Descr{"int4", described(kOpaque, 1, "int4")},
           Descr{"float6_e2m3fn", described(kOpaque, 1, "float6_e2m3fn")},
       }) {
    const NpyType type = npy_type_from_string(descr.text);
    EXPECT_EQ(type.dtype, descr.dtype) << descr.text;
    EXPECT_EQ(type.byte_swapped, descr.swapped) << descr.text;
    EXPECT_FALSE(type.has_objects) << descr.text;
    EXPECT_EQ(type.inner, Shape()) << descr.text;
  }
}

TEST(NpyDType, MarksObjects) {
  for (const auto* const descr : {"|O", "O", "|O4", "|O8"}) {
    const NpyType type = npy_type_from_string(descr);
    EXPECT_TRUE(type.has_objects) << descr;
    EXPECT_EQ(type.dtype.code(), kOpaque);
    EXPECT_EQ(type.dtype.itemsize(), 0u);
  }
}

TEST(NpyDType, RefusesUnknownTypes) {
  for (const auto* const descr : {"",
                                  "<",
                                  "<f3",
                                  "<f04",
                                  "<f",
                                  "f",
                                  "<i16",
                                  "<c4",
                                  "|b2",
                                  "<q8",
                                  "x",
                                  "<M4",
                                  "<M8[",
                                  "<M8[]",
                                  "<M8[xs]",
                                  "<M8[0s]",
                                  "<M8[1234567890s]",
                                  "<M8[s]x",
                                  "<S3x",
                                  "<S-1",
                                  "Object",
                                  "<bfloat16",
                                  "torch.float32",
                                  "complex32",
                                  "qint8",
                                  "half",
                                  "<f4, <f4",
                                  "3f4",
                                  "<f4 "}) {
    EXPECT_EQ(test::code_of([&] { npy_type_from_string(descr); }), ErrorCode::kUnsupported) << descr;
  }
  EXPECT_EQ(test::code_of([] { npy_type_from_string("<S99999999999"); }), ErrorCode::kLimit);
  EXPECT_EQ(test::code_of([] { npy_type_from_string("<V2147483648"); }), ErrorCode::kLimit);
}

TEST(NpyDType, KeepsTheFilesOrder) {
  for (const auto* const descr : {"|b1", ">f4", "<f4", ">U5", "|S3", ">M8[ns]", ">f16", "|O"}) {
    EXPECT_EQ(npy_descr_in_file_order(npy_type_from_string(descr)), descr);
  }
  EXPECT_EQ(npy_descr_in_file_order(npy_type_from_string("bfloat16")), "|V2");
}

TEST(NpyDType, IsWrittenSoThatNumpyReadsIt) {
  EXPECT_EQ(npy_descr_literal(DType::float32), "'<f4'");
  EXPECT_EQ(npy_descr_literal(DType::boolean), "'|b1'");
  EXPECT_EQ(npy_descr_literal(DType::bfloat16), "'<V2'");
  EXPECT_EQ(npy_descr_literal(DType::float8_e5m2), "'<V1'");
  EXPECT_EQ(npy_descr_literal(described(kDateTime64, 8, "<M8[25us]")), "'<M8[25us]'");
  EXPECT_EQ(npy_descr_literal(described(kStructured, 4, "[('a', '>f4')]")), "[('a', '>f4')]");
  EXPECT_EQ(npy_descr_literal(described(kOpaque, 16, ">f16")), "'>f16'");
}

TEST(NpyDType, RefusesToWriteWhatNumpyLacks) {
  for (const DType& dtype : {DType(DType::complex32), DType(kQInt8), DType(kFloat4E2M1FNx2), DType(kBits16),
                             described(kOpaque, 1, "int4"), described(kOpaque, 0, "object")}) {
    const auto error = test::error_of([&] { npy_descr_literal(dtype); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
    EXPECT_NE(error->message().find(dtype.name()), std::string::npos);
    const bool in_safetensors = dtype.code() == kFloat4E2M1FNx2;
    EXPECT_EQ(error->message().find(".safetensors") != std::string::npos, in_safetensors) << dtype.name();
  }
}

}  // namespace
}  // namespace penstock::format
