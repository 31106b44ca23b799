#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "archive/load_tensors.h"
#include "archive/made_archive.h"
#include "format/rows.h"
#include "io/source/opened_file.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using test::code_of;
using test::CountingSource;
using test::dict_of;
using test::error_of;
using test::numbered_tensor;
using test::TemporaryFolder;
using testing::AnyOf;
using testing::HasSubstr;

std::string safetensors_of(const Value& value) {
  test::StringSink sink;
  format::kSafetensorsFormat.write(value, sink, {}, "");
  return sink.text;
}

std::string npy_of(const Tensor& tensor) {
  test::StringSink sink;
  format::kNpyFormat.write(Value::tensor(tensor), sink, {}, "");
  return sink.text;
}

class ArchiveTest : public testing::Test {
 protected:
  const Tensor a = numbered_tensor({640, 100}, DType::float32, 1);
  const Tensor b = numbered_tensor({30}, DType::int64, 2);
  const Value value = dict_of({{"encoder.weight", a}, {"encoder.bias", b}});
  TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";

  ArchiveTest() { test::write_file(path, safetensors_of(value)); }
};

TEST_F(ArchiveTest, ListsWithoutReadingPayload) {
  const auto source = std::make_shared<CountingSource>(safetensors_of(value));
  const Archive archive = open(source);
  EXPECT_EQ(archive.format(), "safetensors");
  ASSERT_EQ(archive.entries().size(), 2U);
  EXPECT_EQ(archive.storages().size(), 2U);
  EXPECT_EQ(archive.sources().size(), 1U);
  EXPECT_EQ(archive.path(), "<counting>");
  EXPECT_LE(source->bytes_read, io::OpenedFile::kHead);
  EXPECT_EQ(archive["encoder.bias"].nbytes(), 240U);
}

TEST_F(ArchiveTest, FindsTensorsByName) {
  const Archive archive = open(path);
  EXPECT_TRUE(archive.contains("encoder.weight"));
  EXPECT_FALSE(archive.contains("encoder"));
  EXPECT_EQ(archive["encoder.weight"].shape(), a.shape());
  const auto error = error_of([&] { archive["encoder.weigth"]; });
  EXPECT_EQ(error->code(), ErrorCode::kKeyNotFound);
  EXPECT_EQ(error->path(), path);
  EXPECT_THAT(error->message(), HasSubstr("did you mean 'encoder.weight'"));
  EXPECT_EQ(code_of([&] { archive.entry(2); }), ErrorCode::kIndexOutOfRange);
}

TEST_F(ArchiveTest, NpzKeysHaveTwoForms) {
  test::StringSink sink;
  format::kNpzFormat.write(dict_of({{"a", a}}), sink, {}, "");
  const Archive archive = open(test::source_of(sink.text));
  EXPECT_TRUE(archive.contains("a"));
  EXPECT_TRUE(archive.contains("a.npy"));
  EXPECT_FALSE(archive.contains("a.npy.npy"));
  EXPECT_TRUE(Tensor::identical(archive["a.npy"].load(), a));
  EXPECT_FALSE(open(path).contains("encoder.bias.npy"));
}

TEST_F(ArchiveTest, NamesThatTwoTensorsHaveAreNotGuessed) {
  // Nested names are joined, so that two ways can lead to one name; positions tell them apart.
  const Archive archive = open(path);
  detail::ArchiveState state;
  state.format = &format::kSafetensorsFormat;
  state.index.entries.assign(archive.entries().begin(), archive.entries().end());
  state.index.entries[1].name = state.index.entries[0].name;
  EXPECT_EQ(state.find(state.index.entries[0].name).count, 2U);
  EXPECT_EQ(state.find(state.index.entries[0].name).first, 0U);
}

TEST_F(ArchiveTest, LoadsEverything) {
  Report report;
  const Value loaded = open(path).load({.report = &report});
  EXPECT_TRUE(Tensor::identical(loaded["encoder.weight"].as_tensor(), a));
  EXPECT_TRUE(Tensor::identical(loaded["encoder.bias"].as_tensor(), b));
  EXPECT_EQ(report.route, "read");
  EXPECT_EQ(report.payload_bytes, a.nbytes() + b.nbytes());
  EXPECT_EQ(report.read_bytes, a.nbytes() + b.nbytes());
  EXPECT_GT(report.total_seconds, 0);
  EXPECT_GT(report.open_seconds, 0);
  EXPECT_FALSE(report.why.empty());
}

/// Where the file system offers no direct reads, the report gives the reason.
void expect_route(const Report& report, bool direct) {
  EXPECT_EQ(report.route, direct && report.why.find("because") == std::string::npos ? "direct" : "read") << report.why;
}

TEST_F(ArchiveTest, PastThePageCacheOrThroughItAsAsked) {
  for (const bool direct : {true, false}) {
    Report report;
    const LoadOptions options = {.direct = direct, .report = &report};
    const Value loaded = open(path).load(options);
    EXPECT_TRUE(Tensor::identical(loaded["encoder.weight"].as_tensor(), a));
    expect_route(report, direct);
    EXPECT_TRUE(Tensor::identical(open(path)["encoder.weight"].load(options), a));
    expect_route(report, direct);
    EXPECT_TRUE(Tensor::identical(open(path)["encoder.weight"].slice(0, 3, 60).load(options), a.slice(0, 3, 60)));
    expect_route(report, direct);
    const Tensor into = Tensor::zeros(a.shape(), a.dtype());
    const Placement placement{1, into};  // by name, so that the bias comes first
    open(path).load_into({&placement, 1}, options);
    EXPECT_TRUE(Tensor::identical(into, a));
    expect_route(report, direct);
  }
}

TEST_F(ArchiveTest, ASliceInPartsGoesThroughThePageCacheAndSaysSo) {
  Report report;
  const Tensor column = open(path)["encoder.weight"].slice(1, 3, 4).load({.direct = true, .report = &report});
  EXPECT_TRUE(Tensor::identical(column, a.slice(1, 3, 4).contiguous()));
  EXPECT_EQ(report.route, "read");
  EXPECT_THAT(report.why, HasSubstr("in parts"));
}

TEST_F(ArchiveTest, OutlivesEveryHandle) {
  Tensor tensor;
  {
    const LazyTensor lazy = open(path)["encoder.bias"];
    fs::remove(path);
    tensor = lazy.load();
  }
  EXPECT_TRUE(Tensor::identical(tensor, b));
}

TEST_F(ArchiveTest, SlicesReadNoMoreThanTheyNeed) {
  const auto source = std::make_shared<CountingSource>(safetensors_of(value));
  const LazyTensor lazy = open(source)["encoder.weight"];
  const auto bytes_for = [&](const LazyTensor& slice, const Tensor& wanted) {
    source->bytes_read = 0;
    EXPECT_TRUE(Tensor::identical(slice.load(), wanted));
    return std::uint64_t{source->bytes_read};
  };
  EXPECT_EQ(bytes_for(lazy, a), a.nbytes());
  EXPECT_EQ(bytes_for(lazy.slice(0, 3, 5), a.slice(0, 3, 5)), 800U);
  EXPECT_EQ(bytes_for(lazy.select(0, -1), a[-1]), 400U);
  EXPECT_EQ(bytes_for(lazy.select(0, 5).slice(0, 10, 20), a[5].slice(0, 10, 20)), 40U);
  EXPECT_EQ(bytes_for(lazy.select(0, 5).select(0, 7), a[5][7]), 4U);
  EXPECT_EQ(bytes_for(lazy.slice(0, 9, 3), a.slice(0, 9, 3)), 0U);
  // Gaps of up to 16 KiB cost less than skipping them.
  EXPECT_LE(bytes_for(lazy.slice(1, 0, 10), a.slice(1, 0, 10)), a.nbytes());
  EXPECT_EQ(lazy.slice(0, 3, 5).nbytes(), 800U);
}

TEST_F(ArchiveTest, SlicesOfHugeRowsSkipTheRest) {
  const Tensor wide = numbered_tensor({20, 30'000}, DType::float32);
  const auto source = std::make_shared<CountingSource>(npy_of(wide));
  const LazyTensor lazy = open(source).entry(0);
  source->bytes_read = 0;
  EXPECT_TRUE(Tensor::identical(lazy.slice(1, 100, 200).load(), wide.slice(1, 100, 200)));
  EXPECT_EQ(source->bytes_read, 20 * 400U);
  source->bytes_read = 0;
  EXPECT_TRUE(Tensor::identical(lazy.select(1, 5).load(), wide.select(1, 5)));
  EXPECT_EQ(source->bytes_read, 20 * 4U);
}

/// Applies the same random narrowing to a lazy and to a loaded tensor.
void narrow(std::mt19937& random, LazyTensor& lazy, Tensor& tensor) {
  const int steps = static_cast<int>(random() % 4);
  for (int i = 0; i < steps && tensor.rank() > 0; ++i) {
    const std::size_t dim = random() % tensor.rank();
    const std::int64_t size = tensor.shape()[dim];
    const auto any = [&] {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(2 * size + 5)) - size - 2;
    };
    if (random() % 3 == 0 && size > 0) {
      const std::int64_t index = static_cast<std::int64_t>(random() % static_cast<unsigned>(2 * size)) - size;
      lazy = lazy.select(dim, index);
      tensor = tensor.select(dim, index);
    } else {
      const std::int64_t start = any();
      const std::int64_t stop = any();
      const auto step = 1 + static_cast<std::int64_t>(random() % 3);
      lazy = lazy.slice(dim, start, stop, step);
      tensor = tensor.slice(dim, start, stop, step);
    }
  }
}

TEST(LazyTensorSlices, AreThoseOfTheLoadedTensor) {
  std::mt19937 random(11);
  const std::vector<DType> dtypes = {DType::uint8,   DType::bfloat16,   DType::float32,
                                     DType::float64, DType::complex128, DType::boolean};
  for (int round = 0; round < 400; ++round) {
    const Tensor tensor = numbered_tensor(test::random_shape(random, 0, 4, 9), dtypes[random() % dtypes.size()]);
    const bool fortran = random() % 2 == 0 && tensor.rank() == 2;
    const Tensor saved = fortran ? tensor.transpose(0, 1).contiguous().transpose(0, 1) : tensor;
    const bool npy = saved.dtype() == DType::complex128 || (saved.dtype() != DType::bfloat16 && random() % 2 == 0);
    const std::string file = npy ? npy_of(saved) : safetensors_of(Value::tensor(saved));
    const Archive archive = open(test::source_of(file));
    LazyTensor lazy = archive.entry(0);
    Tensor wanted = tensor;
    narrow(random, lazy, wanted);
    ASSERT_EQ(lazy.shape(), wanted.shape());
    const Tensor loaded = lazy.load();
    ASSERT_TRUE(Tensor::identical(loaded, wanted))
        << tensor.to_string() << " to " << wanted.to_string() << (fortran ? " fortran" : "");
    ASSERT_TRUE(Tensor::identical(lazy.load({.mmap = true}), wanted));
  }
}

TEST(LazyTensorSlices, OfAnyLayout) {
  std::mt19937 random(12);
  const std::string bytes = test::text_of(test::numbered_bytes(100'000));
  for (int round = 0; round < 300; ++round) {
    Shape shape = test::random_shape(random, 1, 4, 6);
    Strides strides;
    for (std::size_t d = 0; d < shape.rank(); ++d) strides.push_back(static_cast<std::int64_t>(random() % 50));
    test::MadeArchive made(test::source_of(bytes));
    const std::size_t storage = made.add_storage(random() % 1000, 20'000);
    TensorEntry& entry = made.add_entry(storage, DType::int32, shape, strides, 4 * (random() % 100));
    entry.encoding.swapped = random() % 3 == 0;
    Report report;
    const Tensor loaded = archive::load_tensors(made.sealed(), std::span(&entry, 1), {}, report).front();
    const Tensor alone = archive::load_view(made.sealed(), entry, {}, report);
    ASSERT_TRUE(Tensor::identical(alone, loaded)) << shape << " " << strides;
  }
}

TEST(LazyTensorSlices, KeepFortranOrderWhereTheyAreWhole) {
  const Tensor fortran = numbered_tensor({5, 7}, DType::float32).transpose(0, 1);
  const Archive archive = open(test::source_of(npy_of(fortran)));
  EXPECT_EQ(archive.entry(0).load().strides(), (Strides{1, 7}));
  EXPECT_EQ(archive.load().as_tensor().strides(), (Strides{1, 7}));
  EXPECT_TRUE(archive.entry(0).slice(0, 1, 3).load().is_contiguous());
}

TEST(LazyTensorSlices, BadOnesAreErrors) {
  const Archive archive = open(test::source_of(npy_of(numbered_tensor({5, 7}, DType::float32))));
  const LazyTensor lazy = archive.entry(0);
  EXPECT_EQ(code_of([&] { lazy.slice(2, 0, 1); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(code_of([&] { lazy.slice(0, 0, 1, 0); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { lazy.select(0, 5); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(code_of([&] { lazy.select(0, -6); }), ErrorCode::kIndexOutOfRange);
}

TEST_F(ArchiveTest, MapsWithoutCopying) {
  Report report;
  const Value mapped = open(path).load({.mmap = true, .report = &report});
  const Tensor weight = mapped["encoder.weight"].as_tensor();
  EXPECT_TRUE(weight.read_only());
  EXPECT_TRUE(Tensor::identical(weight, a));
  EXPECT_TRUE(weight.buffer().shares_memory_with(mapped["encoder.bias"].as_tensor().buffer())) << "one mapping";
  EXPECT_EQ(report.route, "map");
  EXPECT_EQ(report.read_bytes, 0U);
  const Archive archive = open(path);
  const Tensor slice = archive["encoder.weight"].slice(0, 2, 60, 3).slice(1, 0, 5).load({.mmap = true});
  EXPECT_EQ(slice.strides(), (Strides{300, 1})) << "a view, not a copy";
  EXPECT_TRUE(Tensor::identical(slice, a.slice(0, 2, 60, 3).slice(1, 0, 5)));
}

TEST_F(ArchiveTest, WhatTheFileDoesNotAlignIsCopiedAndReported) {
  std::string file = safetensors_of(dict_of({{"x", numbered_tensor({100}, DType::float64)}}));
  // Shift the data by three bytes of white space behind the header.
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  file.insert(8 + length, "   ");
  length += 3;
  std::memcpy(file.data(), &length, 8);
  test::write_file(path, file);
  Report report;
  const Tensor x = open(path)["x"].load({.mmap = true, .report = &report});
  EXPECT_FALSE(x.read_only());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data()) % 8, 0U);
  EXPECT_TRUE(Tensor::identical(x, numbered_tensor({100}, DType::float64)));
  EXPECT_THAT(report.why, HasSubstr("1 read"));
  open(path).load({.mmap = true, .report = &report});
  EXPECT_THAT(report.why, HasSubstr("1 read"));
}

TEST_F(ArchiveTest, WhatCannotBeMappedSaysWhy) {
  test::MadeArchive made(test::source_of(std::string(100, 'x')));
  made.add_entry(made.add_storage(0, 80), DType::float32, {20}, {1}).encoding.swapped = true;
  Report report;
  const auto error = error_of([&] { archive::load_view(made.sealed(), made.entries()[0], {.mmap = true}, report); });
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), HasSubstr("byte order"));
  const auto counting = std::make_shared<CountingSource>(safetensors_of(value));
  EXPECT_EQ(code_of([&] { open(counting).load({.mmap = true}); }), ErrorCode::kUnsupported);
}

TEST_F(ArchiveTest, ASmallFileIsLoadedAsItWasWhenItWasOpened) {
  const Tensor x = numbered_tensor({16}, DType::float32);
  const Tensor other = x.clone();
  std::memset(other.data(), 1, other.nbytes());
  test::write_file(path, safetensors_of(dict_of({{"x", x}})));
  const Archive archive = open(path);
  test::write_file(path, safetensors_of(dict_of({{"x", other}})));
  EXPECT_TRUE(Tensor::identical(archive["x"].load(), x));
  const Tensor into = Tensor::empty({16}, DType::float32);
  archive["x"].load_into(into);
  EXPECT_TRUE(Tensor::identical(into, x))
      << "the bytes that were read when it was opened, and no mixture with new ones";
}

TEST_F(ArchiveTest, AFileCutAfterOpeningIsAnError) {
  const Archive archive = open(path);
  fs::resize_file(path, fs::file_size(path) - 100);
  for (const bool map : {false, true}) {
    EXPECT_THAT(code_of([&] { archive.load({.mmap = map}); }), AnyOf(ErrorCode::kTruncated, ErrorCode::kChanged));
    EXPECT_THAT(code_of([&] { archive["encoder.weight"].load({.mmap = map}); }),
                AnyOf(ErrorCode::kTruncated, ErrorCode::kChanged, std::nullopt));
  }
  const auto error = error_of([&] { archive.load(); });
  EXPECT_EQ(error->path(), path);
}

/// A file that is read whole when it is opened.
class SmallFile : public ArchiveTest {
 protected:
  const Tensor c = numbered_tensor({50, 10}, DType::float32, 3);
  const std::string bytes = safetensors_of(dict_of({{"c", c}, {"b", b}}));
  const std::string path = folder / "small.safetensors";

  SmallFile() { test::write_file(path, bytes); }
};

TEST_F(SmallFile, IsReadOnce) {
  const auto source = std::make_shared<CountingSource>(bytes);
  const Archive archive = open(source);
  EXPECT_EQ(archive.sources()[0], source);
  Report report;
  EXPECT_TRUE(Tensor::identical(archive.load({.report = &report})["c"].as_tensor(), c));
  EXPECT_EQ(report.route, "read");
  EXPECT_EQ(report.read_bytes, c.nbytes() + b.nbytes());
  EXPECT_THAT(report.why, HasSubstr("small"));
  EXPECT_TRUE(Tensor::identical(archive["c"].load(), c));
  EXPECT_TRUE(Tensor::identical(archive["c"].slice(1, 2, 4).load(), c.slice(1, 2, 4).contiguous()));
  EXPECT_EQ(source->reads, 1U);
  EXPECT_EQ(source->bytes_read, bytes.size());
}

TEST_F(SmallFile, GivesEachLoadMemoryOfItsOwn) {
  const Archive archive = open(path);
  for (int i = 0; i < 2; ++i) {
    const Value all = archive.load();
    const Tensor one = archive["c"].load();
    const Tensor part = archive["c"].select(0, 3).load();
    EXPECT_TRUE(Tensor::identical(all["c"].as_tensor(), c));
    EXPECT_TRUE(Tensor::identical(one, c));
    EXPECT_TRUE(Tensor::identical(part, c[3]));
    for (const Tensor& tensor : {all["c"].as_tensor(), one, part}) std::memset(tensor.data(), 1, tensor.nbytes());
  }
}

TEST_F(SmallFile, IsHandedOutToItsOnlyHandleAlone) {
  const Tensor x = numbered_tensor({300}, DType::int32);
  std::string big = npy_of(x);
  big.replace(big.find("<i4"), 3, ">i4");
  for (const std::string& npy : {npy_of(x), big}) {
    test::write_file(folder / "x.npy", npy);
    Archive archive = open(folder / "x.npy");
    const LazyTensor other = archive.entry(0);
    const Tensor expected = other.load();
    const Tensor copied = std::move(archive).load().as_tensor();
    EXPECT_TRUE(Tensor::identical(copied, expected));
    std::memset(copied.data(), 0, copied.nbytes());
    EXPECT_TRUE(Tensor::identical(other.load(), expected)) << "the other handle's";
    const Tensor own = open(folder / "x.npy").load().as_tensor();
    EXPECT_TRUE(Tensor::identical(own, expected));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(own.data()) % 64, 0U);
  }
  // The tensors of this file lie where 64 does not divide.
  const Value all = open(path).load();
  EXPECT_TRUE(Tensor::identical(all["c"].as_tensor(), c));
  EXPECT_TRUE(Tensor::identical(all["b"].as_tensor(), b));
  for (const char* name : {"b", "c"}) {
    const Tensor tensor = all[name].as_tensor();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0U);
  }
}

TEST_F(SmallFile, GivesSlicesThatLieInMemoryAsThoseOfLargeFilesDo) {
  // NumPy's header for an array in Fortran order.
  const Tensor x = numbered_tensor({6, 7, 8}, DType::int16);
  std::string fortran = npy_of(x);
  fortran.replace(fortran.find("False"), 5, "True ");
  test::write_file(folder / "x.npy", fortran);
  const LazyTensor lazy = open(folder / "x.npy").entry(0);
  ASSERT_EQ(lazy.strides(), (Strides{1, 6, 42}));
  for (const LazyTensor& slice : {lazy, lazy.slice(0, 1, 3), lazy.slice(0, 0, 6, 2), lazy.slice(2, 1, 2),
                                  lazy.slice(2, 1, 7), lazy.slice(2, 0, 8, 3), lazy.select(0, 2), lazy.select(2, 5)}) {
    const Tensor here = slice.load();
    const Tensor there = slice.load({.direct = true});  // from the file
    EXPECT_TRUE(Tensor::identical(here, there)) << slice.shape().to_string();
    EXPECT_EQ(here.strides(), there.strides()) << slice.shape().to_string();
    EXPECT_LE(here.buffer().size(), x.nbytes());
  }
  EXPECT_EQ(lazy.slice(2, 1, 2).load().buffer().size(), 6U * 7 * 2) << "without the rest of the file";
}

TEST_F(ArchiveTest, BytesMayBeHadInTheOrderOfTheFile) {
  const Tensor x = numbered_tensor({6, 7}, DType::int16);
  std::string big = npy_of(x);
  big.replace(big.find("<i2"), 3, ">i2");
  test::write_file(folder / "x.npy", big);
  const LazyTensor swapped = open(folder / "x.npy").entry(0);
  const LazyTensor stored = swapped.as_stored();
  EXPECT_TRUE(swapped.entry().encoding.swapped);
  EXPECT_FALSE(stored.entry().encoding.swapped);
  for (const bool map : {false, true}) {
    EXPECT_TRUE(Tensor::identical(stored.load({.mmap = map}), x));
    EXPECT_TRUE(Tensor::identical(stored.slice(1, 2, 5).load({.mmap = map}), x.slice(1, 2, 5).contiguous()));
  }
  EXPECT_FALSE(Tensor::identical(swapped.load(), x));
}

TEST_F(SmallFile, IsWhatItWasWhenItWasOpened) {
  const Archive archive = open(path);
  fs::resize_file(path, 10);
  EXPECT_TRUE(Tensor::identical(archive.load()["c"].as_tensor(), c));
  EXPECT_TRUE(Tensor::identical(archive["b"].load(), b));
  EXPECT_EQ(code_of([&] { archive.load({.mmap = true}); }), ErrorCode::kTruncated);
  EXPECT_EQ(code_of([&] { archive.load({.direct = true}); }), ErrorCode::kTruncated);
}

TEST_F(SmallFile, IsMappedAndReadPastTheCacheWhereThatIsAsked) {
  Report report;
  const Tensor mapped = open(path)["c"].load({.mmap = true, .report = &report});
  EXPECT_EQ(report.route, "map");
  EXPECT_TRUE(mapped.read_only());
  EXPECT_TRUE(Tensor::identical(open(path).load({.direct = true, .report = &report})["c"].as_tensor(), c));
  expect_route(report, true);
}

TEST_F(SmallFile, IsNotLoadedWhenTheLoadWasStopped) {
  std::stop_source stop;
  const Archive archive = open(std::make_shared<CountingSource>(bytes));
  const LoadOptions options{.stop = stop.get_token()};
  EXPECT_TRUE(Tensor::identical(archive["c"].load(options), c));
  stop.request_stop();
  EXPECT_EQ(code_of([&] { archive.load(options); }), ErrorCode::kCancelled);
  EXPECT_EQ(code_of([&] { archive["c"].load(options); }), ErrorCode::kCancelled);
}

TEST_F(SmallFile, EndsWhereTheLimitIs) {
  constexpr std::size_t kLimit = std::size_t{64} << 10;
  const std::size_t header = safetensors_of(dict_of({{"x", Tensor::zeros({60000}, DType::uint8)}})).size() - 60000;
  for (const std::size_t more : {std::size_t{0}, std::size_t{8}}) {
    const Tensor x = numbered_tensor({static_cast<std::int64_t>(kLimit + more - header)}, DType::uint8);
    const auto source = std::make_shared<CountingSource>(safetensors_of(dict_of({{"x", x}})));
    ASSERT_EQ(source->size(), kLimit + more);
    const Archive archive = open(source);
    EXPECT_EQ(source->bytes_read == source->size(), more == 0);
    EXPECT_TRUE(Tensor::identical(archive["x"].load(), x));
  }
}

TEST_F(ArchiveTest, LoadTakesTheOnlyTensor) {
  test::write_file(folder / "x.npy", npy_of(b));
  EXPECT_TRUE(Tensor::identical(load_tensor(folder / "x.npy"), b));
  test::write_file(folder / "x.safetensors", safetensors_of(dict_of({{"x", b}})));
  EXPECT_TRUE(Tensor::identical(load_tensor(folder / "x.safetensors"), b));
  const auto error = error_of([&] { load_tensor(path); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), HasSubstr("2 tensors ('encoder.bias', 'encoder.weight')"));
  test::write_file(folder / "none.safetensors", safetensors_of(dict_of({})));
  EXPECT_THAT(error_of([&] { load_tensor(folder / "none.safetensors"); })->message(), HasSubstr("no tensor"));
}

TEST_F(ArchiveTest, LoadValueGivesWhatIsInTheFile) {
  Report report;
  EXPECT_EQ(load(path, {.report = &report}).size(), 2U);
  EXPECT_GE(report.total_seconds, report.open_seconds);
  test::write_file(folder / "x.npy", npy_of(b));
  EXPECT_TRUE(Tensor::identical(load(folder / "x.npy").as_tensor(), b));
}

TEST_F(ArchiveTest, WhatIsNotATensorFileSaysSo) {
  EXPECT_EQ(code_of([&] { open(folder / "nothing.pt"); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { open(folder.path().string()); }), ErrorCode::kIsDirectory);
  const auto foreign = [&](const std::string& bytes) {
    test::write_file(folder / "x", bytes);
    const auto error = error_of([&] { open(folder / "x"); });
    EXPECT_EQ(error->code(), ErrorCode::kUnknownFormat);
    EXPECT_EQ(error->path(), folder / "x");
    EXPECT_EQ(error->offset(), 0U);
    return error->message();
  };
  EXPECT_THAT(foreign(""), HasSubstr("is empty"));
  EXPECT_THAT(foreign("\x89HDF\r\n\x1a\n...."), HasSubstr("HDF5"));
  EXPECT_THAT(foreign("\x1f\x8b\x08"), HasSubstr("gzip"));
  EXPECT_THAT(foreign("\x89PNG\r\n\x1a\n"), HasSubstr("PNG"));
  EXPECT_THAT(foreign("hello,\tworld"), HasSubstr("text that begins 'hello,\\tworld'"));
  EXPECT_THAT(foreign("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(foreign("\x80\x04\x95\x10"), HasSubstr("pickle"));
  EXPECT_THAT(foreign(std::string(100, '\0')), HasSubstr("zero bytes"));
  EXPECT_THAT(foreign("\x01\x02\x03\xff"), HasSubstr("01 02 03 ff"));
  EXPECT_THAT(foreign(std::string(257, '\x01') + "ustar"), HasSubstr("tar"));
  EXPECT_THAT(foreign("x"), HasSubstr(".safetensors"));
  if (::geteuid() != 0) {
    fs::permissions(path, fs::perms::none);
    EXPECT_EQ(code_of([&] { open(path); }), ErrorCode::kPermission);
  }
}

TEST_F(ArchiveTest, TheExtensionMeansNothing) {
  fs::rename(path, folder / "model.npy");
  EXPECT_EQ(open(folder / "model.npy").format(), "safetensors");
}

TEST_F(ArchiveTest, IsIteratedInTheOrderOfItsEntries) {
  const Archive archive = open(path);
  std::vector<std::string> names;
  for (const LazyTensor& tensor : archive) names.push_back(tensor.name());
  EXPECT_THAT(names, testing::ElementsAre("encoder.bias", "encoder.weight"));
  EXPECT_EQ(archive.size(), 2U);
  std::size_t count = 0;
  for (const LazyTensor& tensor : open(path)) count += tensor.load().defined() ? 1 : 0;
  EXPECT_EQ(count, 2U) << "the iterator keeps the archive";
}

TEST_F(ArchiveTest, LoadsIntoPlacesByName) {
  const Tensor weight = Tensor::zeros(a.shape(), a.dtype());
  const Tensor bias = Tensor::zeros(b.shape(), b.dtype());
  open(path).load_into({{"encoder.weight", weight}, {"encoder.bias", bias}});
  EXPECT_TRUE(Tensor::identical(weight, a));
  EXPECT_TRUE(Tensor::identical(bias, b));
  const Tensor untouched = Tensor::zeros(a.shape(), a.dtype());
  EXPECT_EQ(code_of([&] {
              open(path).load_into({{"encoder.weight", untouched}, {"encoder.bia", bias}});
            }),
            ErrorCode::kKeyNotFound);
  EXPECT_TRUE(Tensor::identical(untouched, Tensor::zeros(a.shape(), a.dtype())));
}

TEST_F(ArchiveTest, ATensorIsReadIntoMemoryThatIsThere) {
  const auto source = std::make_shared<CountingSource>(safetensors_of(value));
  const LazyTensor lazy = open(source)["encoder.weight"];
  const Tensor all = Tensor::zeros(a.shape(), a.dtype());
  lazy.load_into(all);
  EXPECT_TRUE(Tensor::identical(all, a));
  const Tensor rows = Tensor::zeros({2, a.shape()[1]}, a.dtype());
  source->bytes_read = 0;
  lazy.slice(-2, 3, 5).load_into(rows);
  EXPECT_TRUE(Tensor::identical(rows, a.slice(0, 3, 5)));
  EXPECT_LE(std::uint64_t{source->bytes_read}, rows.nbytes());
  // A row of a table, and another type.
  const Tensor table = Tensor::zeros({3, a.shape()[1]}, DType::float64);
  lazy.select(0, 5).load_into(table[1]);
  EXPECT_TRUE(Tensor::identical(table[1], a[5].to(DType::float64)));
  EXPECT_EQ(code_of([&] { lazy.load_into(table); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of([&] { lazy.load_into(Tensor()); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { lazy.load_into(all, {.mmap = true}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(lazy.size(-1), a.size(-1));
}

TEST_F(ArchiveTest, ANameThatIsNotThereNamesTheOthers) {
  const auto source = std::make_shared<CountingSource>(safetensors_of(value));
  const Archive archive = open(source);
  EXPECT_THAT(error_of([&] { static_cast<void>(archive["zzzzzzzz"]); })->message(), testing::HasSubstr("('encoder."));
}

TEST(ArchiveIndices, ThatAreNegativeAreSaidAsTheyAre) {
  const auto entry = test::error_of([] { Archive().entry(-1); });
  EXPECT_EQ(entry->code(), ErrorCode::kIndexOutOfRange);
  EXPECT_THAT(entry->message(), testing::HasSubstr("tensor -1 "));
  const auto wrapped = test::error_of([] { Archive().entry(static_cast<std::size_t>(-1)); });
  EXPECT_EQ(wrapped->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(wrapped->message(), testing::HasSubstr("it is -1 "));
  const Placement placement{static_cast<std::size_t>(-2), Tensor::of({1})};
  const auto placed = test::error_of([&] { Archive().load_into(std::span(&placement, 1)); });
  EXPECT_THAT(placed->message(), testing::HasSubstr(" -2 "));
}

}  // namespace
}  // namespace penstock
