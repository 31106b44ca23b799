// Tar archives as torch 0.1 wrote them, put together by hand: nothing writes them any more.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "format/pt/legacy.h"
#include "format/pt/pt.h"
#include "penstock/load.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/pickles.h"
#include "support/tensors.h"

namespace penstock::format {
namespace {

using namespace test::pickled;
using test::bytes_of;
using test::code_of;
using test::error_of;
using test::source_of;
using test::values_of;
using testing::HasSubstr;

std::string octal(std::uint64_t value, std::size_t width) {
  std::string digits;
  for (; digits.size() + 1 < width; value /= 8) digits.insert(digits.begin(), static_cast<char>('0' + value % 8));
  return digits + '\0';
}

std::string tar_member(const std::string& name, const std::string& data, char type = '0') {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(100, 8, octal(0644, 8));
  block.replace(124, 12, octal(data.size(), 12));
  block.replace(136, 12, octal(0, 12));
  block.replace(148, 8, "        ");
  block[156] = type;
  block.replace(257, 8, std::string("ustar\00000", 8));
  const unsigned sum = std::accumulate(block.begin(), block.end(), 0U,
                                       [](unsigned total, char c) { return total + static_cast<unsigned char>(c); });
  block.replace(148, 7, octal(sum, 7));
  std::string out = block + data;
  out.resize((out.size() + 511) / 512 * 512, '\0');
  return out;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct Tar {
  /// Storage 100: six shorts; 200: a view of its last four.
  std::string storages = whole("K\x01") + whole(tuple({integer(100), text("cpu"), global("torch", "ShortStorage")})) +
                         raw<std::int64_t>({6}) + raw<std::int16_t>({0, 1, 2, 3, 4, 5}) +
                         whole(list({tuple({integer(200), integer(100), integer(2), integer(4)})}));
  std::string tensors =
      whole("K\x02") + tensor_record(300, 100, {2, 3}, {3, 1}, 0) + tensor_record(301, 200, {2}, {2}, 1);
  std::string pickle = whole(dict({text("a"), text("300") + "Q", text("b"), integer(301) + "Q", text("s"), "P100\n"}));
  std::string system = whole("}");

  static std::string tensor_record(std::int64_t key, std::int64_t storage, const std::vector<std::int64_t>& shape,
                                   const std::vector<std::int64_t>& strides, std::int64_t offset) {
    return whole(tuple({integer(key), integer(storage), global("torch", "ShortTensor")})) +
           raw<std::int32_t>({static_cast<std::int32_t>(shape.size()), 77}) + raw(shape) + raw(strides) +
           raw<std::int64_t>({offset});
  }
  std::string file() const {
    return tar_member("sys_info", system) + tar_member("pickle", pickle) + tar_member("tensors", tensors) +
           tar_member("storages", storages) + std::string(1024, '\0');
  }
};

Archive opened(const std::string& file) { return open(source_of(file, "m.pth")); }

TEST(PtTar, ReadsTensorsAndStorages) {
  const Archive archive = opened(Tar().file());
  EXPECT_EQ(archive.format(), "pt");
  EXPECT_EQ(archive.metadata().at("version"), "tar");
  EXPECT_EQ(archive.storages().size(), 1U);
  EXPECT_EQ(archive["a"].shape(), (Shape{2, 3}));
  EXPECT_EQ(values_of<std::int16_t>(archive["a"].load()), (std::vector<std::int16_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values_of<std::int16_t>(archive["b"].load()), (std::vector<std::int16_t>{3, 5}));
  EXPECT_EQ(values_of<std::int16_t>(archive["s"].load()), (std::vector<std::int16_t>{0, 1, 2, 3, 4, 5}));
}

TEST(PtTar, LocationsAreKept) {
  const Archive on_host = opened(Tar().file());
  EXPECT_EQ(on_host.storages()[0].location, "");
  Tar tar;
  tar.storages.replace(tar.storages.find(text("cpu")), text("cpu").size(), text("cuda:0"));
  const Archive on_device = opened(tar.file());
  EXPECT_EQ(on_device.storages()[0].location, "cuda:0");
  tar.storages.replace(tar.storages.find(text("cuda:0")), text("cuda:0").size(), integer(1));
  EXPECT_EQ(code_of([&] { opened(tar.file()); }), ErrorCode::kCorrupt);
}

TEST(PtTar, ClassesWithTheirSource) {
  Tar tar;
  tar.pickle = whole(tuple({global("my", "Net"), text("net.py"), text("import os")}) + "Q)\x81" +
                     dict({text("w"), integer(300) + "Q"}) + "b");
  const Archive archive = opened(tar.file());
  EXPECT_EQ(archive.structure().type_name(), "my.Net");
}

TEST(PtTar, TimesInExtendedHeadersDoNotMatter) {
  const Tar tar;
  const Archive archive = opened(tar_member("./PaxHeaders/x", "28 mtime=1500000000.1234567\n", 'x') + tar.file());
  EXPECT_EQ(archive.entries().size(), 3U);
  EXPECT_EQ(code_of([&] { opened(tar_member("x", "13 path=../x\n", 'x') + tar.file()); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([&] { opened(tar_member("x", "garbage", 'x') + tar.file()); }), ErrorCode::kCorrupt);
}

TEST(PtTar, OtherArchivesAreNotTorchs) {
  const std::string times = tar_member("./PaxHeaders/x", "28 mtime=1500000000.1234567\n", 'x');
  const Archive with_times = opened(times + tar_member("000.txt", "x") + std::string(1024, '\0'));
  EXPECT_EQ(with_times.format(), "tar");
  EXPECT_EQ(with_times.structure()[0]["txt"].as_string(), "x");
  EXPECT_EQ(opened(tar_member("readme.txt", "hello") + std::string(1024, '\0')).format(), "tar");
}

struct TarFlaw {
  std::string name;
  std::string (*make)(Tar tar);
  ErrorCode code = ErrorCode::kCorrupt;
};
class EveryFlawOfTar : public testing::TestWithParam<TarFlaw> {};

TEST_P(EveryFlawOfTar, IsRefused) {
  const auto error = error_of([&] { opened(GetParam().make(Tar())); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), GetParam().code) << error->what();
  EXPECT_EQ(error->path(), "m.pth");
}

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

std::string with_tensors(Tar tar, const std::string& tensors) {
  tar.tensors = tensors;
  return tar.file();
}
std::string with_storages(Tar tar, const std::string& storages) {
  tar.storages = storages;
  return tar.file();
}
std::string with_tensor(const Tar& tar, std::int64_t storage, const std::vector<std::int64_t>& shape,
                        const std::vector<std::int64_t>& strides) {
  return with_tensors(tar, whole("K\x01") + Tar::tensor_record(300, storage, shape, strides, 0));
}
std::string one_storage(const std::string& type, std::int64_t numel) {
  return whole("K\x01") + whole(tuple({integer(100), text("cpu"), type})) + raw<std::int64_t>({numel});
}

std::vector<TarFlaw> flaws() {
  const auto truncated = ErrorCode::kTruncated;
  return {
      {"stranger", [](Tar tar) { return tar_member("pickle", tar.pickle) + tar_member("evil", "x") + tar.file(); }},
      {"member_twice", [](Tar tar) { return tar_member("pickle", tar.pickle) + tar.file(); }},
      {"link", [](Tar tar) { return tar_member("pickle", "", '2') + tar.file(); }, ErrorCode::kUnsupported},
      {"missing", [](Tar tar) { return tar_member("pickle", tar.pickle) + std::string(1024, '\0'); }},
      {"checksum", [](Tar tar) { return tar.file().replace(tar_member("sys_info", tar.system).size() + 120, 1, "1"); }},
      {"extent", [](Tar tar) { return with_tensor(tar, 100, {7}, {1}); }},
      {"extent_of_view", [](Tar tar) { return with_tensor(tar, 200, {5}, {1}); }},
      {"negative_size", [](Tar tar) { return with_tensor(tar, 100, {-1}, {1}); }},
      {"wrapping_size", [](Tar tar) { return with_tensor(tar, 100, {kHuge}, {kHuge}); }},
      {"rank",
       [](Tar tar) {
         return with_tensor(tar, 100, std::vector<std::int64_t>(65, 1), std::vector<std::int64_t>(65, 1));
       }},
      {"no_storage", [](Tar tar) { return with_tensor(tar, 9, {1}, {1}); }},
      {"tensor_twice",
       [](Tar tar) {
         const std::string record = Tar::tensor_record(300, 100, {1}, {1}, 0);
         return with_tensors(tar, whole("K\x02") + record + record);
       }},
      {"unknown_key", [](Tar tar) { return tar.pickle = whole(integer(9) + "Q"), tar.file(); }},
      {"count_negative", [](Tar tar) { return with_tensors(tar, whole(integer(-1))); }},
      {"count_too_high", [](Tar tar) { return with_tensors(tar, whole(integer(kHuge))); }, truncated},
      {"bytes_behind_pickle", [](Tar tar) { return tar.pickle += "x", tar.file(); }},
      {"bytes_behind_tensors", [](Tar tar) { return with_tensors(tar, tar.tensors + "x"); }},
      {"bytes_behind_storages", [](Tar tar) { return with_storages(tar, tar.storages + "x"); }},
      {"storage_beyond",
       [](Tar tar) { return with_storages(tar, one_storage(global("torch", "ShortStorage"), kHuge / 4)); }, truncated},
      {"storage_wraps",
       [](Tar tar) { return with_storages(tar, one_storage(global("torch", "DoubleStorage"), kHuge)); }},
      {"storage_negative",
       [](Tar tar) { return with_storages(tar, one_storage(global("torch", "ShortStorage"), -1)); }},
      {"storage_of_class", [](Tar tar) { return with_storages(tar, one_storage(global("os", "system"), 0)); }},
      {"view_beyond",
       [](Tar tar) {
         const auto views = [](std::int64_t size) {
           return whole(list({tuple({integer(200), integer(100), integer(2), integer(size)})}));
         };
         const std::string before = tar.storages.substr(0, tar.storages.size() - views(4).size());
         return with_storages(tar, before + views(5));
       }},
  };
}
INSTANTIATE_TEST_SUITE_P(PtTar, EveryFlawOfTar, testing::ValuesIn(flaws()),
                         [](const auto& one) { return one.param.name; });

TEST(PtTar, EveryTruncationIsAnError) {
  const std::string file = Tar().file();
  // The end of an archive is a block of zeros; a second one is only padding.
  for (std::size_t length = 0; length < file.size() - 512; length += length < 600 ? 1 : 7) {
    EXPECT_TRUE(error_of([&] { opened(file.substr(0, length)); })) << length;
  }
}

}  // namespace
}  // namespace penstock::format
