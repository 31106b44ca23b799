// Copies to a device while the host goes on: what it may do with their sources meanwhile.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "device/backend.h"
#include "ops/transfer.h"
#include "penstock/stream.h"
#include "penstock/tensor.h"
#include "penstock/transfer.h"
#include "support/devices.h"

namespace penstock {
namespace {

class TransferToDevice : public test::WithDevice {
 protected:
  static constexpr std::int64_t kBytes = 1 << 20;
  static constexpr TransferOptions kGoesOn{.non_blocking = true};

  static void overwrite(const Tensor& tensor) { std::memset(tensor.data(), 0xEE, tensor.nbytes()); }

  const Tensor wanted = test::pattern(kBytes);
};

TEST_F(TransferToDevice, APinnedSourceThatIsDroppedIsNotReusedBefore) {
  Tensor pinned = wanted.pin_memory();
  const Tensor there = pinned.to(device, kGoesOn);
  pinned = Tensor();
  const Tensor next(Buffer::allocate_pinned(kBytes), DType::uint8, {kBytes});
  overwrite(next);
  EXPECT_TRUE(Tensor::identical(there, wanted));
}

TEST_F(TransferToDevice, APinnedSourceOfOthersIsReadBeforeTheCallReturns) {
  const Tensor theirs = wanted.clone();
  const auto locked = device::backend_for(device.type).register_host(theirs.data(), theirs.nbytes());
  ASSERT_TRUE(theirs.is_pinned());
  const Tensor there = theirs.to(device, kGoesOn);
  overwrite(theirs);
  EXPECT_TRUE(Tensor::identical(there, wanted));
}

TEST_F(TransferToDevice, APageableSourceIsReadBeforeTheCallReturns) {
  Tensor pageable = wanted.clone();
  const Tensor there = pageable.to(device, kGoesOn);
  const Tensor copied = Tensor::empty({kBytes}, DType::uint8, device);
  pageable.copy_to(copied);
  overwrite(pageable);
  pageable = Tensor();
  EXPECT_TRUE(Tensor::identical(there, wanted));
  EXPECT_TRUE(Tensor::identical(copied, wanted));
}

TEST_F(TransferToDevice, ATensorOnTheWayIsWaitedForByOtherStreams) {
  const Stream copies(device);
  const Stream compute(device);
  const Tensor pinned = wanted.pin_memory();
  Tensor there;
  {
    const StreamGuard guard(copies);
    there = pinned.to(device, kGoesOn);
  }
  const StreamGuard guard(compute);
  const Tensor again = there.clone();
  there = Tensor();
  EXPECT_TRUE(Tensor::identical(again, wanted));
}

TEST_F(TransferToDevice, PinnedTargetsAreFilledWhenTheEventIsReached) {
  const Tensor there = wanted.to(device);
  const Tensor pinned(Buffer::allocate_pinned(kBytes), DType::uint8, {kBytes});
  overwrite(pinned);
  there.copy_to(pinned).synchronize();
  EXPECT_TRUE(Tensor::identical(pinned, wanted));
}

/// Memory that is worth the ring (`device/staged_copy.h`), where there is more than one processor.
class LargeTransfer : public TransferToDevice {
 protected:
  static constexpr std::int64_t kLarge = 20'000'003;
  const Tensor large = test::pattern(kLarge);
};

TEST_F(LargeTransfer, PageableMemoryThereAndBack) {
  const Tensor there = large.to(device);
  EXPECT_TRUE(Tensor::identical(there.cpu(), large));
  const Tensor back = Tensor::zeros({kLarge}, DType::uint8);
  there.copy_to(back).synchronize();
  EXPECT_TRUE(Tensor::identical(back, large));
}

TEST_F(LargeTransfer, APageableSourceIsReadBeforeTheCallReturns) {
  Tensor pageable = large.clone();
  const Tensor there = pageable.to(device, kGoesOn);
  overwrite(pageable);
  pageable = Tensor();
  EXPECT_TRUE(Tensor::identical(there, large));
}

TEST_F(LargeTransfer, FollowsWhatTheStreamDidBefore) {
  const Stream stream(device);
  const StreamGuard guard(stream);
  const Tensor there = Tensor::zeros({kLarge}, DType::uint8, device);
  large.copy_to(there);
  const Tensor again = there.clone();
  Tensor::zeros({kLarge}, DType::uint8, device).copy_to(there);
  EXPECT_TRUE(Tensor::identical(again.cpu(), large));
}

TEST_F(LargeTransfer, PinnedAndPageableTogether) {
  const std::array sources = {large.pin_memory(), large, wanted};
  std::vector<Tensor> there;
  std::vector<ops::Transfer> transfers;
  for (const Tensor& source : sources) {
    there.push_back(Tensor::empty(source.shape(), DType::uint8, device));
    transfers.push_back({source.buffer(), there.back().buffer()});
  }
  const TransferScope scope;
  ops::transfer(transfers, {});
  EXPECT_EQ(scope.stats().host_to_device.bytes, static_cast<std::uint64_t>(2 * kLarge + kBytes));
  for (std::size_t i = 0; i < there.size(); ++i) EXPECT_TRUE(Tensor::identical(there[i], sources[i])) << i;
}

}  // namespace
}  // namespace penstock
