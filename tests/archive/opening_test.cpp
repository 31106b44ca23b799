#include "archive/opening.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "archive/made_archive.h"
#include "format/rows.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock::archive {
namespace {

using test::CountingSource;

std::shared_ptr<CountingSource> written(const format::Format& format, const Value& value) {
  test::StringSink sink;
  format.write(value, sink, {}, "x");
  return std::make_shared<CountingSource>(sink.text);
}

const Tensor& megabyte() {
  static const Tensor tensor = test::numbered_tensor({1 << 18}, DType::float32);
  return tensor;
}

TEST(Opening, HowLongItTakesGoesByTheHeaderWhereTheHeadTellsItsLength) {
  EXPECT_EQ(Opening(written(format::kNpyFormat, Value::tensor(megabyte()))).index_bytes(), 128U);
  const Value dict = test::dict_of({{"x", megabyte()}});
  EXPECT_LT(Opening(written(format::kSafetensorsFormat, dict)).index_bytes(), 100U);
  const auto pt = written(format::kPtFormat, dict);
  EXPECT_LT(Opening(pt).index_bytes(), 10'000U);
}

TEST(Opening, ReadsTheHeadOnceForTheFormatAndTheIndex) {
  const auto npy = written(format::kNpyFormat, Value::tensor(megabyte()));
  EXPECT_TRUE(Opening(npy).finish({}).contains(""));
  EXPECT_EQ(npy->reads, 1U);
  const Value dict = test::dict_of({{"x", megabyte()}});
  const auto safetensors = written(format::kSafetensorsFormat, dict);
  EXPECT_TRUE(Opening(safetensors).finish({}).contains("x"));
  EXPECT_EQ(safetensors->reads, 1U);
}

TEST(Opening, ReadsAZipArchivesTailOnceToo) {
  const Value dict = test::dict_of({{"x", megabyte()}});
  for (const format::Format* format : {&format::kPtFormat, &format::kNpzFormat}) {
    const auto source = written(*format, dict);
    EXPECT_TRUE(Opening(source).finish({}).contains("x"));
    EXPECT_EQ(source->reads, 2U) << format->name;
  }
}

TEST(Opening, WhatItGivesNamesTheSourceItself) {
  const auto source = written(format::kNpyFormat, Value::tensor(megabyte()));
  const Archive archive = Opening(source).finish({});
  ASSERT_EQ(archive.sources().size(), 1U);
  EXPECT_EQ(archive.sources().front(), source);
}

TEST(Opening, ErrorsNameTheFile) {
  const auto error = test::error_of([] { Opening(std::make_shared<CountingSource>("no tensors")); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnknownFormat);
  EXPECT_EQ(error->path(), "<counting>");
}

}  // namespace
}  // namespace penstock::archive
