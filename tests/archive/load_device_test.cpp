#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <complex>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "archive/load_converted.h"
#include "archive/made_archive.h"
#include "penstock/load.h"
#include "penstock/ops.h"
#include "penstock/save.h"
#include "penstock/transfer.h"
#include "support/cufile.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock {
namespace {

class LoadToDevice : public test::WithDevice {
 protected:
  /// Tensors of many sizes, some sharing memory, by name.
  static Value state_dict() {
    std::vector<std::pair<std::string, Value>> items;
    for (std::int64_t i = 0; i < 40; ++i) {
      items.emplace_back("small" + std::to_string(i), Value::tensor(test::pattern(i * 37 + 1, unsigned(i))));
    }
    items.emplace_back("large", Value::tensor(test::pattern(9'000'000, 99)));
    items.emplace_back("empty", Value::tensor(Tensor::empty({0, 4})));
    items.emplace_back("float", Value::tensor(arange(0, 1000, 1, DType::float32).reshape({10, 100})));
    return Value::dict(std::move(items));
  }

  static void expect_same(const Value& device_value, const Value& host, Device device) {
    ASSERT_EQ(device_value.size(), host.size());
    for (std::size_t i = 0; i < host.size(); ++i) {
      const auto [key, tensor] = host.item(i);
      const Tensor there = device_value[key.as_string()].as_tensor();
      EXPECT_EQ(there.device(), device) << key.to_string();
      EXPECT_TRUE(Tensor::identical(there, tensor.as_tensor())) << key.to_string();
    }
  }

  test::TemporaryFolder folder;
};

TEST_F(LoadToDevice, WholeStateDictsOfEveryFormat) {
  const Value host = state_dict();
  for (const char* name : {"x.pt", "x.safetensors", "x.npz"}) {
    const std::string path = folder / name;
    save(host, path);
    Report report;
    expect_same(load(path, {.device = device, .report = &report}), host, device);
    EXPECT_EQ(report.route, "ring") << name;
  }
}

TEST_F(LoadToDevice, StateDictsMoveInOneBatchOfCountedCopies) {
  const Value host = state_dict();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < host.size(); ++i) bytes += host.item(i).second.as_tensor().nbytes();
  const TransferScope scope;
  const Value there = host.to(device);
  EXPECT_EQ(scope.stats().host_to_device.bytes, bytes);
  EXPECT_EQ(scope.stats().host_to_device.waits, 1U);
  static_cast<void>(there.to(Device{}));
  EXPECT_EQ(scope.stats().device_to_host.bytes, bytes);
  EXPECT_EQ(scope.stats().device_to_host.waits, 1U);
}

TEST_F(LoadToDevice, AStateDictThatGoesToAndFroIsNamed) {
  std::vector<std::string> names;
  set_transfer_warning_handler([&](const TransferWarning& warning) { names.push_back(warning.name); });
  Value value = Value::dict({{"layer", Value::list({Value::integer(1), Value::tensor(test::pattern(50))})},
                             {"bias", Value::tensor(test::pattern(5))}});
  for (int trip = 0; trip < 10; ++trip) value = value.to(device).to(Device{});
  set_transfer_warning_handler({});
  EXPECT_THAT(names, testing::UnorderedElementsAre("layer.1", "bias"));
}

TEST_F(LoadToDevice, TheDeviceThatWasAskedFor) {
  const Device last(DeviceType::kCuda, device_count() - 1);
  const std::string path = folder / "x.npy";
  const Tensor host = test::pattern(100'000);
  save(host, path);
  const Tensor there = load_tensor(path, {.device = last.to_string()});
  EXPECT_EQ(there.device(), last);
  EXPECT_TRUE(Tensor::identical(there, host));
}

TEST_F(LoadToDevice, DecodedAndDeflatedBytesToo) {
  const std::string npz = folder / "x.npz";
  const Value host = state_dict();
  save(host, npz, {.compress = true});
  expect_same(load(npz, {.device = device}), host, device);

  const std::string npy = folder / "swapped.npy";
  std::string text = "\x93NUMPY\x01";
  text += std::string("\0\x76\0", 3);
  std::string header = "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }";
  header.resize(0x75, ' ');
  text += header + "\n";
  for (char i = 0; i < 6; ++i) text += std::string({'\0', '\0', '\1', i});
  test::write_file(npy, text);
  const Tensor there = load_tensor(npy, {.device = device});
  EXPECT_EQ(there.device(), device);
  EXPECT_TRUE(Tensor::identical(there, load_tensor(npy)));
  EXPECT_TRUE(Tensor::identical(there, Tensor::of<int>({256, 258, 260, 257, 259, 261}).reshape({2, 3})));
}

TEST_F(LoadToDevice, IntoMemoryThatIsThere) {
  const Value host = state_dict();
  for (const auto& [name, compress] : {std::pair("x.pt", false), std::pair("x.npz", true)}) {
    const std::string path = folder / name;
    save(host, path, {.compress = compress});
    const Archive archive = open(path);
    std::vector<Placement> places;
    for (std::size_t i = 0; i < archive.entries().size(); ++i) {
      const TensorEntry& entry = archive.entries()[i];
      places.push_back({i, Tensor::empty(entry.shape, entry.dtype, device)});
    }
    archive.load_into(places);
    for (const Placement& place : places) {
      EXPECT_TRUE(Tensor::identical(place.to, archive.entry(place.entry).load()))
          << archive.entries()[place.entry].name;
    }
  }
}

TEST_F(LoadToDevice, IntoMemoryOfAnotherTypeAndOtherStrides) {
  const Tensor host = arange(0, 60'000, 1, DType::float32).reshape({300, 200});
  const std::string path = folder / "x.safetensors";
  save(Value::dict({{"t", Value::tensor(host)}}), path);
  const Placement wider{0, Tensor::empty(host.shape(), DType::float64, device)};
  open(path).load_into({&wider, 1});
  EXPECT_TRUE(Tensor::identical(wider.to, host.to(DType::float64)));
  const Tensor columns = Tensor::zeros({200, 300}, DType::float32, device);
  const Placement turned{0, columns.transpose(0, 1)};
  open(path).load_into({&turned, 1});
  EXPECT_TRUE(Tensor::identical(columns, host.transpose(0, 1).contiguous()));
}

TEST_F(LoadToDevice, StoragesIntoMemoryThatIsThere) {
  const Tensor base = test::pattern(1000);
  const std::string path = folder / "x.pt";
  save(Value::dict({{"a", Value::tensor(base)}, {"b", Value::tensor(base.slice(0, 100, 200))}}), path);
  const StoragePlacement place{0, Tensor::zeros({1000}, DType::uint8, device)};
  open(path).load_storages_into({&place, 1});
  EXPECT_TRUE(Tensor::identical(place.to, base));
  for (const auto& [wrong, code] :
       {std::pair(StoragePlacement{0, Tensor::zeros({999}, DType::uint8, device)}, ErrorCode::kShapeMismatch),
        std::pair(StoragePlacement{0, Tensor::zeros({250}, DType::int32, device)}, ErrorCode::kShapeMismatch),
        std::pair(StoragePlacement{1, place.to}, ErrorCode::kIndexOutOfRange)}) {
    const auto error = test::error_of([&, bad = wrong] { open(path).load_storages_into({&bad, 1}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), code);
    EXPECT_EQ(error->path(), path);
  }
}

TEST_F(LoadToDevice, EntriesAndSlices) {
  const std::string path = folder / "x.safetensors";
  const Tensor host = arange(0, 60'000, 1, DType::float32).reshape({300, 200});
  save(Value::dict({{"t", Value::tensor(host)}}), path);
  const Archive archive = open(path);
  EXPECT_TRUE(Tensor::identical(archive["t"].load(device), host));
  for (const Tensor& there :
       {archive["t"].slice(0, 10, 20).load(device), archive["t"].slice(1, 3, 9).load(device).slice(0, 10, 20),
        archive["t"].slice(0, 10, 20).slice(1, 0, 200, 7).load(device)}) {
    EXPECT_EQ(there.device(), device);
  }
  EXPECT_TRUE(Tensor::identical(archive["t"].slice(1, 3, 9).load(device), host.slice(1, 3, 9)));
  EXPECT_TRUE(Tensor::identical(archive["t"].select(0, 7).load(device), host.select(0, 7)));
}

TEST_F(LoadToDevice, SharedStoragesStayShared) {
  const Tensor base = test::pattern(1000);
  const std::string path = folder / "x.pt";
  save(Value::dict({{"a", Value::tensor(base)}, {"b", Value::tensor(base.slice(0, 100, 200))}}), path);
  const Value there = load(path, {.device = device});
  const Tensor a = there["a"].as_tensor();
  const Tensor b = there["b"].as_tensor();
  EXPECT_TRUE(a.buffer().shares_memory_with(b.buffer()));
  EXPECT_EQ(b.data(), a.data() + 100);
}

TEST_F(LoadToDevice, AnotherTypeAsOnTheHost) {
  const Value host = {{"half", Tensor::of<float>({1, 65504, 1e-7F}).to(DType::float16)},
                      {"float", arange(0, 1000, 1, DType::float32).reshape({10, 100})},
                      {"turned", arange(0, 6, 1, DType::float32).reshape({2, 3}).transpose(0, 1)},
                      {"double", Tensor::of<double>({0.1, 1e300, -1e300})},
                      {"complex", Tensor::of<std::complex<float>>({{1, 2}, {3, 4}})},
                      {"int", Tensor::of<std::int64_t>({7, 8})},
                      {"bool", Tensor::of<bool>({true})},
                      {"empty", Tensor::empty({0, 4}, DType::float64)}};
  for (const auto& [name, compress] :
       {std::pair("x.pt", false), std::pair("x.safetensors", false), std::pair("x.npz", true)}) {
    const std::string path = folder / name;
    save(host, path, {.compress = compress});
    for (const DType& dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::complex64}) {
      SCOPED_TRACE(std::string(name) + " " + dtype.name());
      Report report;
      const Value there = load(path, {.device = device, .dtype = dtype, .report = &report});
      expect_same(there, load(path, {.dtype = dtype}), device);
      EXPECT_FALSE(report.route.empty());
      const Archive archive = open(path);
      const Tensor rows = archive["float"].slice(0, 2, 9).load({.device = device, .dtype = dtype});
      EXPECT_EQ(rows.device(), device);
      EXPECT_TRUE(Tensor::identical(rows, host["float"].as_tensor().slice(0, 2, 9).to(dtype)));
    }
  }
}

TEST_F(LoadToDevice, AnotherTypeOfALargeTensorInPieces) {
  const Tensor host = arange(0, std::int64_t{20} << 20, 1, DType::float32);
  for (const char* name : {"x.pt", "x.npy"}) {
    const std::string path = folder / name;
    save(host, path, {.sync = false});
    for (const bool gds : {false, true}) {
      const Tensor there = load_tensor(path, {.device = device, .gds = gds, .dtype = DType::bfloat16});
      EXPECT_EQ(there.device(), device);
      EXPECT_TRUE(Tensor::identical(there, host.to(DType::bfloat16))) << name;
    }
  }
}

TEST_F(LoadToDevice, AnotherTypeLeavesTiedTensorsTied) {
  const Tensor base = arange(0, 12, 1, DType::float32).reshape({3, 4});
  const std::string path = folder / "x.pt";
  save({{"a", base}, {"tied", base}, {"turned", base.transpose(0, 1)}}, path);
  const Value there = load(path, {.device = device, .dtype = DType::float16});
  const Tensor a = there["a"].as_tensor();
  const Tensor tied = there["tied"].as_tensor();
  const Tensor turned = there["turned"].as_tensor();
  EXPECT_EQ(a.data(), tied.data());
  EXPECT_FALSE(a.buffer().shares_memory_with(turned.buffer()));
  EXPECT_TRUE(Tensor::identical(turned, base.transpose(0, 1).to(DType::float16)));
}

TEST_F(LoadToDevice, WhatKeepsItsTypeStaysSharedBesideWhatBecomesAnother) {
  std::string bytes(400, '\0');
  for (std::size_t i = 0; i < 100; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  test::MadeArchive archive(test::source_of(bytes));
  const std::size_t storage = archive.add_storage(0, 400);
  archive.add_entry(storage, DType::float32, {100}, {1});
  archive.add_entry(storage, DType::int32, {100}, {1});
  archive.add_entry(storage, DType::int32, {10}, {1}, 40);
  Report report;
  const std::vector<Tensor> tensors =
      archive::load_converted(archive.sealed(), archive.entries(), {.device = device, .dtype = DType::float64}, report,
                              archive::Resident::kCopied);
  EXPECT_TRUE(Tensor::identical(tensors[0], arange(0, 100, 1, DType::float64)));
  EXPECT_TRUE(tensors[1].buffer().shares_memory_with(tensors[2].buffer()));
  EXPECT_EQ(tensors[2].data(), tensors[1].data() + 40);
}

TEST_F(LoadToDevice, AnotherTypeStrictlyNamesTheTensor) {
  const std::string path = folder / "x.safetensors";
  save({{"fits", Tensor::of<double>({1})}, {"large", Tensor::of<double>({1, 1e300})}}, path);
  const std::uint64_t before = memory_stats(device).in_use_bytes;
  const LoadOptions options = {.device = device, .dtype = DType::float32, .strict = true};
  for (const auto& work : {std::function<void()>([&] { load(path, options); }),
                           std::function<void()>([&] { open(path)["large"].load(options); })}) {
    const auto error = test::error_of(work);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error->tensor(), "large");
    EXPECT_EQ(error->path(), path);
  }
  EXPECT_EQ(memory_stats(device).in_use_bytes, before);
  EXPECT_NO_THROW(open(path)["fits"].load(options));
}

TEST_F(LoadToDevice, AnotherTypeWithoutMemoryForItNamesTheTensor) {
  const std::string path = folder / "x.safetensors";
  const Tensor large = Tensor::zeros({std::int64_t{20} << 20}, DType::float32);
  const Tensor whole = Tensor::zeros({std::int64_t{30} << 20}, DType::uint8);
  for (const auto& [last, dtype] : {std::pair(large, DType::float64), std::pair(whole, DType::float16)}) {
    save({{"first", large}, {"last", last.clone()}}, path, {.sync = false});
    empty_cache(device);
    const std::uint64_t before = memory_stats(device).in_use_bytes;
    const std::uint64_t first = (std::uint64_t{20} << 20) * dtype.itemsize();
    set_memory_cap(device, before + first + (std::uint64_t{10} << 20));
    const auto error = test::error_of([&, type = dtype] { load(path, {.device = device, .dtype = type}); });
    set_memory_cap(device, std::nullopt);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
    EXPECT_EQ(error->path(), path);
    EXPECT_EQ(error->tensor(), "last");
    EXPECT_EQ(memory_stats(device).in_use_bytes, before);
  }
}

TEST_F(LoadToDevice, OutOfMemoryInTheMiddleReleasesAllAndNamesTheTensor) {
  std::vector<std::pair<std::string, Value>> items;
  for (const char* name : {"first", "second", "third"})
    items.emplace_back(name, Value::tensor(test::pattern(70 << 20)));
  const std::string path = folder / "x.safetensors";
  save(Value::dict(std::move(items)), path, {.sync = false});
  empty_cache(device);
  const std::uint64_t before = memory_stats(device).in_use_bytes;
  set_memory_cap(device, before + (150ULL << 20));
  const auto error = test::error_of([&] { load(path, {.device = device}); });
  set_memory_cap(device, std::nullopt);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(error->path(), path);
  EXPECT_EQ(error->tensor(), "third");
  EXPECT_EQ(memory_stats(device).in_use_bytes, before);
}

TEST_F(LoadToDevice, AbsentDevicesSayHowManyThereAre) {
  const std::string path = folder / "x.npy";
  save(test::pattern(10), path);
  const auto error = test::error_of([&] { return load_tensor(path, {.device = "cuda:77"}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kNoDevice);
  EXPECT_EQ(test::code_of([&] { load_tensor(path, {.device = "cuda:77", .dtype = DType::float16}); }),
            ErrorCode::kNoDevice);
  EXPECT_THAT(error->message(),
              testing::HasSubstr("cuda:77 requested, " + std::to_string(device_count()) + " visible"));
}

TEST_F(LoadToDevice, AValueGoesThereAndBack) {
  const Value host = state_dict();
  const Value there = host.to(device);
  expect_same(there, host, device);
  EXPECT_TRUE(there.to(device).same_node(there));
  expect_same(there.to(Device{}), host, Device{});
}

/// The same by cuFile.
class LoadByCufile : public test::WithCufile {
 protected:
  void SetUp() override {
    WithCufile::SetUp();
    if (IsSkipped()) return;
    const int fd = ::open((folder / "probe").c_str(), O_CREAT | O_RDONLY | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0) GTEST_SKIP() << "the folder for temporary files offers no direct reads";
    ::close(fd);
  }
  static Value state_dict() {
    return Value::dict({{"small", Value::tensor(test::pattern(1000, 1))},
                        {"large", Value::tensor(test::pattern(9'000'001, 2))},
                        {"other", Value::tensor(test::pattern(3'000'000, 3))}});
  }
  void expect_loaded(const char* name, const LoadOptions& options, const char* route) {
    const Value host = state_dict();
    report = {};
    const Value there = load(folder / name, options);
    for (const char* key : {"small", "large", "other"}) {
      EXPECT_EQ(there[key].as_tensor().device(), options.device);
      EXPECT_TRUE(Tensor::identical(there[key].as_tensor(), host[key].as_tensor())) << name << ' ' << key;
    }
    EXPECT_EQ(report.route, route) << name << ": " << report.why;
  }

  test::TemporaryFolder folder;
  Report report;
};

TEST_F(LoadByCufile, FilesWhoseBytesAreTheValues) {
  for (const char* name : {"x.safetensors", "x.pt", "x.npz"}) {
    save(state_dict(), folder / name);
    expect_loaded(name, {.device = device, .verify = false, .gds = true, .report = &report}, "gds");
  }
  const Tensor host = test::pattern(5'000'000);
  save(host, folder / "x.npy");
  EXPECT_TRUE(
      Tensor::identical(load_tensor(folder / "x.npy", {.device = device, .gds = true, .report = &report}), host));
  EXPECT_EQ(report.route, "gds");
  const Tensor slice = open(folder / "x.npy")
                           .entry(0)
                           .slice(0, 1'000'001, 4'000'000)
                           .load({.device = device, .gds = true, .report = &report});
  EXPECT_TRUE(Tensor::identical(slice, host.slice(0, 1'000'001, 4'000'000)));
  EXPECT_EQ(report.route, "gds");
}

TEST_F(LoadByCufile, ChecksumsAndDecodedBytesGoThroughTheRing) {
  save(state_dict(), folder / "x.pt");
  expect_loaded("x.pt", {.device = device, .gds = true, .report = &report}, "ring");
  EXPECT_THAT(report.why, testing::HasSubstr("; through the ring, because checksums are computed in host memory"));
  save(state_dict(), folder / "x.npz", {.compress = true});
  expect_loaded("x.npz", {.device = device, .verify = false, .gds = true, .report = &report}, "ring");
  EXPECT_EQ(cufile().reads, 0U);
}

TEST_F(LoadByCufile, HostLoadsMakeNoCall) {
  save(state_dict(), folder / "x.safetensors");
  expect_loaded("x.safetensors", {.gds = true, .report = &report}, "read");
  EXPECT_EQ(cufile().calls, 0U);
}

}  // namespace
}  // namespace penstock
