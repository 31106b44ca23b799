// Tensors by DLPack: round trips, and another library's tensors as its own code lays them out in C, before version 1
// and since.

#include "penstock/dlpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "penstock/error.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock {
namespace {

// DLPack's structures as its specification has them, in the words of C.
extern "C" {
struct ForeignTensor {
  void* data;
  struct {
    int32_t type;
    int32_t id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct ForeignManaged {
  struct ForeignTensor tensor;
  void* context;
  void (*deleter)(struct ForeignManaged* self);
};
struct ForeignVersioned {
  struct {
    uint32_t major;
    uint32_t minor;
  } version;
  void* context;
  void (*deleter)(struct ForeignVersioned* self);
  uint64_t flags;
  struct ForeignTensor tensor;
};
}

DLManagedTensor* given(ForeignManaged& managed) { return reinterpret_cast<DLManagedTensor*>(&managed); }
DLManagedTensorVersioned* given(ForeignVersioned& managed) {
  return reinterpret_cast<DLManagedTensorVersioned*>(&managed);
}
const ForeignVersioned& seen(const DlpackTensor& tensor) {
  return *reinterpret_cast<const ForeignVersioned*>(tensor.get());
}
const ForeignManaged& seen(const UnversionedDlpackTensor& tensor) {
  return *reinterpret_cast<const ForeignManaged*>(tensor.get());
}

/// A producer of six floats, 2 x 3, which counts calls of its deleter. Both forms describe the same.
class Foreign {
 public:
  Foreign() : numbers(6), sizes{2, 3}, strides{3, 1} {
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    tensor = {numbers.data(), {1, 0}, 2, {2, 32, 1}, sizes.data(), strides.data(), 0};
  }

  Tensor taken() {
    managed = {tensor, &deleted, [](ForeignManaged* self) { ++*static_cast<int*>(self->context); }};
    return from_dlpack(given(managed));
  }
  Tensor taken_versioned(std::uint64_t flags = 0, std::uint32_t major = 1) {
    versioned = {
        {major, 0}, &deleted, [](ForeignVersioned* self) { ++*static_cast<int*>(self->context); }, flags, tensor};
    return from_dlpack(given(versioned));
  }

  std::vector<float> numbers;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  ForeignTensor tensor{};
  ForeignManaged managed{};
  ForeignVersioned versioned{};
  int deleted = 0;
};

/// Both forms are refused alike, and freed once.
void expect_refused(Foreign& foreign, ErrorCode code, const char* words) {
  const auto old = test::error_of([&] { static_cast<void>(foreign.taken()); });
  ASSERT_TRUE(old);
  EXPECT_EQ(old->code(), code) << old->what();
  EXPECT_THAT(old->message(), testing::HasSubstr(words));
  EXPECT_EQ(foreign.deleted, 1);
  const auto now = test::error_of([&] { static_cast<void>(foreign.taken_versioned()); });
  ASSERT_TRUE(now);
  EXPECT_EQ(now->message(), old->message());
  EXPECT_EQ(foreign.deleted, 2);
}

const DType kExchanged[] = {DType::boolean,         DType::uint8,
                            DType::uint16,          DType::uint32,
                            DType::uint64,          DType::int8,
                            DType::int16,           DType::int32,
                            DType::int64,           DType::float16,
                            DType::bfloat16,        DType::float32,
                            DType::float64,         DType::complex32,
                            DType::complex64,       DType::complex128,
                            DType::float8_e4m3fn,   DType::float8_e5m2,
                            DType::float8_e4m3fnuz, DType::float8_e5m2fnuz,
                            DType::float8_e8m0fnu,  DType::Code::kFloat4E2M1FNx2};

TEST(Dlpack, EveryTypeAndLayoutComesBackOverTheSameMemory) {
  for (const DType& dtype : kExchanged) {
    const Tensor whole = test::numbered_tensor({4, 3, 5}, dtype);
    const Tensor scalar = test::numbered_tensor({}, dtype);
    const Tensor empty = Tensor::empty({3, 0, 2}, dtype);
    for (const Tensor& tensor : {whole, whole.permute({2, 0, 1}), whole.slice(0, 1, 4, 2), whole.select(1, 2), scalar,
                                 empty, Tensor(whole.buffer(), dtype, {6, 2}, {0, 1})}) {
      const Tensor back = from_dlpack(to_dlpack(tensor));
      const Tensor older = from_dlpack(to_dlpack_unversioned(tensor));
      for (const Tensor& other : {back, older}) {
        EXPECT_EQ(other.dtype(), dtype);
        EXPECT_EQ(other.shape(), tensor.shape());
        EXPECT_FALSE(other.read_only());
        if (tensor.numel() == 0) continue;
        EXPECT_EQ(other.data(), tensor.data());
        EXPECT_TRUE(Tensor::identical(other, tensor)) << dtype;
      }
    }
  }
}

TEST(Dlpack, DescribesWhatItExports) {
  const Tensor tensor = Tensor::of({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).reshape({2, 3}).transpose(0, 1);
  const DlpackTensor exported = to_dlpack(tensor);
  const ForeignVersioned& out = seen(exported);
  EXPECT_EQ(out.version.major, 1U);
  EXPECT_EQ(out.flags, 0U);
  EXPECT_EQ(out.tensor.data, tensor.data());
  EXPECT_EQ(out.tensor.device.type, 1);
  EXPECT_EQ(out.tensor.ndim, 2);
  EXPECT_EQ(out.tensor.dtype.code, 2);
  EXPECT_EQ(out.tensor.dtype.bits, 32);
  EXPECT_EQ(out.tensor.dtype.lanes, 1);
  EXPECT_EQ(std::vector(out.tensor.shape, out.tensor.shape + 2), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(std::vector(out.tensor.strides, out.tensor.strides + 2), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(out.tensor.byte_offset, 0U);
  EXPECT_EQ(seen(to_dlpack_unversioned(tensor)).tensor.data, tensor.data());
}

TEST(Dlpack, MemoryLivesUntilItsDeleterIsCalledFromAnyThread) {
  std::atomic<int> freed = 0;
  std::vector<int> numbers = {1, 2, 3};
  DlpackTensor exported;
  UnversionedDlpackTensor older;
  {
    const std::shared_ptr<const void> owner(nullptr, [&](const void*) { ++freed; });
    const Tensor tensor(Buffer::wrap(numbers.data(), 12, owner), DType::int32, {3});
    exported = to_dlpack(tensor);
    older = to_dlpack_unversioned(tensor);
    to_dlpack(tensor).reset();  // nobody took it
  }
  EXPECT_EQ(freed, 0);
  older.reset();
  EXPECT_EQ(freed, 0);
  std::thread([tensor = exported.release()] { DlpackDeleter()(tensor); }).join();
  EXPECT_EQ(freed, 1);
}

TEST(Dlpack, ReadOnlyMemorySaysSo) {
  const std::vector<float> fixed = {1, 2};
  const Tensor tensor = Tensor::view(fixed);
  EXPECT_EQ(seen(to_dlpack(tensor)).flags, 1U);
  const Tensor back = from_dlpack(to_dlpack(tensor));
  EXPECT_TRUE(back.read_only());
  EXPECT_EQ(test::code_of([&] { back.values<float>(); }), ErrorCode::kInvalidArgument);
  const auto error = test::error_of([&] { to_dlpack_unversioned(tensor); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), testing::HasSubstr("read-only"));
}

TEST(Dlpack, ACopyIsTheConsumersAlone) {
  const std::vector<float> fixed = {1, 2};
  const Tensor tensor = Tensor::view(fixed);
  const DlpackTensor exported = to_dlpack(tensor, {.copy = true});
  EXPECT_EQ(seen(exported).flags, 2U);
  EXPECT_NE(seen(exported).tensor.data, tensor.data());
  const Tensor back = from_dlpack(to_dlpack_unversioned(tensor, {.copy = true}));
  EXPECT_FALSE(back.read_only());
  EXPECT_TRUE(Tensor::identical(back, tensor));
}

TEST(Dlpack, RefusesToExportWhatItHasNoNameFor) {
  const auto error = test::error_of([] { to_dlpack(Tensor::of({"a", "bc"})); });
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), testing::HasSubstr("DLPack has no type"));
  EXPECT_EQ(test::code_of([] { to_dlpack(Tensor::empty({1}, DType::Code::kQInt8)); }), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([] { to_dlpack(Tensor()); }), ErrorCode::kInvalidArgument);
}

TEST(DlpackOfOthers, IsUsedInPlaceAndDeletedOnce) {
  for (const bool versioned : {false, true}) {
    Foreign foreign;
    {
      const Tensor tensor = versioned ? foreign.taken_versioned() : foreign.taken();
      EXPECT_EQ(tensor.dtype(), DType::float32);
      EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
      EXPECT_EQ(tensor.data(), reinterpret_cast<std::byte*>(foreign.numbers.data()));
      tensor.at<float>(1, 0) = 7;
      const Tensor row = tensor[1];
      EXPECT_EQ(foreign.deleted, 0);
    }
    EXPECT_EQ(foreign.numbers[3], 7);
    EXPECT_EQ(foreign.deleted, 1);
  }
}

TEST(DlpackOfOthers, NoStridesAreCOrderAndAnOffsetCounts) {
  Foreign foreign;
  foreign.tensor.strides = nullptr;
  EXPECT_EQ(test::values_of<float>(foreign.taken()), foreign.numbers);
  foreign.sizes = {2, 2};
  foreign.tensor.byte_offset = 2 * sizeof(float);
  EXPECT_EQ(test::values_of<float>(foreign.taken_versioned()), (std::vector<float>{2, 3, 4, 5}));
}

TEST(DlpackOfOthers, ReadOnlyStaysReadOnlyAndOtherFlagsDoNot) {
  Foreign foreign;
  EXPECT_TRUE(foreign.taken_versioned(1).read_only());
  EXPECT_TRUE(foreign.taken_versioned(1 | 2).read_only());
  EXPECT_FALSE(foreign.taken_versioned(2).read_only());
}

TEST(DlpackOfOthers, NegativeStridesAreCopied) {
  Foreign foreign;
  foreign.tensor.data = &foreign.numbers[5];
  foreign.strides = {-3, -1};
  const Tensor tensor = foreign.taken();
  EXPECT_EQ(test::values_of<float>(tensor), (std::vector<float>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(DlpackOfOthers, WithoutADeleterOrElementsIsFine) {
  Foreign foreign;
  foreign.managed = {foreign.tensor, nullptr, nullptr};
  EXPECT_EQ(from_dlpack(given(foreign.managed)).numel(), 6);
  foreign.sizes = {0, 3};
  foreign.tensor.data = nullptr;
  EXPECT_EQ(foreign.taken().shape(), (Shape{0, 3}));
  foreign.sizes = {std::int64_t{1} << 62, 0};
  foreign.tensor.strides = nullptr;
  EXPECT_EQ(foreign.taken().numel(), 0);
}

TEST(DlpackOfOthers, RefusesOtherDevicesAndTypes) {
  Foreign foreign;
  foreign.tensor.device = {7, 2};  // Vulkan's
  expect_refused(foreign, ErrorCode::kNoDevice, "device 7:2");
  Foreign odd;
  odd.tensor.dtype = {2, 32, 4};
  expect_refused(odd, ErrorCode::kUnsupported, "4 lanes");
  Foreign handle;
  handle.tensor.dtype = {3, 64, 1};
  expect_refused(handle, ErrorCode::kUnsupported, "type code 3");
}

TEST(DlpackOfOthers, RefusesSizesStridesAndOffsetsThatNoMemoryHas) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Foreign null;
  null.tensor.data = nullptr;
  expect_refused(null, ErrorCode::kUnsupported, "without memory");
  Foreign null_with_offset;
  null_with_offset.tensor.data = nullptr;
  null_with_offset.tensor.byte_offset = 1 << 20;
  expect_refused(null_with_offset, ErrorCode::kUnsupported, "without memory");
  Foreign negative;
  negative.sizes = {2, -3};
  expect_refused(negative, ErrorCode::kInvalidArgument, "no size below 0");
  Foreign huge;
  huge.sizes = {kMost, 3};
  expect_refused(huge, ErrorCode::kLimit, "");
  Foreign far;
  far.strides = {kMost, 1};
  expect_refused(far, ErrorCode::kInvalidArgument, "stride 9223372036854775807");
  Foreign farther;
  farther.strides = {kMost / 4, kMost / 4};
  expect_refused(farther, ErrorCode::kLimit, "63 bits");
  Foreign beyond;
  beyond.strides = {kMost / 8, 1};
  beyond.sizes = {2, 3};
  beyond.tensor.byte_offset = std::numeric_limits<std::uint64_t>::max() / 2;
  beyond.tensor.data = reinterpret_cast<void*>(std::uintptr_t{1} << 63U);
  expect_refused(beyond, ErrorCode::kInvalidArgument, "beyond the last address");
  Foreign wrapped;
  wrapped.tensor.byte_offset = std::numeric_limits<std::uint64_t>::max() - 3;
  expect_refused(wrapped, ErrorCode::kInvalidArgument, "where no memory is");
  Foreign ranks;
  ranks.tensor.ndim = -1;
  expect_refused(ranks, ErrorCode::kInvalidArgument, "-1 dimensions");
  Foreign no_sizes;
  no_sizes.tensor.shape = nullptr;
  expect_refused(no_sizes, ErrorCode::kInvalidArgument, "sizes are null");
  Foreign many;
  many.sizes.assign(100, 1);
  many.strides.assign(100, 1);
  many.tensor.shape = many.sizes.data();
  many.tensor.strides = many.strides.data();
  many.tensor.ndim = 100;
  expect_refused(many, ErrorCode::kLimit, "");
}

TEST(DlpackOfOthers, RefusesOtherVersionsWithoutLookingInside) {
  Foreign foreign;
  foreign.tensor.shape = reinterpret_cast<std::int64_t*>(8);
  const auto error = test::error_of([&] { foreign.taken_versioned(0, 2); });
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), testing::HasSubstr("version 2"));
  EXPECT_EQ(foreign.deleted, 1);
  EXPECT_EQ(test::code_of([] { from_dlpack(static_cast<DLManagedTensor*>(nullptr)); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([] { from_dlpack(DlpackTensor()); }), ErrorCode::kInvalidArgument);
  Foreign padded;
  padded.tensor.dtype = {17, 4, 2};
  EXPECT_EQ(test::code_of([&] { padded.taken_versioned(4); }), ErrorCode::kUnsupported);
  EXPECT_EQ(padded.deleted, 1);
}

class DlpackDevice : public test::WithDevice {};

TEST_F(DlpackDevice, RoundTripsOverTheSameMemory) {
  const Tensor host = test::counting({4, 8});
  const Tensor there = host.to(device);
  const DlpackTensor exported = to_dlpack(there);
  EXPECT_EQ(seen(exported).tensor.device.type, 2);
  EXPECT_EQ(seen(exported).tensor.device.id, 0);
  for (const Tensor& back : {from_dlpack(to_dlpack(there)), from_dlpack(to_dlpack_unversioned(there))}) {
    EXPECT_EQ(back.device(), device);
    EXPECT_EQ(back.data(), there.data());
    EXPECT_TRUE(Tensor::identical(back.cpu(), host));
  }
  EXPECT_EQ(test::code_of([&] {
              Foreign foreign;
              foreign.tensor.device = {2, 99};
              static_cast<void>(foreign.taken());
            }),
            ErrorCode::kNoDevice);
}

TEST_F(DlpackDevice, TheConsumersStreamRunsBehindWhatWasWritten) {
  const Tensor host = test::counting({1 << 16}).pin_memory();
  const Stream writer(device);
  const Stream reader(device);
  Tensor there;
  {
    const StreamGuard guard(writer);
    there = host.to(device, {.non_blocking = true});
  }
  const Tensor consumed = from_dlpack(to_dlpack(there, {.stream = reader}));
  const StreamGuard guard(reader);
  EXPECT_TRUE(Tensor::identical(consumed.cpu(), host));
}

}  // namespace
}  // namespace penstock
