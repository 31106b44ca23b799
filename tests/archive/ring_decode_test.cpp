// What reaches a device inflated or byte-swapped on the way, against the same on the host.
#include "archive/ring_decode.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "archive/load_tensors.h"
#include "archive/made_archive.h"
#include "format/zip/inflate.h"
#include "io/copy/crc32.h"
#include "support/deflated.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::archive {
namespace {

using test::bytes_of;
using test::deflated;
using test::kMega;
using test::MadeArchive;
using test::source_of;

std::string pattern_text(std::size_t bytes) {
  const Tensor pattern = test::pattern(static_cast<std::int64_t>(bytes), unsigned(bytes));
  return test::text_of({pattern.data(), bytes});
}

/// Text that shrinks, but not to nothing.
std::string shrinking_text(std::size_t bytes) {
  std::string out = pattern_text(bytes);
  for (char& c : out) c = static_cast<char>('a' + (static_cast<unsigned char>(c) >> 4));
  return out;
}

std::int64_t count_of(std::size_t bytes, const DType& dtype) {
  return static_cast<std::int64_t>(bytes / dtype.itemsize());
}

class RingDecodeToDevice : public test::WithDevice {
 protected:
  std::vector<Tensor> load(MadeArchive& archive, Device where, std::size_t threads = 0) {
    report = {};
    return load_tensors(archive.sealed(), archive.entries(), {.device = where, .threads = threads}, report);
  }

  void expect_as_on_the_host(MadeArchive& archive, const std::string& what, std::size_t threads = 0) {
    const auto host = load(archive, {});
    const std::uint64_t payload = report.payload_bytes;
    const auto there = load(archive, device, threads);
    EXPECT_EQ(report.route, "ring") << what;
    EXPECT_EQ(report.payload_bytes, payload) << what;
    ASSERT_EQ(there.size(), host.size());
    for (std::size_t i = 0; i < host.size(); ++i) {
      EXPECT_EQ(there[i].device(), device) << what;
      EXPECT_EQ(there[i].strides(), host[i].strides()) << what;
      EXPECT_TRUE(Tensor::identical(there[i], host[i])) << what << ", tensor " << i;
    }
  }

  Report report;
};

TEST_F(RingDecodeToDevice, SwapsUnitsOfEveryWidthWhereverTheyBegin) {
  const std::string bytes = pattern_text(9 * kMega + 77);
  const auto source = source_of(bytes);
  for (const DType& dtype : {DType(DType::int16), DType(DType::float32), DType(DType::float64), DType(DType::complex64),
                             DType(DType::complex128)}) {
    for (const std::size_t size : {std::size_t{64}, 2 * kMega, 2 * kMega + 48, 8 * kMega + 32, 9 * kMega}) {
      for (const std::size_t phase : {0U, 1U, 5U}) {
        MadeArchive archive(source);
        archive.add_entry(archive.add_storage(3, size + phase + 1), dtype, {count_of(size, dtype)}, {1}, phase)
            .encoding.swapped = true;
        expect_as_on_the_host(
            archive, std::string(dtype.name()) + " of " + std::to_string(size) + " at " + std::to_string(phase));
      }
    }
  }
}

TEST_F(RingDecodeToDevice, InflatesSmallAndLargeMembers) {
  std::string file = "front";
  const auto add = [&](std::size_t bytes) {
    const std::string text = shrinking_text(bytes);
    const std::string stored = deflated(text);
    file += stored;
    StorageEntry entry{.name = "m" + std::to_string(bytes), .offset = file.size() - stored.size()};
    entry.stored_bytes = stored.size();
    entry.nbytes = bytes;
    entry.compression = Compression::kDeflate;
    entry.crc32 = io::crc32(0, bytes_of(text));
    return entry;
  };
  std::vector<StorageEntry> storages;
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{30'000}, 2 * kMega, 2 * kMega + 16, 5 * kMega}) {
    storages.push_back(add(bytes));
  }
  for (const bool swapped : {false, true}) {
    MadeArchive archive(source_of(file));
    for (const StorageEntry& storage : storages) {
      const std::size_t s = archive.add_storage(storage.offset, storage.nbytes);
      archive.storage(s) = storage;
      archive.add_entry(s, DType::int32, {count_of(storage.nbytes, DType::int32)}, {1}).encoding.swapped = swapped;
    }
    archive.add_entry(2, DType::int32, {2, 3}, {1, 2}, 8).encoding.swapped = swapped;  // a view that shares
    for (const std::size_t threads : {1U, 3U}) expect_as_on_the_host(archive, swapped ? "swapped" : "", threads);
    const auto there = load(archive, device);
    EXPECT_TRUE(there[2].buffer().shares_memory_with(there.back().buffer()));
  }
}

TEST_F(RingDecodeToDevice, StoredAndDecodedOnesOfOneFile) {
  const std::string bytes = pattern_text(kMega);
  MadeArchive archive(source_of(bytes));
  const std::size_t plain = archive.add_storage(0, 1000);
  const std::size_t other = archive.add_storage(1000, 4000);
  const std::size_t mixed = archive.add_storage(8000, 4000);
  archive.add_entry(plain, DType::float32, {10, 10}, {10, 1});
  archive.add_entry(other, DType::float32, {1000}, {1}).encoding.swapped = true;
  archive.add_entry(mixed, DType::float32, {100}, {1});
  archive.add_entry(mixed, DType::float32, {100}, {1}, 800).encoding.swapped = true;
  archive.add_entry(mixed, DType::complex64, {100}, {1}, 1600).encoding.conjugate = true;
  expect_as_on_the_host(archive, "mixed");
}

TEST_F(RingDecodeToDevice, ErrorsAreThoseOfTheHost) {
  const std::string text = shrinking_text(5 * kMega);
  const std::string good = deflated(text);
  const auto compare = [&](const std::string& file, std::uint64_t stored, std::uint64_t listed, std::uint32_t crc) {
    MadeArchive archive(source_of(file, "x.npz"));
    const std::size_t s = archive.add_storage(0, listed);
    archive.storage(s).stored_bytes = stored;
    archive.storage(s).compression = Compression::kDeflate;
    archive.storage(s).crc32 = crc;
    archive.add_entry(s, DType::uint8, {static_cast<std::int64_t>(listed)}, {1});
    const auto host = test::error_of([&] { load(archive, {}); });
    const auto there = test::error_of([&] { load(archive, device); });
    ASSERT_TRUE(host && there);
    EXPECT_EQ(there->code(), host->code()) << there->message();
    EXPECT_EQ(there->message(), host->message());
    EXPECT_EQ(there->path(), "x.npz");
    EXPECT_EQ(there->tensor(), host->tensor());
  };
  const std::uint32_t crc = io::crc32(0, bytes_of(text));
  compare(good, good.size(), text.size(), crc + 1);
  compare(good, good.size(), text.size() - 1, crc);
  compare(good, good.size(), text.size() + 1, crc);
  compare(good + "z", good.size() + 1, text.size(), crc);
  std::string damaged = good;
  damaged[good.size() / 2] = static_cast<char>(~damaged[good.size() / 2]);
  MadeArchive archive(source_of(damaged));
  archive.storage(archive.add_storage(0, text.size())).stored_bytes = good.size();
  archive.storage(0).compression = Compression::kDeflate;
  archive.storage(0).crc32 = crc;
  archive.add_entry(0, DType::uint8, {static_cast<std::int64_t>(text.size())}, {1});
  const auto code = test::code_of([&] { load(archive, device); });
  EXPECT_TRUE(code == ErrorCode::kCorrupt || code == ErrorCode::kChecksum);
  EXPECT_EQ(memory_stats(device).in_use_bytes, 0U);
}

TEST_F(RingDecodeToDevice, CanBeStopped) {
  const std::string bytes = pattern_text(kMega);
  MadeArchive archive(source_of(bytes));
  archive.add_entry(archive.add_storage(0, kMega), DType::int32, {count_of(kMega, DType::int32)}, {1})
      .encoding.swapped = true;
  std::stop_source stop;
  stop.request_stop();
  const auto code = test::code_of(
      [&] { load_tensors(archive.sealed(), archive.entries(), {.device = device, .stop = stop.get_token()}, report); });
  EXPECT_EQ(code, ErrorCode::kCancelled);
}

TEST_F(RingDecodeToDevice, SingleTensorsAndSlices) {
  const std::string bytes = pattern_text(kMega);
  MadeArchive archive(source_of(bytes));
  const std::size_t s = archive.add_storage(0, 4000);
  archive.add_entry(s, DType::float32, {10, 100}, {100, 1}).encoding.swapped = true;
  archive.add_entry(s, DType::float32, {2, 100}, {100, 1}, 800).encoding.swapped = true;
  archive.add_entry(s, DType::float32, {10}, {100}).encoding.swapped = true;
  for (std::size_t i = 0; i < archive.entries().size(); ++i) {
    report = {};
    const Tensor host = load_view(archive.sealed(), archive.entries()[i], {}, report);
    report = {};
    const Tensor there = load_view(archive.sealed(), archive.entries()[i], {.device = device}, report);
    EXPECT_EQ(there.device(), device);
    EXPECT_EQ(report.route == "ring", i == 0) << report.route;
    EXPECT_TRUE(Tensor::identical(there, host)) << i;
  }
}

}  // namespace
}  // namespace penstock::archive
