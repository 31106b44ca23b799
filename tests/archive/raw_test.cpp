#include "archive/raw.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <complex>
#include <cstring>
#include <limits>
#include <string>

#include "penstock/ops.h"
#include "penstock/save.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::error_of;
using test::source_of;
using test::TemporaryFolder;

constexpr std::endian kOther = std::endian::native == std::endian::little ? std::endian::big : std::endian::little;

/// A file of the tensor's elements alone, behind so many other bytes.
std::string file_of(const Tensor& tensor, std::size_t before = 0) {
  return std::string(before, '#') + std::string(reinterpret_cast<const char*>(tensor.data()), tensor.nbytes());
}

TEST(Raw, EveryTypeIsReadWithoutAHeader) {
  using enum DType::Code;
  for (const DType::Code code : {kBool, kUInt8, kUInt16, kUInt32, kUInt64, kInt8, kInt16, kInt32, kInt64, kFloat16,
                                 kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128, kFloat8E4M3FN, kFloat8E5M2}) {
    const Tensor tensor = test::numbered_tensor({6, 4}, DType(code));
    const LazyTensor all = raw(source_of(file_of(tensor)), {.dtype = DType(code)});
    EXPECT_EQ(all.shape(), Shape({24})) << tensor.dtype();
    EXPECT_TRUE(Tensor::identical(all.load(), tensor.reshape({24}))) << tensor.dtype();
    for (const std::size_t before : {1U, 8U, 1000U}) {
      const LazyTensor rows =
          raw(source_of(file_of(tensor, before)), {.dtype = DType(code), .shape = {-1, 4}, .offset = before});
      EXPECT_TRUE(Tensor::identical(rows.load(), tensor)) << tensor.dtype();
      EXPECT_TRUE(Tensor::identical(rows.slice(0, 2, 5).load(), tensor.slice(0, 2, 5))) << tensor.dtype();
    }
  }
}

TEST(Raw, ElementsInTheOtherByteOrderArriveInThisOne) {
  const std::string file("\x01\x02\x03\x04", 4);
  const Tensor big = raw(source_of(file), {.dtype = DType::uint16, .byte_order = std::endian::big}).load();
  EXPECT_TRUE(Tensor::identical(big, Tensor::of<std::uint16_t>({0x0102, 0x0304})));
  const Tensor little = raw(source_of(file), {.dtype = DType::uint16, .byte_order = std::endian::little}).load();
  EXPECT_TRUE(Tensor::identical(little, Tensor::of<std::uint16_t>({0x0201, 0x0403})));
  const LazyTensor bytes = raw(source_of(file), {.dtype = DType::uint8, .byte_order = kOther});
  EXPECT_FALSE(bytes.entry().encoding.swapped);
}

TEST(Raw, FortranOrderHasTheFirstDimensionTogether) {
  const Tensor tensor = test::counting({6});
  const Tensor read =
      raw(source_of(file_of(tensor)), {.dtype = DType::int32, .shape = {2, -1}, .fortran_order = true}).load();
  EXPECT_TRUE(Tensor::identical(read.contiguous(), Tensor::of<std::int32_t>({0, 2, 4, 1, 3, 5}).reshape({2, 3})));
}

TEST(Raw, MinusOneMayStandAnywhere) {
  const std::string file = file_of(test::counting({24}));
  EXPECT_EQ(raw(source_of(file), {.dtype = DType::int32, .shape = {2, -1, 3}}).shape(), Shape({2, 4, 3}));
  EXPECT_EQ(raw(source_of(file), {.dtype = DType::int32, .shape = {4, 6, -1}}).shape(), Shape({4, 6, 1}));
  EXPECT_EQ(raw(source_of(file), {.dtype = DType::int32, .shape = {-1, 24}}).shape(), Shape({1, 24}));
}

TEST(Raw, WhatIsLeftOverIsSaid) {
  const auto error = error_of([] {
    raw(source_of(std::string(6000, 'x'), "train.bin"), {.dtype = DType::uint16, .shape = {-1, 1024}, .offset = 5});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kShapeMismatch);
  EXPECT_EQ(error->path(), "train.bin");
  EXPECT_EQ(error->offset(), 5);
  EXPECT_TRUE(
      error->message().starts_with("1899 bytes are left over: the 5995 bytes from byte 5 on are 2 times the "
                                   "2048 that uint16 of shape (-1, 1024) takes"))
      << error->message();
}

TEST(Raw, AWholeShapeMayTakeAPartOfTheFile) {
  const Tensor tensor = test::counting({10});
  const LazyTensor part = raw(source_of(file_of(tensor)), {.dtype = DType::int32, .shape = {3}, .offset = 8});
  EXPECT_TRUE(Tensor::identical(part.load(), tensor.slice(0, 2, 5)));
  const LazyTensor one = raw(source_of(file_of(tensor)), {.dtype = DType::int32, .shape = {}, .offset = 4});
  EXPECT_EQ(one.load().item<std::int32_t>(), 1);
}

TEST(Raw, MoreThanTheFileHasIsTruncated) {
  const auto code = [](const RawLayout& layout) {
    return test::code_of([&] { raw(source_of(std::string(8, 'x')), layout); });
  };
  EXPECT_EQ(code({.dtype = DType::uint16, .shape = {5}}), ErrorCode::kTruncated);
  EXPECT_EQ(code({.dtype = DType::uint16, .shape = {4}, .offset = 1}), ErrorCode::kTruncated);
  EXPECT_EQ(code({.dtype = DType::uint16, .offset = 9}), ErrorCode::kTruncated);
  EXPECT_EQ(code({.dtype = DType::uint16, .shape = {0}, .offset = std::numeric_limits<std::uint64_t>::max()}),
            ErrorCode::kTruncated);
}

TEST(Raw, WhatNoFileCanHaveIsRefused) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const auto code = [](const RawLayout& layout) {
    return test::code_of([&] { raw(source_of(std::string(8, 'x')), layout); });
  };
  for (const Shape& shape : {Shape{-1, -1}, Shape{-2}, Shape{2, -3}, Shape{-1, 0}, Shape{kHuge, kHuge},
                             Shape{std::numeric_limits<std::int64_t>::max()}, Shape{-1, kHuge, kHuge}}) {
    EXPECT_EQ(code({.dtype = DType::uint16, .shape = shape}), ErrorCode::kInvalidArgument) << shape;
  }
  EXPECT_EQ(code({.dtype = DType::with_descr(DType::Code::kBytes, 0, "|S0")}), ErrorCode::kInvalidArgument);
}

TEST(Raw, NothingIsNothing) {
  EXPECT_EQ(raw(source_of(std::string()), {.dtype = DType::uint16, .shape = {-1, 4}}).load().shape(), Shape({0, 4}));
  EXPECT_EQ(raw(source_of(std::string(8, 'x')), {.dtype = DType::uint16, .offset = 8}).load().shape(), Shape({0}));
  EXPECT_EQ(raw(source_of(std::string(8, 'x')), {.dtype = DType::uint16, .shape = {0, 7}}).load().shape(),
            Shape({0, 7}));
}

TEST(Raw, AFileIsMapped) {
  const TemporaryFolder folder;
  const Tensor tokens = test::numbered_tensor({512, 100}, DType::uint16);
  test::write_file(folder / "train.bin", file_of(tokens, 1024));
  const LazyTensor array = raw(folder / "train.bin", {.dtype = DType::uint16, .shape = {-1, 100}, .offset = 1024});
  EXPECT_TRUE(Tensor::identical(array.load({.mmap = true}), tokens));
}

TEST(Raw, AFifoIsNoFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(test::code_of([&] { raw(folder / "pipe", {.dtype = DType::uint8}); }), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([&] { raw(folder / "absent", {.dtype = DType::uint8}); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { raw(folder.path(), {.dtype = DType::uint8}); }), ErrorCode::kIsDirectory);
}

TEST(Raw, TheContentIsNotLookedAt) {
  const TemporaryFolder folder;
  save(Value::tensor(test::counting({4})), folder / "x.npy");
  EXPECT_EQ(raw(folder / "x.npy", {.dtype = DType::uint8}).shape(), Shape({144}));
}

// --- where the caller may not know ---

TEST(Headerless, AFileThatHasAHeaderIsRefused) {
  const TemporaryFolder folder;
  const Tensor tensor = test::counting({4, 2});
  for (const char* const name : {"x.npy", "x.npz", "x.pt", "x.safetensors"}) {
    const Value value = std::string(name) == "x.npy" ? Value::tensor(tensor) : test::dict_of({{"x", tensor}});
    save(value, folder / name);
    for (const std::uint64_t offset : {0U, 4U}) {
      const auto error = error_of([&] {
        archive::headerless(open_source(folder / name), {.dtype = DType::uint8, .shape = {4}, .offset = offset});
      });
      ASSERT_TRUE(error) << name;
      EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument) << name;
      EXPECT_EQ(error->path(), folder / name);
    }
  }
  const LazyTensor behind =
      archive::headerless(open_source(folder / "x.npy"), {.dtype = DType::int32, .shape = {-1, 2}, .offset = 128});
  EXPECT_TRUE(Tensor::identical(behind.load(), tensor));
}

TEST(Headerless, ACompressedFileThatIsNamedSoIsRefused) {
  const std::string file("\x1f\x8b\x08\0\0\0\0\0", 8);
  EXPECT_EQ(test::code_of([&] { archive::headerless(source_of(file, "train.bin.gz"), {.dtype = DType::uint16}); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(archive::headerless(source_of(file, "train.bin"), {.dtype = DType::uint16}).shape(), Shape({4}));
  EXPECT_EQ(archive::headerless(source_of("12345678", "x.gz"), {.dtype = DType::uint16}).shape(), Shape({4}));
}

}  // namespace
}  // namespace penstock
