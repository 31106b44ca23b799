#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/numpy/npy_array.h"
#include "format/numpy/npy_support.h"
#include "format/rows.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock::format {
namespace {

using test::load_entry;
using test::numbered;
using test::source_of;
using test::written;
using ::testing::HasSubstr;

Index npy_index(const std::string& file) { return kNpyFormat.read_index(source_of(file, "x.npy"), {}); }

const std::vector<Shape> kShapes{Shape(),     Shape{0},       Shape{1},       Shape{7},
                                 Shape{3, 4}, Shape{2, 0, 3}, Shape{2, 3, 4}, Shape{1, 2, 1, 2, 1, 2, 2}};

TEST(Npy, GivesBackWhatWasWritten) {
  for (const DType& dtype : test::numpy_dtypes()) {
    for (const Shape& shape : kShapes) {
      const Tensor tensor = numbered(dtype, shape);
      const std::string file = written(kNpyFormat, Value::tensor(tensor));
      const Index index = npy_index(file);
      ASSERT_EQ(index.entries.size(), 1u);
      EXPECT_EQ(index.entries[0].name, "");
      EXPECT_EQ(index.structure.entry_index(), 0u);
      EXPECT_TRUE(Tensor::identical(load_entry(index, 0), tensor)) << dtype << shape;
      EXPECT_EQ(file.size(), index.storages[0].offset + tensor.nbytes());
    }
  }
}

TEST(Npy, KeepsFortranOrder) {
  const Tensor tensor = numbered(DType::float32, Shape{4, 3, 2}).permute(std::array<std::size_t, 3>{2, 1, 0});
  const std::string file = written(kNpyFormat, Value::tensor(tensor));
  EXPECT_THAT(file, HasSubstr("'fortran_order': True, 'shape': (2, 3, 4)"));
  const Index index = npy_index(file);
  EXPECT_EQ(index.entries[0].strides, (Strides{1, 2, 6}));
  EXPECT_TRUE(Tensor::identical(load_entry(index, 0), tensor));
}

TEST(Npy, WritesOtherOrdersInC) {
  const Tensor base = numbered(DType::int16, Shape{4, 6, 5});
  for (const Tensor& tensor : {base.slice(1, 1, 6, 2), base.permute(std::array<std::size_t, 3>{1, 0, 2}),
                               base.select(2, 3), base.slice(0, 1, 3).transpose(0, 1)}) {
    const std::string file = written(kNpyFormat, Value::tensor(tensor));
    EXPECT_THAT(file, HasSubstr("'fortran_order': False"));
    EXPECT_TRUE(Tensor::identical(load_entry(npy_index(file), 0), tensor));
  }
}

TEST(Npy, WritesVectorsAndScalarsInC) {
  const Tensor base = numbered(DType::int16, Shape{4, 6});
  for (const Tensor& tensor :
       {base.select(1, 2), base.select(0, 1), base.select(0, 1).select(0, 1), base.slice(0, 0, 0).transpose(0, 1)}) {
    EXPECT_THAT(written(kNpyFormat, Value::tensor(tensor)), HasSubstr("'fortran_order': False"));
  }
}

TEST(Npy, WritesSmallFloatsAsMlDtypesDoes) {
  for (const auto& [dtype, descr] : {std::pair<DType, const char*>{DType::bfloat16, "'<V2'"},
                                     {DType::float8_e4m3fn, "'<V1'"},
                                     {DType::float8_e5m2, "'<V1'"}}) {
    const Tensor tensor = numbered(dtype, Shape{5});
    const std::string file = written(kNpyFormat, Value::tensor(tensor));
    EXPECT_THAT(file, HasSubstr(std::string("{'descr': ") + descr));
    const Tensor loaded = load_entry(npy_index(file), 0);
    EXPECT_EQ(loaded.dtype().code(), DType::Code::kVoid);
    EXPECT_EQ(std::memcmp(loaded.data(), tensor.data(), tensor.nbytes()), 0);
  }
}

TEST(Npy, SwapsByteOrder) {
  std::string file = make_npy_header(DType::int32, Shape{2}, false);
  file.replace(file.find("<i4"), 3, ">i4");
  file += std::string("\0\0\1\2\xFF\xFF\xFF\xFE", 8);
  const Index index = npy_index(file);
  EXPECT_TRUE(index.entries[0].encoding.swapped);
  const Tensor tensor = load_entry(index, 0);
  EXPECT_THAT(test::values_of<std::int32_t>(tensor), testing::ElementsAre(258, -2));
}

TEST(Npy, IsRecognisedByItsMagic) {
  const Source none = source_of("");
  EXPECT_TRUE(kNpyFormat.sniff(test::bytes_of("\x93NUMPY"), *none));
  EXPECT_FALSE(kNpyFormat.sniff(test::bytes_of("\x93NUMP"), *none));
  EXPECT_FALSE(kNpyFormat.sniff(test::bytes_of("NUMPY\x93"), *none));
  const Source npy = source_of(written(kNpyFormat, Value::tensor(numbered(DType::int8, Shape{3}))));
  EXPECT_EQ(detect(*npy).name, "npy");
}

TEST(Npy, RefusesEveryTruncation) {
  const std::string file = written(kNpyFormat, Value::tensor(numbered(DType::int32, Shape{3, 4})));
  for (std::size_t length = 0; length < file.size(); ++length) {
    const auto error = test::error_of([&] { npy_index(file.substr(0, length)); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kTruncated) << length;
    EXPECT_EQ(error->path(), "x.npy");
  }
}

TEST(Npy, LeavesWhatFollowsThePayload) {
  const Tensor tensor = numbered(DType::int32, Shape{3});
  const std::string file = written(kNpyFormat, Value::tensor(tensor));
  EXPECT_TRUE(Tensor::identical(load_entry(npy_index(file + file), 0), tensor));
}

TEST(Npy, ReadsHeadersOnly) {
  auto source = std::make_shared<test::CountingSource>(
      written(kNpyFormat, Value::tensor(numbered(DType::int32, Shape{100'000}))));
  EXPECT_EQ(kNpyFormat.read_index(source, {}).entries.size(), 1u);
  EXPECT_EQ(source->reads, 1u);
  EXPECT_LE(source->bytes_read, 1024u);
}

TEST(Npy, ReadsLongHeaders) {
  std::string fields = "[";
  for (int i = 0; i < 500; ++i) fields += "('field number " + std::to_string(i) + "', '<i2'), ";
  fields.replace(fields.size() - 2, 2, "]");
  const Tensor tensor = numbered(DType::with_descr(DType::Code::kStructured, 1000, fields), Shape{3});
  const std::string file = written(kNpyFormat, Value::tensor(tensor));
  EXPECT_GT(file.size(), 10'000u);
  EXPECT_TRUE(Tensor::identical(load_entry(npy_index(file), 0), tensor));
  EXPECT_EQ(test::code_of([&] { npy_index(file.substr(0, 3000)); }), ErrorCode::kTruncated);
}

TEST(Npy, HoldsOneTensor) {
  const Value tensor = Value::tensor(numbered(DType::int8, Shape{1}));
  for (const Value& value : {Value(), Value::integer(1), Value::list({tensor}),
                             Value::dict(std::vector<std::pair<std::string, Value>>{{"a", tensor}})}) {
    test::StringSink sink;
    const auto error = test::error_of([&] { kNpyFormat.write(value, sink, {}, "out.npy"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
    EXPECT_EQ(error->path(), "out.npy");
  }
  EXPECT_EQ(test::code_of([] { written(kNpyFormat, Value::tensor(numbered(DType::complex32, Shape{1}))); }),
            ErrorCode::kUnsupported);
}

TEST(NpyCorpus, IsRead) {
  const auto folder = test::corpus();
  if (!folder) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS, or put it at ../shared/corpus";
  for (const char* name : {"py2-np0-objarr.npy", "py2-objarr.npy", "py3-objarr.npy"}) {
    const Index objects = kNpyFormat.read_index(open_source((*folder / "numpy" / name).string()), {});
    EXPECT_TRUE(objects.structure.is(Value::Kind::kList)) << name;
  }
  const Index index = kNpyFormat.read_index(open_source((*folder / "candle/test.npy").string()), {});
  const Tensor tensor = load_entry(index, 0);
  EXPECT_THAT(test::values_of<std::int64_t>(tensor), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

}  // namespace
}  // namespace penstock::format
