#include "archive/read_way.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "archive/made_archive.h"

namespace penstock::archive {
namespace {

constexpr Device kHost{};
constexpr Device kGpu{DeviceType::kCuda, 0};
constexpr std::uint64_t kStorage = 1000;

constexpr Stretch kAll{.begin = 0, .span = kStorage, .bytes = kStorage};
constexpr Stretch kRunOfIt{.begin = 100, .span = 200, .bytes = 200};
constexpr Stretch kMostOfIt{.begin = 0, .span = 900, .bytes = 900};
constexpr Stretch kApart{.begin = 0, .span = kStorage, .bytes = 500};
constexpr Stretch kRepeated{.begin = 0, .span = 8, .bytes = 4000};
constexpr Stretch kNone{.begin = 100, .span = 0, .bytes = 0};

StorageEntry stored(std::uint32_t source = 0) {
  StorageEntry out;
  out.source = source;
  out.nbytes = out.stored_bytes = kStorage;
  return out;
}

StorageEntry deflated() {
  StorageEntry out = stored();
  out.compression = Compression::kDeflate;
  return out;
}

StorageEntry resident() {
  StorageEntry out = stored();
  out.resident = Buffer::allocate(kStorage);
  return out;
}

Stretch swapped(Stretch wanted) {
  wanted.swapped = true;
  return wanted;
}

Stretch by_host(Stretch wanted) {
  wanted.by_host = true;
  return wanted;
}

struct Row {
  std::string what;
  StorageEntry storage;
  Stretch wanted;
  Aim aim;
  ReadWay expected;
};

TEST(ReadWay, IsAsTheTableSays) {
  const Aim host{};
  const Aim gpu{.device = kGpu};
  const Aim content{.content = true};
  const Aim map{.mmap = true};
  const std::vector<Row> rows = {
      // Bytes that are values.
      {"all", stored(), kAll, host, {Way::kRun, kHost}},
      {"a run", stored(), kRunOfIt, host, {Way::kRun, kHost}},
      {"apart", stored(), kApart, host, {Way::kParts, kHost}},
      {"repeated elements", stored(), kRepeated, host, {Way::kRun, kHost}},
      {"nothing", stored(), kNone, host, {Way::kNothing, kHost}},
      {"all to a device", stored(), kAll, gpu, {Way::kRun, kGpu}},
      {"a run to a device", stored(), kRunOfIt, gpu, {Way::kRun, kGpu}},
      {"apart to a device", stored(), kApart, gpu, {Way::kParts, kHost}},
      {"nothing to a device", stored(), kNone, gpu, {Way::kNothing, kGpu}},
      // Bytes in the other order, and elements that are changed in other ways.
      {"swapped", stored(), swapped(kAll), host, {Way::kRun, kHost}},
      {"swapped, to a device", stored(), swapped(kAll), gpu, {Way::kRing, kGpu}},
      {"a swapped run, to a device", stored(), swapped(kMostOfIt), gpu, {Way::kRun, kHost}},
      {"swapped and apart, to a device", stored(), swapped(kApart), gpu, {Way::kParts, kHost}},
      {"conjugate, to a device", stored(), by_host(kAll), gpu, {Way::kRun, kHost}},
      {"conjugate and swapped, to a device", stored(), by_host(swapped(kAll)), gpu, {Way::kRun, kHost}},
      // Compressed ones.
      {"deflated", deflated(), kAll, host, {Way::kInflate, kHost}},
      {"a deflated run", deflated(), kRunOfIt, host, {Way::kInflate, kHost}},
      {"deflated and apart", deflated(), kApart, host, {Way::kInflate, kHost}},
      {"deflated, to a device", deflated(), kAll, gpu, {Way::kRing, kGpu}},
      {"most of it", deflated(), kMostOfIt, gpu, {Way::kRing, kGpu}},
      {"half of it, apart", deflated(), kApart, gpu, {Way::kRing, kGpu}},
      {"little of it", deflated(), kRunOfIt, gpu, {Way::kInflate, kHost}},
      {"deflated and conjugate", deflated(), by_host(kAll), gpu, {Way::kInflate, kHost}},
      // Bytes in memory.
      {"resident", resident(), kAll, host, {Way::kMemory, kHost}},
      {"resident and apart", resident(), kApart, host, {Way::kMemory, kHost}},
      {"resident, to a device", resident(), kAll, gpu, {Way::kMemory, kHost}},
      {"a small file", stored(), kAll, content, {Way::kMemory, kHost}},
      {"a small file, apart", stored(), kApart, content, {Way::kMemory, kHost}},
      {"a small file, deflated", deflated(), kAll, content, {Way::kInflate, kHost}},
      {"a small file, to a device", stored(), kAll, {.device = kGpu, .content = true}, {Way::kRun, kGpu}},
      {"another file than the small one", stored(1), kAll, content, {Way::kRun, kHost}},
      // Maps, which the executor refuses where they cannot be.
      {"mapped", stored(), kAll, map, {Way::kMap, kHost}},
      {"mapped and apart", stored(), kApart, map, {Way::kMap, kHost}},
      {"mapped, resident", resident(), kAll, map, {Way::kMap, kHost}},
      {"mapped, a small file", stored(), kAll, {.mmap = true, .content = true}, {Way::kMap, kHost}},
  };
  for (const Row& row : rows) {
    const ReadWay found = way_of(row.storage, row.wanted, row.aim);
    EXPECT_EQ(static_cast<int>(found.way), static_cast<int>(row.expected.way)) << row.what;
    EXPECT_EQ(found.device, row.expected.device) << row.what;
  }
}

TEST(ReadWay, EveryCombinationHasOneThatCanBe) {
  for (const StorageEntry& storage : {stored(), stored(1), deflated(), resident()}) {
    for (const Stretch& of : {kAll, kRunOfIt, kMostOfIt, kApart, kRepeated, kNone}) {
      for (int bits = 0; bits < 32; ++bits) {
        Stretch wanted = of;
        wanted.swapped = (bits & 1) != 0;
        wanted.by_host = (bits & 2) != 0;
        const Aim aim{.device = (bits & 4) != 0 ? kGpu : kHost, .mmap = (bits & 8) != 0, .content = (bits & 16) != 0};
        const auto [way, device] = way_of(storage, wanted, aim);
        const bool has_bytes = way != Way::kNothing;
        EXPECT_TRUE(device == kHost || device == aim.device);
        EXPECT_TRUE(device == kHost || !has_bytes || !wanted.by_host) << "elements are changed on the host";
        EXPECT_TRUE(way != Way::kRing || device == kGpu);
        EXPECT_TRUE(way != Way::kInflate || storage.is_deflated());
        EXPECT_TRUE(way != Way::kRing || storage.is_deflated() || wanted.swapped);
        EXPECT_TRUE((way != Way::kRun && way != Way::kParts) || storage.lies_in_file());
        EXPECT_TRUE(way != Way::kRun || wanted.span <= wanted.bytes);
        EXPECT_EQ(way == Way::kMemory, wanted.bytes > 0 && !aim.mmap && lies_in_memory(storage, aim));
      }
    }
  }
}

TEST(ReadWay, AStretchIsWhatTheViewSpans) {
  test::MadeArchive archive(test::source_of(""));
  const std::size_t s = archive.add_storage(0, 400);
  const TensorEntry& rows = archive.add_entry(s, DType::float32, {3, 5}, {10, 2}, 8);
  EXPECT_EQ(stretch_of(rows), (Stretch{.begin = 8, .span = 4 * (2 * 10 + 4 * 2 + 1), .bytes = 60}));
  TensorEntry& fortran = archive.add_entry(s, DType::complex64, {3, 5}, {1, 3});
  fortran.encoding.swapped = fortran.encoding.conjugate = true;
  EXPECT_EQ(stretch_of(fortran), (Stretch{.begin = 0, .span = 120, .bytes = 120, .swapped = true, .by_host = true}));
  EXPECT_FALSE(lies_as_values(fortran));
  EXPECT_TRUE(lies_as_values(archive.add_entry(s, DType::float32, {3, 5}, {5, 1}, 4)));
}

TEST(ReadWay, ARunBringsTheRecordButForAShortHeader) {
  const StorageEntry storage = [] {
    StorageEntry out = stored();
    out.nbytes = 100'000;
    return out;
  }();
  EXPECT_TRUE(brings_record(storage, {.begin = 0, .span = 100'000}, {}));
  EXPECT_TRUE(brings_record(storage, {.begin = 128, .span = 100'000 - 128}, {}));
  EXPECT_FALSE(brings_record(storage, {.begin = 0, .span = 99'999}, {})) << "the end is left out";
  EXPECT_FALSE(brings_record(storage, {.begin = 20'000, .span = 80'000}, {})) << "too much is left out in front";
}

}  // namespace
}  // namespace penstock::archive
