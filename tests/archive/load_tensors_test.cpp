#include "archive/load_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "archive/made_archive.h"
#include "io/copy/crc32.h"
#include "support/deflated.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock::archive {
namespace {

using test::code_of;
using test::CountingSource;
using test::deflated;
using test::error_of;
using test::expected;
using test::MadeArchive;
using test::numbered_bytes;
using test::source_of;
using test::text_of;
using testing::HasSubstr;

std::vector<Tensor> load(MadeArchive& archive, LoadOptions options = {}) {
  Report report;
  return load_tensors(archive.sealed(), archive.entries(), options, report);
}

/// The elements with the bytes of each unit reversed.
Tensor swapped(const Tensor& tensor) {
  const Tensor out = tensor.clone();
  const std::size_t width = tensor.dtype().swap_width();
  for (std::byte* at = out.data(); at != out.data() + out.nbytes(); at += width) std::reverse(at, at + width);
  return out;
}

const std::string kBytes = text_of(numbered_bytes(4096));

TEST(LoadTensors, EachStorageIsReadOnceAndStaysShared) {
  const auto source = std::make_shared<CountingSource>(kBytes);
  MadeArchive archive(source);
  const std::size_t s = archive.add_storage(64, 400);
  archive.add_entry(s, DType::float32, {10, 10}, {10, 1});
  archive.add_entry(s, DType::float32, {10}, {10}, 4);
  archive.add_entry(s, DType::int32, {100}, {1});
  archive.add_storage(1000, 2000);  // no tensor lies in it
  const auto tensors = load(archive);
  EXPECT_EQ(source->bytes_read, 400U);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(Tensor::identical(tensors[i], expected(kBytes, archive.storage(s), archive.entries()[i]))) << i;
    EXPECT_EQ(tensors[i].strides(), archive.entries()[i].strides);
  }
  EXPECT_EQ(tensors[1].data(), tensors[0].data() + 4);
  EXPECT_EQ(tensors[2].data(), tensors[0].data());
  EXPECT_EQ(tensors[0].buffer().size(), 400U) << "the buffer is the storage, not the block";
}

TEST(LoadTensors, NeighboursAreReadTogether) {
  MadeArchive archive(source_of(kBytes));
  for (std::uint64_t i = 0; i < 20; ++i) {
    archive.add_entry(archive.add_storage(100 + 70 * i, 60), DType::uint8, {60}, {1});
  }
  Report report;
  const auto tensors = load_tensors(archive.sealed(), archive.entries(), {.report = &report}, report);
  EXPECT_EQ(report.payload_bytes, 1200U);
  EXPECT_EQ(report.read_bytes, 19 * 70 + 60U) << "the gaps of ten bytes are not worth skipping";
  EXPECT_THAT(report.why, HasSubstr("1 range "));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(Tensor::identical(tensors[i], expected(kBytes, archive.storage(i), archive.entries()[i])));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensors[i].data()) % 64, 0U);
    EXPECT_TRUE(tensors[i].buffer().shares_memory_with(tensors[0].buffer())) << "one block";
  }
}

TEST(LoadTensors, EmptyTensorsNeedNoBytes) {
  const auto source = std::make_shared<CountingSource>(kBytes);
  MadeArchive archive(source);
  archive.add_entry(archive.add_storage(10, 0), DType::float32, {0, 3}, {3, 1});
  archive.add_entry(archive.add_storage(10, 100), DType::float32, {2, 0}, {1, 1});
  const auto tensors = load(archive);
  EXPECT_EQ(tensors[0].shape(), (Shape{0, 3}));
  EXPECT_EQ(tensors[1].shape(), (Shape{2, 0}));
  EXPECT_EQ(source->bytes_read, 0U);
  MadeArchive nothing(source);
  EXPECT_TRUE(load(nothing).empty());
}

TEST(LoadTensors, OtherByteOrdersAreSwappedOnceThoughShared) {
  MadeArchive archive(source_of(kBytes));
  const std::size_t s = archive.add_storage(128, 402);
  archive.add_entry(s, DType::int32, {100}, {1}, 2).encoding.swapped = true;
  archive.add_entry(s, DType::float32, {5, 5}, {10, 2}, 42).encoding.swapped = true;
  archive.add_entry(archive.add_storage(600, 32), DType::complex64, {4}, {1}).encoding.swapped = true;
  archive.add_entry(archive.add_storage(700, 32), DType::uint8, {32}, {1}).encoding.swapped = true;
  const auto tensors = load(archive);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorEntry& entry = archive.entries()[i];
    EXPECT_TRUE(Tensor::identical(tensors[i], swapped(expected(kBytes, archive.storage(entry.storage), entry)))) << i;
  }
}

TEST(LoadTensors, DifferentWishesForTheSameBytesGetCopies) {
  MadeArchive archive(source_of(kBytes));
  const std::size_t s = archive.add_storage(128, 160);
  archive.add_entry(s, DType::int32, {40}, {1}).encoding.swapped = true;
  archive.add_entry(s, DType::int64, {20}, {1}).encoding.swapped = true;
  archive.add_entry(s, DType::int32, {40}, {1}).encoding.swapped = false;
  archive.add_entry(s, DType::int16, {3, 2}, {0, 1}).encoding.swapped = true;
  const auto tensors = load(archive);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorEntry& entry = archive.entries()[i];
    const Tensor raw = expected(kBytes, archive.storage(s), entry);
    EXPECT_TRUE(Tensor::identical(tensors[i], entry.encoding.swapped ? swapped(raw) : raw)) << i;
  }
  EXPECT_EQ(tensors[3].strides(), (Strides{0, 1})) << "repeated elements stay repeated";
}

TEST(LoadTensors, ElementsAreAlignedWhateverTheFileDoes) {
  MadeArchive archive(source_of(kBytes));
  archive.add_entry(archive.add_storage(13, 80), DType::float64, {10}, {1});
  archive.add_entry(archive.add_storage(101, 81), DType::float64, {5, 2}, {1, 5}, 1);
  const auto tensors = load(archive);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensors[i].data()) % 8, 0U);
    EXPECT_TRUE(Tensor::identical(tensors[i], expected(kBytes, archive.storage(i), archive.entries()[i])));
  }
}

TEST(LoadTensors, ConjugatesAndNegatesAreApplied) {
  const std::vector<std::complex<float>> values = {{1, 2}, {-3, 4}, {0, -1}};
  std::string bytes(sizeof values[0] * values.size(), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  MadeArchive archive(source_of(bytes));
  const std::size_t s = archive.add_storage(0, bytes.size());
  archive.add_entry(s, DType::complex64, {3}, {1});
  archive.add_entry(s, DType::complex64, {3}, {1}).encoding.conjugate = true;
  archive.add_entry(s, DType::complex64, {3}, {1}).encoding.negative = true;
  TensorEntry& both = archive.add_entry(s, DType::complex64, {3, 2}, {1, 0});
  both.encoding.conjugate = both.encoding.negative = true;
  const auto check = [&](const std::vector<Tensor>& tensors) {
    for (std::size_t i = 0; i < 3; ++i) {
      const auto at = [&](std::size_t t) { return reinterpret_cast<const std::complex<float>*>(tensors[t].data())[i]; };
      EXPECT_EQ(at(0), values[i]);
      EXPECT_EQ(at(1), std::conj(values[i]));
      EXPECT_EQ(at(2), -values[i]);
      EXPECT_EQ(at(3), -std::conj(values[i]));
    }
    EXPECT_EQ(tensors[3].strides(), (Strides{1, 0}));
  };
  check(load(archive));
  std::vector<Tensor> one_by_one;
  for (const TensorEntry& entry : archive.entries()) {
    Report report;
    one_by_one.push_back(load_view(archive.sealed(), entry, {}, report));
  }
  check(one_by_one);
}

TEST(LoadTensors, RepeatedElementsStayRepeated) {
  MadeArchive archive(source_of(kBytes));
  archive.add_entry(archive.add_storage(16, 8), DType::int64, {1'000'000'000, 1'000'000}, {0, 0});
  EXPECT_EQ(load(archive)[0].buffer().size(), 8U);
}

TEST(LoadTensors, OverlapsThatWouldGrowWithoutBoundAreRefused) {
  MadeArchive archive(source_of(kBytes));
  archive.add_entry(archive.add_storage(0, 4096), DType::int16, {512, 512, 512, 8}, {1, 1, 1, 1}).encoding.swapped =
      true;
  archive.add_entry(0, DType::int16, {4}, {1});
  EXPECT_EQ(code_of([&] { load(archive); }), ErrorCode::kLimit);
}

/// Its only storage has the bytes of a tensor, in memory.
struct ResidentArchive : MadeArchive {
  explicit ResidentArchive(const Tensor& memory) : MadeArchive(source_of("")) {
    add_storage(0, memory.nbytes());
    storage(0).resident = memory.buffer();
  }
};

TEST(LoadTensors, ResidentStoragesAreCopied) {
  const Tensor memory = test::numbered_tensor({40}, DType::uint8);
  ResidentArchive archive(memory);
  archive.add_entry(0, DType::int32, {10}, {1});
  archive.add_entry(0, DType::int32, {10}, {1}).encoding.swapped = true;
  const std::string before = text_of({memory.data(), 40});
  const auto tensors = load(archive);
  EXPECT_EQ(text_of({tensors[0].data(), 40}), before);
  EXPECT_TRUE(Tensor::identical(tensors[1], swapped(tensors[0])));
  for (const Tensor& tensor : tensors) std::memset(tensor.data(), 0xff, tensor.nbytes());
  EXPECT_EQ(text_of({memory.data(), 40}), before) << "what the next load is to get";
  Report report;
  const Tensor mapped = load_view(archive.sealed(), archive.entries()[0], {.mmap = true}, report);
  EXPECT_EQ(mapped.data(), memory.data());
  EXPECT_TRUE(mapped.read_only());
}

TEST(LoadTensors, ResidentStoragesOfTheOtherByteOrderAreSwapped) {
  const Tensor memory = test::numbered_tensor({40}, DType::uint8);
  ResidentArchive archive(memory);
  archive.add_entry(0, DType::int32, {10}, {1}).encoding.swapped = true;
  archive.add_entry(0, DType::float32, {5}, {2}, 4).encoding.swapped = true;
  for (int i = 0; i < 2; ++i) {
    const auto tensors = load(archive);
    EXPECT_TRUE(tensors[0].buffer().shares_memory_with(tensors[1].buffer()));
    EXPECT_TRUE(Tensor::identical(tensors[0], swapped(Tensor(memory.buffer(), DType::int32, {10}))));
    EXPECT_TRUE(Tensor::identical(tensors[1], swapped(Tensor(memory.buffer(), DType::float32, {5}, {2}, 4))));
  }
}

/// Three deflated storages behind one another, with their CRCs, of int32.
class Deflated : public testing::Test {
 protected:
  Deflated() {
    std::string file = "head";
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
    for (std::uint64_t i = 0; i < 3; ++i) {
      content.push_back(std::string(1000, static_cast<char>('a' + i)) + text_of(numbered_bytes(1000, i)));
      places.emplace_back(file.size(), deflated(content[i]).size());
      file += deflated(content[i]);
    }
    source = std::make_shared<CountingSource>(file);
    archive = std::make_unique<MadeArchive>(source);
    for (std::size_t i = 0; i < 3; ++i) {
      StorageEntry& storage = archive->storage(archive->add_storage(places[i].first, 2000));
      storage.stored_bytes = places[i].second;
      storage.compression = Compression::kDeflate;
      storage.crc32 = io::crc32(0, test::bytes_of(content[i]));
      archive->add_entry(i, DType::int32, {20, 25}, {25, 1});
    }
  }
  Tensor content_of(std::size_t i) const {
    StorageEntry all;
    all.nbytes = 2000;
    return expected(content[i], all, archive->entries()[i]);
  }

  std::vector<std::string> content;
  std::shared_ptr<CountingSource> source;
  std::unique_ptr<MadeArchive> archive;
};

TEST_F(Deflated, IsInflatedIntoPlace) {
  const auto tensors = load(*archive);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(Tensor::identical(tensors[i], content_of(i)));
  EXPECT_TRUE(tensors[0].buffer().shares_memory_with(tensors[2].buffer()));
}

TEST_F(Deflated, IsSwappedToo) {
  archive->state.index.entries[1].encoding.swapped = true;
  const auto tensors = load(*archive);
  EXPECT_TRUE(Tensor::identical(tensors[0], content_of(0)));
  EXPECT_TRUE(Tensor::identical(tensors[1], swapped(content_of(1))));
}

TEST_F(Deflated, ASliceInflatesItsMemberAloneAndKeepsLittle) {
  TensorEntry slice = archive->entries()[1];
  slice.shape[0] = 2;
  slice.byte_offset = 300;
  Report report;
  const Tensor tensor = load_view(archive->sealed(), slice, {}, report);
  EXPECT_TRUE(Tensor::identical(tensor, content_of(1).slice(0, 3, 5)));
  EXPECT_EQ(source->bytes_read, archive->storage(1).stored_bytes);
  EXPECT_EQ(tensor.buffer().size(), 200U);
}

TEST_F(Deflated, ASliceWithoutHolesKeepsItsStridesAndOthersBecomeContiguous) {
  TensorEntry slice = archive->entries()[1];
  slice.shape = {5, 4};
  slice.strides = {1, 5};
  Report report;
  const Tensor dense = load_view(archive->sealed(), slice, {}, report);
  EXPECT_EQ(dense.strides(), (Strides{1, 5}));
  EXPECT_EQ(dense.buffer().size(), 80U);
  slice.shape = {5, 50};
  slice.strides = {100, 2};
  const Tensor holes = load_view(archive->sealed(), slice, {}, report);
  EXPECT_EQ(holes.strides(), (Strides{50, 1}));
  EXPECT_EQ(holes.buffer().size(), 1000U);
  const Tensor all = content_of(1);
  const Buffer whole = all.buffer();
  EXPECT_TRUE(Tensor::identical(dense, Tensor(whole, DType::int32, {5, 4}, {1, 5}, all.byte_offset())));
  EXPECT_TRUE(Tensor::identical(holes, Tensor(whole, DType::int32, {5, 50}, {100, 2}, all.byte_offset())));
}

TEST_F(Deflated, WrongChecksumsAreFoundUnlessTheyAreNotLookedAt) {
  *archive->storage(2).crc32 ^= 1;
  const auto error = error_of([&] { load(*archive); });
  EXPECT_EQ(error->code(), ErrorCode::kChecksum);
  EXPECT_EQ(error->tensor(), "s2");
  EXPECT_EQ(load(*archive, {.verify = false}).size(), 3U);
  archive->state.verify_checksums = false;
  EXPECT_EQ(load(*archive).size(), 3U);
}

TEST_F(Deflated, CannotBeMapped) {
  EXPECT_EQ(code_of([&] { load(*archive, {.mmap = true}); }), ErrorCode::kUnsupported);
}

TEST_F(Deflated, DamagedStreamsAreErrors) {
  archive->storage(1).stored_bytes -= 1;
  EXPECT_EQ(code_of([&] { load(*archive); }), ErrorCode::kCorrupt);
}

TEST(LoadTensors, ChecksumsOfStoredBytes) {
  MadeArchive archive(source_of(kBytes));
  const std::size_t s = archive.add_storage(100, 1000);
  archive.add_entry(s, DType::uint8, {1000}, {1});
  archive.add_entry(s, DType::uint8, {10}, {1});
  archive.storage(s).crc32 = io::crc32(0, test::bytes_of(std::string_view(kBytes).substr(100, 1000)));
  load(archive);
  Report report;
  load_view(archive.sealed(), archive.entries()[0], {}, report);
  *archive.storage(s).crc32 ^= 0x100;
  EXPECT_EQ(code_of([&] { load(archive); }), ErrorCode::kChecksum);
  EXPECT_EQ(code_of([&] { load_view(archive.sealed(), archive.entries()[0], {}, report); }), ErrorCode::kChecksum);
  EXPECT_EQ(load(archive, {.verify = false}).size(), 2U);
  const TensorEntry& part = archive.entries()[1];
  EXPECT_EQ(code_of([&] { load_view(archive.sealed(), part, {}, report); }), ErrorCode::kChecksum);
  EXPECT_EQ(load_view(archive.sealed(), part, {.verify = false}, report).numel(), 10);
  EXPECT_EQ(load_view(archive.sealed(), part, {}, report, Extent::kSlice).numel(), 10) << "a slice has no checksum";
}

TEST(LoadTensors, ObjectArraysAreNeverLoaded) {
  MadeArchive archive(source_of(kBytes));
  archive.add_entry(archive.add_storage(0, 100), DType::uint8, {100}, {1});
  archive.add_entry(0, DType::uint8, {1}, {1}).pickled = true;
  Report report;
  EXPECT_EQ(code_of([&] { load(archive); }), ErrorCode::kUnsafe);
  EXPECT_EQ(code_of([&] { load(archive, {.mmap = true}); }), ErrorCode::kUnsafe);
  EXPECT_EQ(code_of([&] { load_view(archive.sealed(), archive.entries()[1], {}, report); }), ErrorCode::kUnsafe);
  EXPECT_EQ(load_view(archive.sealed(), archive.entries()[0], {}, report).numel(), 100);
}

TEST(LoadTensors, OtherDevicesMustBeThere) {
  MadeArchive archive(source_of(kBytes));
  archive.add_entry(archive.add_storage(0, 100), DType::uint8, {100}, {1});
  EXPECT_EQ(code_of([&] { load(archive, {.device = "cuda:93"}); }), ErrorCode::kNoDevice);
}

TEST(LoadTensors, StopsWhenAsked) {
  MadeArchive archive(source_of(kBytes));
  archive.add_entry(archive.add_storage(0, 100), DType::uint8, {100}, {1});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(code_of([&] { load(archive, {.stop = stop.get_token()}); }), ErrorCode::kCancelled);
}

TEST(LoadTensors, RequiresGradTravels) {
  MadeArchive archive(source_of(kBytes));
  archive.add_entry(archive.add_storage(0, 8), DType::float32, {2}, {1}).requires_grad = true;
  archive.add_entry(0, DType::float32, {0}, {1}).requires_grad = true;
  for (const Tensor& tensor : load(archive)) EXPECT_TRUE(tensor.requires_grad());
  Report report;
  EXPECT_TRUE(load_view(archive.sealed(), archive.entries()[0], {}, report).requires_grad());
}

}  // namespace
}  // namespace penstock::archive
