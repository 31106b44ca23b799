#include "archive/one_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <complex>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "archive/load_converted.h"
#include "archive/load_tensors.h"
#include "archive/made_archive.h"
#include "io/copy/crc32.h"
#include "penstock/async.h"
#include "penstock/raw.h"
#include "penstock/save.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock::archive {
namespace {

using test::error_of;
using test::MadeArchive;
using testing::HasSubstr;

/// Whether the address lies in shared memory of ours, as the kernel tells.
bool is_shared(const std::byte* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::size_t end = 0;
    const auto begin = std::stoull(line, &end, 16);
    const auto behind = std::stoull(line.substr(end + 1), nullptr, 16);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (begin <= at && at < behind) return line.find("/memfd:penstock") != line.npos;
  }
  return false;
}

Value model() {
  return {{"large", test::counting<float>({600, 1000})},
          {"few", Tensor::of<std::int16_t>({1, 2, 3})},
          {"empty", Tensor::empty(Shape{0, 4}, DType::float32)},
          {"scalar", Tensor::of<double>({2.5}).reshape({})}};
}

void expect_shared(const Value& loaded, const Value& expected) {
  ASSERT_EQ(loaded.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto [key, value] = expected.item(i);
    const Tensor tensor = loaded[key.as_string()].as_tensor();
    EXPECT_EQ(tensor.dtype(), value.as_tensor().dtype()) << key.to_string();
    EXPECT_TRUE(Tensor::identical(tensor, value.as_tensor())) << key.to_string();
    EXPECT_TRUE(tensor.numel() == 0 || is_shared(tensor.data())) << key.to_string();
  }
}

std::vector<Tensor> load_in_block(MadeArchive& archive, const LoadOptions& options) {
  Report report;
  return load_in_one_block(archive.sealed(), archive.entries(), options, report);
}

TEST(OneBlock, EveryFormatIsLoadedIntoSharedMemory) {
  const test::TemporaryFolder folder;
  for (const char* name : {"m.npz", "z.npz", "m.safetensors", "m.pt"}) {
    SCOPED_TRACE(name);
    const std::string path = folder / name;
    save(model(), path, {.compress = std::string_view(name) == "z.npz"});
    Report report;
    expect_shared(penstock::load(path, {.shared = true, .report = &report}), penstock::load(path));
    EXPECT_GE(report.payload_bytes, 600U * 1000 * 4);
    expect_shared(penstock::load(path, {.dtype = DType::float16, .shared = true}),
                  penstock::load(path, {.dtype = DType::float16}));
    expect_shared(load_async(path, {.shared = true}).get(), penstock::load(path));
    const Archive archive = open(path);
    const Tensor rows = archive["large"].slice(0, 10, 20).load({.shared = true});
    EXPECT_TRUE(is_shared(rows.data()));
    EXPECT_TRUE(Tensor::identical(rows, archive["large"].slice(0, 10, 20).load()));
    const Tensor half = archive["large"].select(1, 3).load({.dtype = DType::float64, .shared = true});
    EXPECT_TRUE(is_shared(half.data()));
    EXPECT_TRUE(Tensor::identical(half, archive["large"].select(1, 3).load({.dtype = DType::float64})));
    EXPECT_EQ(archive["empty"].load({.shared = true}).shape(), (Shape{0, 4}));
    for (const Tensor& storage : archive.load_storages({.shared = true})) {
      EXPECT_TRUE(!storage.defined() || is_shared(storage.data()));
    }
  }
  save(test::counting<float>({3, 4}), folder / "one.npy");
  const Tensor one = load_tensor(folder / "one.npy", {.shared = true});
  EXPECT_TRUE(is_shared(one.data()));
}

TEST(OneBlock, AFileWithoutTensorsAndOneWithoutElements) {
  const test::TemporaryFolder folder;
  save(Value{{"step", 3}}, folder / "a.pt");
  EXPECT_EQ(penstock::load(folder / "a.pt", {.shared = true})["step"].as_int(), 3);
  save(Tensor::empty({0, 2}), folder / "a.npy");
  EXPECT_EQ(load_tensor(folder / "a.npy", {.dtype = DType::float16, .shared = true}).dtype(), DType::float16);
}

TEST(OneBlock, AChildSeesWhatItsParentWrites) {
  const test::TemporaryFolder folder;
  save(model(), folder / "m.safetensors");
  const Value loaded = penstock::load(folder / "m.safetensors", {.shared = true});
  const Tensor few = loaded["few"].as_tensor();
  const pid_t child = ::fork();
  if (child == 0) {
    few.values<std::int16_t>()[0] = 9;
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(test::values_of<std::int16_t>(few), (std::vector<std::int16_t>{9, 2, 3}));
}

TEST(OneBlock, StoragesStaySharedAndOtherValuesHaveAPlaceBehindThem) {
  std::vector<float> floats(100);
  for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i + 1);
  std::string bytes(400, '\0');
  std::memcpy(bytes.data(), floats.data(), bytes.size());
  const auto source = std::make_shared<test::CountingSource>(bytes);
  MadeArchive archive(source);
  const std::size_t s = archive.add_storage(0, 400);
  archive.add_entry(s, DType::float32, {10, 10}, {10, 1});
  archive.add_entry(s, DType::float32, {10, 10}, {1, 10});
  archive.add_entry(s, DType::float32, {5}, {20});
  archive.add_entry(s, DType::float32, {4, 3}, {0, 1}, 40);
  archive.add_entry(s, DType::float32, {10, 10}, {10, 1});
  archive.add_entry(s, DType::float32, {9, 2}, {1, 1}).encoding.negative = true;  // elements lie over each other
  archive.add_entry(s, DType::complex64, {1 << 20, 2}, {0, 1}).encoding.conjugate = true;
  for (const bool converts : {false, true}) {
    SCOPED_TRACE(converts);
    LoadOptions options{.shared = true};
    if (converts) options.dtype = DType::float64;
    const std::vector<Tensor> tensors = load_in_block(archive, options);
    options.shared = false;
    Report report;
    const std::vector<Tensor> expected =
        converts ? load_converted(archive.sealed(), archive.entries(), options, report, Resident::kCopied)
                 : load_tensors(archive.sealed(), archive.entries(), options, report);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_TRUE(Tensor::identical(tensors[i], expected[i])) << i;
      EXPECT_EQ(tensors[i].dtype(), expected[i].dtype()) << i;
      EXPECT_EQ(tensors[i].strides(), expected[i].strides()) << i;
      EXPECT_TRUE(is_shared(tensors[i].data())) << i;
      EXPECT_TRUE(tensors[i].buffer().shares_memory_with(tensors[0].buffer())) << i;
    }
    EXPECT_EQ(tensors[4].data(), tensors[0].data()) << "the same view";
    EXPECT_EQ(tensors[1].strides(), (Strides{1, 10}));
    EXPECT_EQ(tensors[3].strides(), (Strides{0, 1})) << "repeated elements stay repeated";
    EXPECT_EQ(tensors[1].data() == tensors[0].data(), !converts);
  }
}

TEST(OneBlock, OtherByteOrdersComeInThisMachines) {
  std::string bytes;
  for (int i = 0; i < 5; ++i) bytes += std::string{0, 0, 0, static_cast<char>(i)};
  MadeArchive archive(test::source_of(bytes));
  archive.add_entry(archive.add_storage(0, bytes.size()), DType::int32, {5}, {1}).encoding.swapped = true;
  EXPECT_EQ(test::values_of<std::int32_t>(load_in_block(archive, {.shared = true}).front()),
            (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
}

TEST(OneBlock, WhatIsConvertedIsReadInPiecesAndChecked) {
  const std::size_t count = (std::size_t{70} << 20) / sizeof(float);
  std::string bytes(count * sizeof(float), '\x3f');
  const std::uint32_t crc = io::crc32(0, std::as_bytes(std::span(bytes)));
  for (const bool damaged : {false, true}) {
    if (damaged) bytes.back() = '\x3e';
    const auto source = std::make_shared<test::CountingSource>(bytes);
    MadeArchive archive(source);
    const std::size_t s = archive.add_storage(0, bytes.size());
    archive.storage(s).crc32 = crc;
    archive.add_entry(s, DType::float32, {static_cast<std::int64_t>(count)}, {1});
    const LoadOptions options{.dtype = DType::float16, .shared = true};
    if (damaged) {
      const auto error = error_of([&] { load_in_block(archive, options); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::kChecksum);
      continue;
    }
    const Tensor tensor = load_in_block(archive, options).front();
    EXPECT_EQ(source->bytes_read, bytes.size()) << "its checksum is made of the pieces";
    EXPECT_TRUE(
        Tensor::identical(tensor, test::expected(bytes, archive.storage(s), archive.entries()[0]).to(DType::float16)));
  }
}

TEST(OneBlock, AStrictLoadNamesTheTensor) {
  const test::TemporaryFolder folder;
  save(Value{{"x", Tensor::of<double>({1e300})}}, folder / "x.safetensors");
  const auto error = error_of(
      [&] { penstock::load(folder / "x.safetensors", {.dtype = DType::float32, .strict = true, .shared = true}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error->tensor(), "x");
}

TEST(OneBlock, DoesNotGoTogetherWithOtherMemory) {
  const test::TemporaryFolder folder;
  save(model(), folder / "m.npz");
  const Archive archive = open(folder / "m.npz");
  struct Case {
    LoadOptions options;
    const char* said;
  };
  for (const Case& each : {Case{{.device = Device(DeviceType::kCuda, 0), .shared = true}, "shared and device"},
                           Case{{.mmap = true, .shared = true}, "shared and mmap"},
                           Case{{.gds = true, .pinned = true}, "pinned and gds"},
                           Case{{.device = Device(DeviceType::kCuda, 0), .mmap = true}, "mmap and device"},
                           Case{{.mmap = true, .direct = true}, "mmap and direct"},
                           Case{{.mmap = true, .gds = true}, "mmap and gds"}}) {
    for (const auto& error : {error_of([&] { penstock::load(folder / "m.npz", each.options); }),
                              error_of([&] { archive["few"].load(each.options); }),
                              error_of([&] { archive.load_storages(each.options); })}) {
      ASSERT_TRUE(error) << each.said;
      EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
      EXPECT_THAT(error->what(), HasSubstr(each.said));
    }
  }
  const Tensor few = Tensor::empty({3}, DType::int16);
  for (const LoadOptions& options :
       {LoadOptions{.shared = true}, LoadOptions{.pinned = true}, LoadOptions{.mmap = true},
        LoadOptions{.device = Device(DeviceType::kCuda, 0)}}) {
    for (const auto& error : {error_of([&] {
                                archive.load_into({{"few", few}}, options);
                              }),
                              error_of([&] { archive["few"].load_into(few, options); }),
                              error_of([&] { archive.load_storages_into({}, options); })}) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    }
  }
}

TEST(OneBlock, WithoutADevicePageLockedMemoryIsAnError) {
  if (is_available()) GTEST_SKIP() << "there is a device";
  const test::TemporaryFolder folder;
  save(model(), folder / "m.npz");
  for (const bool shared : {false, true}) {
    const auto error = error_of([&] { penstock::load(folder / "m.npz", {.shared = shared, .pinned = true}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kNoDevice);
  }
}

class PinnedBlock : public test::WithDevice {};

TEST_F(PinnedBlock, HoldsAllTensorsAndMayBeSharedToo) {
  const test::TemporaryFolder folder;
  for (const char* name : {"m.npz", "m.safetensors", "m.pt"}) {
    SCOPED_TRACE(name);
    save(model(), folder / name);
    for (const bool shared : {false, true}) {
      const Value loaded = penstock::load(folder / name, {.dtype = DType::float32, .shared = shared, .pinned = true});
      const Value expected = penstock::load(folder / name, {.dtype = DType::float32});
      for (const char* key : {"large", "few", "scalar"}) {
        const Tensor tensor = loaded[key].as_tensor();
        EXPECT_TRUE(Tensor::identical(tensor, expected[key].as_tensor())) << key;
        EXPECT_TRUE(tensor.buffer().is_pinned()) << key;
        EXPECT_EQ(is_shared(tensor.data()), shared) << key;
        EXPECT_TRUE(Tensor::identical(tensor.to(device).to(Device{}), tensor)) << key;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::archive
