// Shards from front to back, without an index.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "data/stream/numbers.h"
#include "data/tar/shards.h"

namespace penstock {
namespace {

using test::classes_of;
using test::Numbers;
using test::tar_member;
using test::TemporaryFolder;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;

Numbers up_to(std::int64_t end, std::int64_t begin = 0) {
  Numbers out(static_cast<std::size_t>(end - begin));
  std::iota(out.begin(), out.end(), begin);
  return out;
}

void gzip_file(const std::string& path, const std::string& content) {
  const gzFile out = gzopen(path.c_str(), "wb1");
  ASSERT_EQ(gzwrite(out, content.data(), static_cast<unsigned>(content.size())), static_cast<int>(content.size()));
  ASSERT_EQ(gzclose(out), Z_OK);
}

/// The batches of a loader as numbers, errors as -1.
Numbers taken(DataLoader& loader, std::vector<Error>* errors = nullptr) {
  Numbers out;
  while (true) {
    try {
      const auto batch = loader.next();
      if (!batch) return out;
      const Numbers part = test::values_of<std::int64_t>(batch->value["cls"].as_tensor());
      out.insert(out.end(), part.begin(), part.end());
    } catch (const Error& error) {
      out.push_back(-1);
      if (errors != nullptr) errors->push_back(error);
    }
    if (out.size() > 10'000) return out;
  }
}

class TarStream : public ::testing::Test {
 protected:
  SampleStream of(const std::string& text) const { return stream(shards(text, {.index = false})); }

  TemporaryFolder folder_{test::quick_folder()};
};

TEST_F(TarStream, GivesAllShardsInOrder) {
  const std::string pattern = test::write_shards(folder_, {4, 0, 1, 7});
  EXPECT_EQ(classes_of(of(pattern)), up_to(12));
  EXPECT_EQ(classes_of(of(pattern)), up_to(12)) << "anew";
  for (const std::size_t workers : {0U, 1U, 3U}) {
    DataLoader loader(of(pattern), test::options(5, workers));
    for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(taken(loader), up_to(12)) << workers;
  }
}

TEST_F(TarStream, SamplesAreThoseOfTheDataset) {
  const std::string pattern = test::write_shards(folder_, {3, 4});
  for (const ShardsOptions& options : std::vector<ShardsOptions>{
           {.index = false}, {.raw = true, .index = false}, {.keys = {"cls", "__url__", "__key__"}, .index = false}}) {
    const Dataset dataset = shards(pattern, options);
    std::int64_t seen = 0;
    for (const Value& sample : stream(dataset)) EXPECT_EQ(test::bits_of(sample), test::bits_of(dataset.get(seen++)));
    EXPECT_EQ(seen, 7);
  }
}

TEST_F(TarStream, ReadsCompressedShards) {
  gzip_file(folder_ / "a.tar.gz", test::numbered_shard(0, 5));
  write_file(folder_ / "b.tar", test::numbered_shard(5, 5));
  gzip_file(folder_ / "c.tgz", test::numbered_shard(10, 5));
  EXPECT_EQ(classes_of(of(folder_ / "{a.tar.gz,b.tar,c.tgz}")), up_to(15));
  EXPECT_EQ(test::code_of([&] { shards(folder_ / "a.tar.gz", {.index = false}).size(); }), ErrorCode::kUnsupported);
}

TEST_F(TarStream, IsThatOfAShardBehindFunctionsAndTransforms) {
  // An index of this cannot be made, so whoever asks for one fails.
  gzip_file(folder_ / "a.tar.gz", test::numbered_shard(0, 9));
  const Dataset dataset = shards(folder_ / "a.tar.gz", {.keys = {"npy", "cls"}, .index = false})
                              .map([](const Value& sample, Generator& generator) {
                                const Tensor drawn = rand({1}, generator);
                                return Value::dict({{"npy", sample["npy"]}, {"cls", sample["cls"]}, {"u", drawn}});
                              })
                              .cast(DType::float64, false, {"npy"});
  write_file(folder_ / "a.tar", test::numbered_shard(0, 9));
  const auto batch_of = [](const auto& samples) {
    DataLoader loader(samples, {.batch_size = 9, .num_workers = 0, .seed = 4});
    return loader.next()->value;
  };
  const Value found = batch_of(stream(dataset));
  EXPECT_EQ(found["npy"].as_tensor().dtype(), DType::float64);
  EXPECT_EQ(test::values_of<std::int64_t>(found["cls"].as_tensor()), up_to(9));
  EXPECT_EQ(test::bits_of(found), test::bits_of(batch_of(stream(dataset)))) << "drawn by the number of the sample";
}

TEST_F(TarStream, ACutCompressedShardIsNamed) {
  gzip_file(folder_ / "a.tar.gz", test::numbered_shard(0, 50));
  const std::string whole = test::read_file(folder_ / "a.tar.gz");
  write_file(folder_ / "a.tar.gz", whole.substr(0, whole.size() / 2));
  write_file(folder_ / "b.tar", test::numbered_shard(50, 2));
  DataLoader loader(of(folder_ / "{a.tar.gz,b.tar}"), test::options(1, 0));
  std::vector<Error> errors;
  const Numbers numbers = taken(loader, &errors);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].code(), ErrorCode::kTruncated);
  EXPECT_THAT(errors[0].what(), HasSubstr("a.tar.gz"));
  EXPECT_EQ(Numbers(numbers.end() - 3, numbers.end()), (Numbers{-1, 50, 51}));
}

TEST_F(TarStream, GoesOnFromEachPosition) {
  const std::string pattern = test::write_shards(folder_, {5, 3, 6});
  for (const std::int64_t window : {0, 4}) {
    const auto made = [&] { return window == 0 ? of(pattern) : of(pattern).shuffle(window, 11); };
    DataLoader whole(made(), test::options(3, 2));
    std::vector<std::string> positions{whole.position().to_json()};
    std::vector<Numbers> batches;
    while (const auto batch = whole.next()) {
      batches.push_back(test::values_of<std::int64_t>(batch->value["cls"].as_tensor()));
      positions.push_back(whole.position().to_json());
    }
    Numbers all = test::flat(batches);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, up_to(14));
    for (std::size_t i = 0; i < positions.size(); ++i) {
      DataLoader loader(made(), test::options(3, i % 3));
      loader.seek(LoaderPosition::from_json(positions[i]));
      EXPECT_EQ(taken(loader), test::flat({batches.begin() + static_cast<std::ptrdiff_t>(i), batches.end()}))
          << window << i;
    }
  }
}

TEST_F(TarStream, IsCutRepeatedAndSkipped) {
  const std::string pattern = test::write_shards(folder_, {5, 3});
  EXPECT_EQ(classes_of(of(pattern).skip(4).take(2)), (Numbers{4, 5}));
  EXPECT_EQ(classes_of(of(pattern).repeat(2)).size(), 16U);
  EXPECT_EQ(classes_of(of(pattern).skip(8)).size(), 0U);
  const auto odd = [](const Value& sample) { return sample["cls"].as_int() % 2 == 1; };
  EXPECT_EQ(classes_of(of(pattern).filter(odd)), (Numbers{1, 3, 5, 7}));
  EXPECT_EQ(classes_of(stream(shards(pattern, {.index = false}).filter(odd))), (Numbers{1, 3, 5, 7}));
}

TEST_F(TarStream, ADamagedShardIsNamedOnceAndTheNextOneFollows) {
  std::string damaged = test::numbered_shard(3, 4);
  const std::size_t sample = (damaged.size() - 1024) / 4;
  damaged[2 * sample] = '?';  // the header of its third sample
  write_file(folder_ / "0.tar", test::numbered_shard(0, 3));
  write_file(folder_ / "1.tar", damaged);
  write_file(folder_ / "2.tar", test::numbered_shard(7, 2));
  for (const std::size_t workers : {0U, 2U}) {
    DataLoader loader(of(folder_ / "{0,1,none,2}.tar"), test::options(1, workers));
    std::vector<Error> errors;
    const Numbers numbers = taken(loader, &errors);
    ASSERT_EQ(errors.size(), 2U);
    EXPECT_EQ(errors[0].code(), ErrorCode::kCorrupt);
    EXPECT_THAT(errors[0].what(), HasSubstr("1.tar"));
    EXPECT_EQ(errors[1].code(), ErrorCode::kNotFound);
    EXPECT_THAT(errors[1].what(), HasSubstr("none.tar"));
    EXPECT_EQ(Numbers(numbers.begin(), numbers.begin() + 4), (Numbers{0, 1, 2, 3}));
    EXPECT_EQ(Numbers(numbers.end() - 3, numbers.end()), (Numbers{-1, 7, 8}));
  }
}

TEST_F(TarStream, ACutShardHasTheSamplesBeforeTheCut) {
  const std::string whole = test::numbered_shard(0, 3);
  const std::size_t sample = (whole.size() - 1024) / 3;
  write_file(folder_ / "b.tar", test::numbered_shard(3, 1));
  for (const std::size_t cut : {std::size_t{100}, std::size_t{512 + 10}, std::size_t{512 + 150}, sample - 100}) {
    write_file(folder_ / "a.tar", whole.substr(0, 2 * sample + cut));
    DataLoader loader(of(folder_ / "{a,b}.tar"), test::options(1, 0));
    std::vector<Error> errors;
    const Numbers numbers = taken(loader, &errors);
    ASSERT_EQ(errors.size(), 1U) << cut;
    EXPECT_EQ(errors[0].code(), ErrorCode::kTruncated);
    EXPECT_THAT(errors[0].what(), HasSubstr("a.tar"));
    EXPECT_EQ(numbers, cut < 512 ? (Numbers{0, -1, 3}) : (Numbers{0, 1, -1, 3})) << cut;
  }
}

TEST_F(TarStream, AListMayNotTellAnotherNumberOfSamples) {
  write_file(folder_ / "a.tar", test::numbered_shard(0, 2));
  write_file(folder_ / "b.tar", test::numbered_shard(2, 1));
  for (const int told : {1, 2, 3}) {
    write_file(folder_ / "list.json",
               R"({"shardlist": [{"url": "a.tar", "nsamples": )" + std::to_string(told) + R"(}, {"url": "b.tar"}]})");
    DataLoader loader(of(folder_ / "list.json"), test::options(1, 0));
    std::vector<Error> errors;
    EXPECT_EQ(taken(loader, &errors), told == 2 ? (Numbers{0, 1, 2}) : (Numbers{0, 1, -1, 2}));
    if (told == 2) continue;
    EXPECT_EQ(errors.at(0).code(), ErrorCode::kCorrupt);
    EXPECT_THAT(errors.at(0).what(), AllOf(HasSubstr("a.tar"), HasSubstr("has 2")));
  }
}

TEST_F(TarStream, GoesOnBehindADamagedShard) {
  write_file(folder_ / "0.tar", test::numbered_shard(0, 3));
  write_file(folder_ / "1.tar", "this is no archive");
  write_file(folder_ / "2.tar", test::numbered_shard(3, 3));
  const auto made = [&] { return DataLoader(of(folder_ / "{0,1,2}.tar"), test::options(1, 1)); };
  DataLoader whole = made();
  Numbers all;
  std::vector<std::string> positions;
  for (const std::int64_t expected : {0, 1, 2, -1, 3, 4, 5}) {
    positions.push_back(whole.position().to_json());
    all.push_back(expected);
    if (expected == -1) {
      EXPECT_EQ(test::code_of([&] { whole.next(); }), ErrorCode::kTruncated);
    } else {
      EXPECT_EQ(test::values_of<std::int64_t>(whole.next()->value["cls"].as_tensor()), Numbers{expected});
    }
  }
  EXPECT_FALSE(whole.next());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    DataLoader loader = made();
    loader.seek(LoaderPosition::from_json(positions[i]));
    EXPECT_EQ(taken(loader), Numbers(all.begin() + static_cast<std::ptrdiff_t>(i), all.end())) << i;
  }
}

TEST_F(TarStream, AnEmptyMemberOfTensorsIsAnErrorOfItsSample) {
  write_file(folder_ / "a.tar", tar_member("a.npy", "") + tar_member("a.cls", "1") + tar_member("b.cls", "2"));
  DataLoader loader(of(folder_ / "a.tar"), test::options(1, 0));
  std::vector<Error> errors;
  EXPECT_EQ(taken(loader, &errors), (Numbers{-1, 2}));
  EXPECT_THAT(errors[0].what(), AllOf(HasSubstr("a.npy"), HasSubstr("a.tar")));
}

TEST_F(TarStream, ABadSampleIsLeftOutAloneWhereNumbersChange) {
  std::string content;
  for (std::int64_t i = 0; i < 20; ++i) content += tar_member(test::number_text(i) + ".cls", i == 7 ? "x" : "1");
  write_file(folder_ / "a.tar", content + test::tar_end());
  DataLoader loader(of(folder_ / "a.tar").shuffle(8).repeat(2), test::options(5, 0, OnError::kSkip));
  for (int epoch = 0; epoch < 4; ++epoch) EXPECT_EQ(taken(loader).size(), 38U) << epoch;
}

TEST_F(TarStream, APositionOfNamesThatAreNoTextIsText) {
  write_file(folder_ / "\xFF.tar", test::numbered_shard(0, 4));
  const auto made = [&] { return DataLoader(of(folder_ / "\xFF.tar"), test::options(1, 0)); };
  DataLoader first = made();
  EXPECT_TRUE(first.next());
  DataLoader second = made();
  second.seek(LoaderPosition::from_json(first.position().to_json()));
  EXPECT_EQ(taken(second), up_to(4, 1));
}

TEST_F(TarStream, PassesByWhatBelongsToNoSample) {
  const std::string big(std::size_t{3} << 20, 'x');
  write_file(folder_ / "a.tar", tar_member("readme", big) + test::numbered_shard(0, 1) + tar_member("notes", big) +
                                    tar_member("__info__.json", big) + test::numbered_shard(1, 1));
  EXPECT_EQ(classes_of(of(folder_ / "a.tar")), up_to(2));
}

TEST_F(TarStream, EachSampleComesOnceOverRanks) {
  const std::string pattern = test::write_shards(folder_, {5, 9, 2, 8});
  std::multiset<std::int64_t> seen;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    DataLoader loader(
        of(pattern),
        {.batch_size = 2, .num_workers = 1, .ranks = Ranks{.rank = rank, .size = 3}, .remainder = Remainder::kExact});
    for (const std::int64_t n : taken(loader)) seen.insert(n);
  }
  EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 24U);
}

}  // namespace
}  // namespace penstock
