#include "archive/load_converted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "archive/made_archive.h"
#include "io/copy/crc32.h"
#include "penstock/save.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock::archive {
namespace {

using test::error_of;
using test::MadeArchive;
using test::source_of;
using testing::HasSubstr;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string out(sizeof(T) * values.size(), '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::vector<Tensor> load_made(MadeArchive& archive, const LoadOptions& options) {
  Report report;
  return load_converted(archive.sealed(), archive.entries(), options, report, Resident::kCopied);
}

/// 1, 2, 3, ...
std::string floats(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1);
  return bytes_of(values);
}

TEST(LoadConverted, FloatsAndComplexNumbersBecomeTheTypeAndOthersStay) {
  const test::TemporaryFolder folder;
  const Value saved = {{"half", Tensor::of<float>({1, 2}).to(DType::float16)},
                       {"float", Tensor::of<float>({1.5F, -2})},
                       {"double", Tensor::of<double>({0.1})},
                       {"int", Tensor::of<std::int64_t>({7})},
                       {"bool", Tensor::of<bool>({true})},
                       {"empty", Tensor::empty(Shape{0, 2}, DType::float64)}};
  save(saved, folder / "a.npz");
  const Value loaded = load(folder / "a.npz", {.dtype = DType::float32});
  for (const char* name : {"half", "float", "double", "empty"}) {
    EXPECT_EQ(loaded[name].as_tensor().dtype(), DType::float32) << name;
    EXPECT_TRUE(Tensor::identical(loaded[name].as_tensor(), saved[name].as_tensor().to(DType::float32))) << name;
  }
  EXPECT_EQ(loaded["int"].as_tensor().dtype(), DType::int64);
  EXPECT_EQ(loaded["bool"].as_tensor().dtype(), DType::boolean);
  const Tensor one = open(folder / "a.npz")["double"].load({.dtype = DType::bfloat16});
  EXPECT_TRUE(Tensor::identical(one, saved["double"].as_tensor().to(DType::bfloat16)));
}

TEST(LoadConverted, AComplexNumberKeepsItsRealPart) {
  const test::TemporaryFolder folder;
  const Tensor values = Tensor::of<std::complex<float>>({{1, 2}, {3, 4}});
  save(values, folder / "a.npy");
  EXPECT_TRUE(Tensor::identical(load_tensor(folder / "a.npy", {.dtype = DType::float64}), Tensor::of<double>({1, 3})));
  EXPECT_EQ(load_tensor(folder / "a.npy", {.dtype = DType::complex128}).dtype(), DType::complex128);
}

TEST(LoadConverted, ViewsOfOneStorageAreReadOnceAndEqualOnesStayOne) {
  const auto source = std::make_shared<test::CountingSource>(floats(100));
  MadeArchive archive(source);
  const std::size_t s = archive.add_storage(0, 400);
  archive.add_entry(s, DType::float32, {10, 10}, {10, 1});
  archive.add_entry(s, DType::float32, {10, 10}, {10, 1});
  archive.add_entry(s, DType::float32, {10, 10}, {1, 10});
  archive.add_entry(s, DType::float32, {5}, {20});
  archive.add_entry(s, DType::float32, {4, 3}, {0, 1}, 40);
  archive.add_entry(s, DType::int32, {100}, {1});
  const auto tensors = load_made(archive, {.dtype = DType::float64});
  EXPECT_EQ(source->bytes_read, 400U);
  EXPECT_EQ(tensors[0].data(), tensors[1].data());
  EXPECT_EQ(tensors[2].strides(), (Strides{1, 10}));
  EXPECT_EQ(tensors[3].strides(), (Strides{1})) << "no memory for what lies between";
  EXPECT_EQ(tensors[4].strides(), (Strides{0, 1})) << "repeated elements stay repeated";
  EXPECT_EQ(tensors[5].dtype(), DType::int32);
  for (std::size_t i = 0; i < 5; ++i) {
    const Tensor raw = test::expected(floats(100), archive.storage(s), archive.entries()[i]);
    EXPECT_TRUE(Tensor::identical(tensors[i], raw.to(DType::float64))) << i;
  }
}

TEST(LoadConverted, ALargeTensorIsReadInPiecesAndChecked) {
  const std::size_t count = (std::size_t{70} << 20) / sizeof(float);
  const std::string bytes = floats(count);
  for (const bool damaged : {false, true}) {
    SCOPED_TRACE(damaged);
    std::string content = bytes;
    if (damaged) content.back() = static_cast<char>(content.back() ^ 1);
    const auto source = std::make_shared<test::CountingSource>(content);
    MadeArchive archive(source);
    const std::size_t s = archive.add_storage(0, bytes.size());
    archive.storage(s).crc32 = io::crc32(0, std::as_bytes(std::span(bytes)));
    archive.add_entry(s, DType::float32, {static_cast<std::int64_t>(count)}, {1});
    if (damaged) {
      const auto error = error_of([&] { load_made(archive, {.dtype = DType::float64}); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::kChecksum);
      EXPECT_EQ(error->tensor(), "s0") << "the record, as whole loads name it";
      EXPECT_NO_THROW(load_made(archive, {.verify = false, .dtype = DType::float64}));
      continue;
    }
    const Tensor tensor = load_made(archive, {.dtype = DType::float64}).front();
    EXPECT_EQ(source->bytes_read, bytes.size()) << "its checksum is made of the pieces";
    const Tensor raw = test::expected(bytes, archive.storage(s), archive.entries()[0]);
    EXPECT_TRUE(Tensor::identical(tensor, raw.to(DType::float64)));
  }
}

TEST(LoadConverted, TensorsOfALargeStorageAreReadOneByOne) {
  const std::size_t count = (std::size_t{70} << 20) / sizeof(float);
  const std::string bytes = floats(count);
  const auto source = std::make_shared<test::CountingSource>(bytes);
  MadeArchive archive(source);
  const std::size_t s = archive.add_storage(0, bytes.size());
  archive.add_entry(s, DType::float32, {1000, 1000}, {1000, 1}, 4000000);
  archive.add_entry(s, DType::float32, {1000, 1000}, {1000, 1});
  archive.add_entry(s, DType::float32, {1000, 1000}, {1000, 1}, 4000000);
  const auto tensors = load_made(archive, {.dtype = DType::float64});
  EXPECT_EQ(source->bytes_read, 8000000U) << "nothing that belongs to no tensor";
  EXPECT_EQ(tensors[0].data(), tensors[2].data()) << "tied weights stay tied";
  for (std::size_t i = 0; i < 2; ++i) {
    const Tensor raw = test::expected(bytes, archive.storage(s), archive.entries()[i]);
    EXPECT_TRUE(Tensor::identical(tensors[i], raw.to(DType::float64))) << i;
  }
}

TEST(LoadConverted, SwappedBytesAreSwappedBeforeTheyAreConverted) {
  const test::TemporaryFolder folder;
  std::vector<float> values = {1.5F, -2, 1e30F};
  std::string bytes = bytes_of(values);
  for (std::size_t i = 0; i < bytes.size(); i += 4)
    std::reverse(bytes.begin() + static_cast<long>(i), bytes.begin() + static_cast<long>(i) + 4);
  MadeArchive archive(source_of(bytes));
  archive.add_entry(archive.add_storage(0, 12), DType::float32, {3}, {1}).encoding.swapped = true;
  EXPECT_TRUE(Tensor::identical(load_made(archive, {.dtype = DType::float64})[0],
                                Tensor::of<float>({1.5F, -2, 1e30F}).to(DType::float64)));
}

TEST(LoadConverted, StrictRefusesWhatTheTypeHasNoNumberFor) {
  const test::TemporaryFolder folder;
  const double infinity = std::numeric_limits<double>::infinity();
  save({{"fits", Tensor::of<double>({infinity, 1, std::numeric_limits<double>::quiet_NaN()})},
        {"large", Tensor::of<double>({1, 1e300})}},
       folder / "a.safetensors");
  const Value loaded = load(folder / "a.safetensors", {.dtype = DType::float32});
  const Tensor large = loaded["large"].as_tensor();
  EXPECT_EQ(large.values<float>()[1], std::numeric_limits<float>::infinity());
  const auto error = error_of([&] { load(folder / "a.safetensors", {.dtype = DType::float32, .strict = true}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error->tensor(), "large");
  EXPECT_EQ(error->path(), folder / "a.safetensors");
  EXPECT_THAT(error->message(), HasSubstr("1e+300, which float32 cannot hold"));
  const Archive archive = open(folder / "a.safetensors");
  EXPECT_NO_THROW(archive["fits"].load({.dtype = DType::float32, .strict = true}));
  EXPECT_TRUE(error_of([&] { archive["large"].load({.dtype = DType::float32, .strict = true}); }));
  EXPECT_NO_THROW(archive["large"].slice(0, 0, 1).load({.dtype = DType::float32, .strict = true}));
  const Tensor place = Tensor::zeros(Shape{2}, DType::float32);
  EXPECT_NO_THROW(archive.load_into({{"large", place}}));
  const auto into = error_of([&] { archive.load_into({{"large", place}}, {.strict = true}); });
  ASSERT_TRUE(into);
  EXPECT_EQ(into->tensor(), "large");
}

TEST(LoadConverted, ATypeThatNothingBecomesIsRefused) {
  const test::TemporaryFolder folder;
  save({{"a", Tensor::of<float>({1})}}, folder / "a.pt");
  const Archive archive = open(folder / "a.pt");
  struct Case {
    LoadOptions options;
    ErrorCode code;
  };
  const Case cases[] = {{{.dtype = DType::int32}, ErrorCode::kInvalidArgument},
                        {{.dtype = DType::boolean}, ErrorCode::kInvalidArgument},
                        {{.mmap = true, .dtype = DType::float16}, ErrorCode::kUnsupported}};
  for (const Case& one : cases) {
    EXPECT_EQ(test::code_of([&] { archive.load(one.options); }), one.code);
    EXPECT_EQ(test::code_of([&] { archive["a"].load(one.options); }), one.code);
  }
  const LoadOptions half = {.dtype = DType::float16};
  EXPECT_EQ(test::code_of([&] { archive.load_storages(half); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] {
              archive.load_into({{"a", Tensor::of<float>({1})}}, half);
            }),
            ErrorCode::kInvalidArgument);
}

TEST(LoadConverted, TheReportAddsUpAllParts) {
  const test::TemporaryFolder folder;
  save({{"a", Tensor::zeros(Shape{1 << 16}, DType::float32)}, {"b", Tensor::zeros(Shape{1 << 16}, DType::int32)}},
       folder / "a.safetensors");
  Report report;
  load(folder / "a.safetensors", {.dtype = DType::float16, .report = &report});
  EXPECT_EQ(report.payload_bytes, std::uint64_t{8} << 16);
  EXPECT_GE(report.read_bytes, report.payload_bytes);
  EXPECT_FALSE(report.route.empty());
}

}  // namespace
}  // namespace penstock::archive
