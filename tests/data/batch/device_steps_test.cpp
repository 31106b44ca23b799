// Batches of transformed samples have the bits on a device that they have on the host, whoever of the two does the
// steps; and no more bytes cross than the smallest form of the samples has.

#include "data/batch/device_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/support.h"
#include "penstock/collate.h"
#include "penstock/loader.h"
#include "penstock/ops.h"
#include "penstock/transfer.h"
#include "support/devices.h"

namespace penstock {
namespace {

using Chain = std::function<Dataset(const Dataset&)>;

const std::vector<double> kMean = {0.485, 3, -1};
const std::vector<double> kStd = {0.229, 0.5, 7};

class DeviceSteps : public test::WithDevice {
 protected:
  static constexpr std::int64_t kSamples = 21;

  LoaderOptions options(Device to, std::size_t workers = 2) const {
    LoaderOptions out;
    out.batch_size = 4;
    out.num_workers = workers;
    out.shuffle = true;
    out.seed = 5;
    out.device = to;
    return out;
  }

  /// Compares all batches, bit for bit. Returns the bytes that went to the device.
  std::uint64_t compare(const Dataset& dataset, const Collate& collate = collate::stack(),
                        std::size_t workers = 2) const {
    LoaderOptions here = options(Device{}, workers);
    LoaderOptions there = options(device, workers);
    here.collate = there.collate = collate;
    DataLoader host(dataset, here);
    DataLoader loader(dataset, there);
    const TransferScope scope;
    std::size_t batches = 0;
    while (const std::optional<Batch> wanted = host.next()) {
      const std::optional<Batch> batch = loader.next();
      EXPECT_TRUE(batch);
      if (!batch) return 0;
      EXPECT_EQ(test::bits_of(batch->value.to(Device{})), test::bits_of(wanted->value)) << "batch " << batches;
      ++batches;
    }
    EXPECT_FALSE(loader.next());
    EXPECT_GT(batches, 0U);
    return scope.stats().host_to_device.bytes;
  }
};

Tensor numbers(const DType& dtype, const Shape& shape) {
  // Small numbers, so that every type holds them and products stay finite.
  return (test::pattern(shape.numel(), 3).to(DType::float32) / 2.0).to(dtype).reshape(shape);
}

TEST_F(DeviceSteps, BytesToNormalizedFloatsCrossAsBytes) {
  const Dataset images = rows(numbers(DType::uint8, {kSamples, 3, 16, 32}));
  const std::uint64_t bytes = compare(images.cast(DType::float32).scale(1 / 255.0).normalize(kMean, kStd));
  EXPECT_GE(bytes, static_cast<std::uint64_t>(kSamples) * 3 * 16 * 32);
  EXPECT_LT(bytes, static_cast<std::uint64_t>(kSamples) * 3 * 16 * 32 * 11 / 10);
}

TEST_F(DeviceSteps, EveryChainGivesTheBitsOfTheHost) {
  const std::map<std::string, Chain> chains = {
      {"cast", [](const Dataset& d) { return d.cast(DType::float32); }},
      {"to float64", [](const Dataset& d) { return d.cast(DType::float64).normalize(kMean, kStd); }},
      {"to float16", [](const Dataset& d) { return d.cast(DType::float16).scale(1 / 3.0).normalize(kMean, kStd); }},
      {"to bfloat16", [](const Dataset& d) { return d.cast(DType::bfloat16).scale(0.1).normalize(kMean, kStd); }},
      {"there and back", [](const Dataset& d) { return d.cast(DType::float64).scale(0.3).cast(DType::float16); }},
      {"to int64", [](const Dataset& d) { return d.cast(DType::int64); }},
      {"to complex64", [](const Dataset& d) { return d.cast(DType::complex64); }},
      {"one mean", [](const Dataset& d) { return d.cast(DType::float32).normalize({0.5}, kStd); }},
      {"one deviation", [](const Dataset& d) { return d.cast(DType::float32).normalize(kMean, {0.3}); }},
      {"two of them",
       [](const Dataset& d) {
         return d.cast(DType::float32).normalize(kMean, kStd).cast(DType::float64).normalize({1, 2, 3, 4}, {0.1}, -1);
       }},
      {"channels moved",
       [](const Dataset& d) {
         return d.permute({1, 2, 0}).cast(DType::float32).normalize(kMean, kStd, 2).permute({2, 0, 1}).flip({0, 1});
       }},
      {"channels cut",
       [](const Dataset& d) { return d.cast(DType::float32).normalize(kMean, kStd).crop({1}, {2}, {0}).flip({0}); }},
      {"random places",
       [](const Dataset& d) {
         return d.cast(DType::float32).random_crop({3, 2}).normalize(kMean, kStd).random_flip({-1}).scale(2);
       }},
      {"random channels",
       [](const Dataset& d) { return d.cast(DType::float32).normalize(kMean, kStd).random_flip({0}); }},
      {"strict", [](const Dataset& d) { return d.cast(DType::float32, true).normalize(kMean, kStd); }},
      {"clamped", [](const Dataset& d) { return d.cast(DType::float32).clamp(3, 50).cast(DType::float64); }},
      {"padded",
       [](const Dataset& d) {
         return d.pad({1, 1}, {0, 2}, 9).cast(DType::float32).scale(2).pad({0}, {1}, 3);
       }},
      {"nothing",
       [](const Dataset& d) {
         return d.permute({2, 1, 0});
       }},
  };
  for (const DType& dtype : {DType::uint8, DType::int8, DType::boolean, DType::int16, DType::float16, DType::bfloat16,
                             DType::float32, DType::int32, DType::uint16, DType::float8_e4m3fn, DType::float8_e5m2}) {
    const Dataset images = rows(numbers(dtype, {kSamples, 3, 5, 4}));
    for (const auto& [name, chain] : chains) {
      SCOPED_TRACE(std::string(dtype.name()) + ", " + name);
      compare(chain(images));
    }
  }
}

std::vector<DType> number_types() {
  std::vector<DType> out;
  for (auto code = static_cast<unsigned>(DType::Code::kBool);
       code <= static_cast<unsigned>(DType::Code::kFloat8E8M0FNU); ++code) {
    out.emplace_back(static_cast<DType::Code>(code));
  }
  return out;
}

TEST_F(DeviceSteps, EveryPairOfTypesIsCastAsOnTheHost) {
  for (const DType& from : number_types()) {
    const Dataset some = rows(numbers(from, {kSamples, 9}));
    for (const DType& to : number_types()) {
      SCOPED_TRACE(std::string(from.name()) + " to " + std::string(to.name()));
      compare(some.cast(to), collate::stack(), 1);
    }
  }
}

TEST_F(DeviceSteps, ColumnsAreDecidedOneByOne) {
  const Tensor images = numbers(DType::uint8, {kSamples, 3, 40, 50});
  const Dataset labels = rows(arange(0, kSamples));
  const Dataset pairs = zip({{"image", rows(images)}, {"mask", rows(images)}, {"label", labels}});
  const std::uint64_t bytes = compare(pairs.cast(DType::float32, false, {"image"})
                                          .cast(DType::float32, true, {"mask"})
                                          .normalize(kMean, kStd, 0, {"image", "mask"}));
  EXPECT_LT(bytes, images.nbytes() * 11 / 2);
  EXPECT_GE(bytes, images.nbytes() * 5);
}

TEST_F(DeviceSteps, BatchesThatAreNotStackedAreConvertedHere) {
  const Dataset images = rows(numbers(DType::uint8, {kSamples, 3, 5, 4})).cast(DType::float32).scale(0.5);
  PadOptions padding;
  padding.value = 1;
  compare(images, collate::pad(padding));
  compare(images, collate::pad_to(7, padding));
  compare(images, collate::samples());
  compare(images, collate::ragged());
  compare(images, collate::function([](const std::vector<Value>& samples) { return samples.front(); }));
}

TEST_F(DeviceSteps, FilesOfAllSizesAndTypes) {
  const test::TemporaryFolder folder;
  for (std::int64_t i = 0; i < 12; ++i) {
    const DType dtype = i % 3 == 0 ? DType::float16 : DType::uint8;
    const Tensor image = numbers(dtype, {3, 20, 30});
    Tensor stored = image;
    if (i % 4 == 1) stored = numbers(dtype, {30, 20, 3}).transpose(0, 2);
    save(Value::dict({{"image", stored}, {"label", i}}), folder / ("f" + std::to_string(10 + i) + ".pt"));
  }
  const Dataset dataset = files(folder.path().string());
  compare(dataset.cast(DType::float32).scale(0.1).normalize(kMean, kStd));
  compare(dataset.cast(DType::float32).scale(0.1).normalize(kMean, kStd), collate::stack(), 0);
}

TEST_F(DeviceSteps, LargeFiles) {
  const test::TemporaryFolder folder;
  for (std::int64_t i = 0; i < 4; ++i) {
    const Tensor image = numbers(DType::uint8, {3, 320, 300}) + Scalar(i);  // 288 KB; a small file has 256 KiB
    save(image, folder / ("f" + std::to_string(i) + ".npy"));
    save(Value::dict({{"x", image.transpose(1, 2).contiguous().transpose(1, 2)}}),
         folder / ("g" + std::to_string(i) + ".pt"));
  }
  const std::string path = folder.path().string();
  compare(files(path + "/f*.npy").cast(DType::float32).normalize(kMean, kStd));
  compare(files(path + "/g*.pt").cast(DType::float32).normalize(kMean, kStd).permute({1, 2, 0}));
}

TEST_F(DeviceSteps, FunctionsOfBatchesSeeFinishedValues) {
  const Dataset images = rows(numbers(DType::uint8, {kSamples, 3, 5, 4})).cast(DType::float32).scale(0.5);
  MapOptions batched;
  batched.batched = true;
  compare(images.map([](const Tensor& batch) { return batch + 1; }, batched));
  compare(images.map([](const Tensor& sample) { return sample + 1; }).cast(DType::float64).scale(3));
}

TEST_F(DeviceSteps, TensorsWithoutElements) {
  compare(rows(numbers(DType::uint8, {kSamples, 3, 0, 4})).cast(DType::float32).normalize(kMean, kStd));
  compare(rows(numbers(DType::uint8, {kSamples})).cast(DType::float32).scale(0.5).normalize({1}, {2}));
}

TEST_F(DeviceSteps, TwoChainsOfEqualSamplesStayApart) {
  const Dataset bytes = rows(numbers(DType::uint8, {kSamples, 3, 5, 4}));
  const Dataset one = bytes.cast(DType::float32).normalize(kMean, kStd);
  const Dataset other = bytes.cast(DType::float32).normalize(kStd, kStd);
  compare(concat({one, other}));
}

}  // namespace
}  // namespace penstock
