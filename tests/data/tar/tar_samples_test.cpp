// Datasets of tar shards: each sample as its members say, however it is read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "data/tar/shards.h"
#include "format/tar/feed.h"
#include "penstock/load.h"
#include "penstock/writer.h"

namespace penstock {
namespace {

using test::bits_of;
using test::shard_of;
using test::tar_end;
using test::tar_header;
using test::tar_member;
using test::TemporaryFolder;
using test::write_file;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Numbers = std::vector<std::int64_t>;

std::string npy(std::int64_t number) { return test::file_bytes(Tensor::of<std::int64_t>({number}), ".npy"); }

std::vector<std::string> names_of(const Value& dict) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < dict.size(); ++i) out.push_back(dict.item(i).first.as_string());
  return out;
}

class TarShards : public ::testing::Test {
 protected:
  Dataset made(const std::string& content, ShardsOptions options = {}) const {
    return shard_of(folder_, content, std::move(options));
  }
  std::optional<Error> error_of(const Dataset& dataset, std::int64_t index) const {
    return test::error_of([&] { dataset.get(index); });
  }

  TemporaryFolder folder_{test::quick_folder()};
};

TEST_F(TarShards, HaveEachKindOfField) {
  const Value sample =
      made(tar_member("s/a.npy", npy(7)) + tar_member("s/a.cls", "3\n") + tar_member("s/a.TXT", "h\xc3\xa4") +
           tar_member("s/a.meta.json", R"({"b": [1, null], "a": 1.5})") + tar_member("s/a.jpg", "\xff\xd8") +
           tar_member("s/a.", "nameless"))
          .get(0);
  EXPECT_THAT(names_of(sample), ElementsAre("__key__", "npy", "cls", "txt", "meta.json", "jpg", ""));
  EXPECT_EQ(sample["__key__"].as_string(), "s/a");
  EXPECT_EQ(sample["npy"].as_tensor().item<std::int64_t>(), 7);
  EXPECT_EQ(sample["cls"].as_int(), 3);
  EXPECT_EQ(sample["txt"].as_string(), "h\xc3\xa4");
  EXPECT_EQ(sample["meta.json"]["b"][0].as_int(), 1);
  EXPECT_EQ(sample["meta.json"]["a"].as_float(), 1.5);
  EXPECT_EQ(sample["jpg"].kind(), Value::Kind::kBytes);
  EXPECT_EQ(sample["jpg"].as_string(), "\xff\xd8");
}

TEST_F(TarShards, TakeTheFieldsOfKeysInTheirOrder) {
  const std::string content = tar_member("a.npy", npy(1)) + tar_member("a.cls", "2") + tar_member("a.pkl", "cos\n");
  EXPECT_EQ(error_of(made(content), 0)->code(), ErrorCode::kUnsafe);
  const Value sample = made(content, {.keys = {"cls", "__url__", "npy", "__key__"}}).get(0);
  EXPECT_THAT(names_of(sample), ElementsAre("cls", "__url__", "npy", "__key__"));
  EXPECT_EQ(sample["__url__"].as_string(), folder_ / "a.tar");
  EXPECT_THAT(names_of(made(content, {.keys = {"__key__"}}).get(0)), ElementsAre("__key__"));
}

TEST_F(TarShards, RawFieldsAreBytes) {
  const std::string content = tar_member("a.npy", npy(1)) + tar_member("a.cls", "no") + tar_member("a.pkl", "cos\n") +
                              tar_member("a.json", "") + tar_member("a.txt", "\xff");
  const Value sample = made(content, {.raw = true}).get(0);
  EXPECT_EQ(sample["npy"].as_string(), npy(1));
  EXPECT_EQ(sample["cls"].as_string(), "no");
  EXPECT_EQ(sample["pkl"].as_string(), "cos\n");
  EXPECT_EQ(sample["json"].as_string(), "");
  EXPECT_EQ(sample["txt"].as_string(), "\xff");
}

std::string gzipped(const TemporaryFolder& folder, const std::string& content) {
  const gzFile out = gzopen((folder / "x.gz").c_str(), "wb6");
  EXPECT_EQ(gzwrite(out, content.data(), static_cast<unsigned>(content.size())), static_cast<int>(content.size()));
  EXPECT_EQ(gzclose(out), Z_OK);
  return test::read_file(folder / "x.gz");
}

TEST_F(TarShards, FieldsWithGzBehindThemAreUnpacked) {
  const std::string large = test::file_bytes(ones({100'000}, DType::float32), ".npy");
  std::string shard;
  for (int i = 0; i < 3; ++i) {
    const std::string key = std::to_string(i);
    shard +=
        tar_member(key + ".npy.gz", gzipped(folder_, npy(i))) +
        tar_member(key + ".big.npy.gz", gzipped(folder_, large)) + tar_member(key + ".cls.gz", gzipped(folder_, key)) +
        tar_member(key + ".json.gz", gzipped(folder_, "[1]")) + tar_member(key + ".jpg.gz", gzipped(folder_, "bytes"));
  }
  const Dataset dataset = made(shard);
  const Value sample = dataset.get(2);
  EXPECT_EQ(test::values_of<std::int64_t>(sample["npy.gz"].as_tensor()), Numbers{2});
  EXPECT_EQ(sample["big.npy.gz"].as_tensor().numel(), 100'000);
  EXPECT_EQ(sample["cls.gz"].as_int(), 2);
  EXPECT_EQ(sample["json.gz"][0].as_int(), 1);
  EXPECT_EQ(sample["jpg.gz"].as_string(), "bytes");
  DataLoader loader(dataset, {.batch_size = 3, .num_workers = 2});
  const Value batch = loader.next()->value;
  EXPECT_EQ(test::values_of<std::int64_t>(batch["cls.gz"].as_tensor()), (Numbers{0, 1, 2}));
  EXPECT_EQ(test::values_of<std::int64_t>(batch["npy.gz"].as_tensor()), (Numbers{0, 1, 2}));
  EXPECT_EQ(made(shard, {.raw = true}).get(0)["cls.gz"].as_string().substr(0, 2), "\x1f\x8b");
  std::int64_t streamed = 0;
  for (const Value& one : stream(dataset)) EXPECT_EQ(one["cls.gz"].as_int(), streamed++);
}

TEST_F(TarShards, FieldsOfTensorsInWebDatasetsOwnFormAreTensors) {
  const Tensor large = ones({100'000}, DType::float32);
  const std::string path = folder_ / "b.tar";
  {
    Writer writer(path, {.sync = false});
    for (int i = 0; i < 3; ++i) {
      const Value pair = Value::list({Tensor::of<std::int32_t>({i, 2}), Tensor::of<double>({0.5})});
      writer.add_sample(Value{{"ten", pair}, {"big.tb", large}});
    }
    writer.finish();
  }
  const Dataset dataset = shards(path, {.index = false});
  const Value sample = dataset.get(2);
  EXPECT_TRUE(Tensor::identical(sample["ten"][0].as_tensor(), Tensor::of<std::int32_t>({2, 2})));
  EXPECT_TRUE(Tensor::identical(sample["big.tb"][0].as_tensor(), large));
  EXPECT_EQ(bits_of(open(path).load()[2]), bits_of(sample));
  DataLoader loader(dataset, {.batch_size = 3, .num_workers = 2});
  const Value batch = loader.next()->value;
  EXPECT_EQ(batch["ten"][0].as_tensor().shape(), Shape({3, 2}));
  EXPECT_EQ(batch["big.tb"][0].as_tensor().shape(), Shape({3, 100'000}));
  const std::string member = test::read_file(path).substr(512, 160);
  const std::string packed = tar_member("a.ten.gz", gzipped(folder_, member));
  const Value unpacked = made(packed).get(0);
  EXPECT_EQ(unpacked["ten.gz"].size(), 1U);
  for (const Value& one : stream(made(packed))) EXPECT_EQ(bits_of(one), bits_of(unpacked));
  const auto cut = error_of(made(tar_member("a.ten", member.substr(0, 100))), 0);
  EXPECT_EQ(cut->code(), ErrorCode::kTruncated);
  EXPECT_EQ(cut->tensor(), "a.ten");
}

TEST_F(TarShards, WhatDoesNotUnpackIsNamed) {
  const auto told = [&](const std::string& content) {
    return error_of(made(tar_member("a.cls.gz", content), {.keys = {"cls.gz"}}), 0);
  };
  const std::string whole = gzipped(folder_, "12");
  EXPECT_EQ(told("12")->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(told("")->code(), ErrorCode::kCorrupt);
  const auto cut = told(whole.substr(0, whole.size() - 3));
  EXPECT_EQ(cut->code(), ErrorCode::kTruncated);
  EXPECT_THAT(cut->what(), AllOf(HasSubstr("a.tar"), HasSubstr("a.cls.gz")));
  const std::string many = gzipped(folder_, std::string(5000, 'x'));
  const auto bytes = std::as_bytes(std::span<const char>(many));
  EXPECT_EQ(test::code_of([&] { format::unpack_member(bytes, 4999, "a.tar"); }), ErrorCode::kLimit);
  EXPECT_EQ(format::unpack_member(bytes, 5000, "a.tar").size(), 5000U);
}

TEST_F(TarShards, AMissingFieldIsNamedWithThoseThatAreThere) {
  const auto error = error_of(made(tar_member("a.npy", npy(1)) + tar_member("b.cls", "2"), {.keys = {"npy"}}), 1);
  EXPECT_EQ(error->code(), ErrorCode::kKeyNotFound);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("'b'"), HasSubstr("'npy'"), HasSubstr("'cls'"), HasSubstr("a.tar")));
}

TEST_F(TarShards, AFieldThatComesTwiceIsNamed) {
  for (const char* second : {"a.npy", "a.NPY"}) {
    const Dataset dataset =
        made(tar_member("a.npy", npy(1)) + tar_member(second, npy(2)) + tar_member("b.npy", npy(3)));
    EXPECT_EQ(dataset.size(), 2);
    const auto error = error_of(dataset, 0);
    EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error->what(), AllOf(HasSubstr("twice"), HasSubstr(second)));
    EXPECT_EQ(dataset.get(1)["npy"].as_tensor().item<std::int64_t>(), 3);
  }
  std::string many;
  for (int i = 0; i < 3000; ++i) many += tar_header("a." + std::to_string(i), 0);
  EXPECT_EQ(made(many).get(0).size(), 3001U);
  EXPECT_EQ(error_of(made(many + tar_header("a.17", 0)), 0)->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error_of(made(many + tar_header("a.2999", 0)), 0)->code(), ErrorCode::kCorrupt);
}

TEST_F(TarShards, AFieldThatEachSampleHasOfItselfIsNamed) {
  for (const char* member : {"a.__key__", "a.__URL__"}) {
    const std::string content = tar_member("a.npy", npy(1)) + tar_member(member, "x") + tar_end();
    const Dataset dataset = made(content);
    EXPECT_THAT(error_of(dataset, 0)->what(), AllOf(HasSubstr("twice"), HasSubstr(member)));
    EXPECT_EQ(test::code_of([&] { test::classes_of(stream(dataset)); }), ErrorCode::kCorrupt);
    EXPECT_EQ(test::code_of([&] { open(folder_ / "a.tar"); }), ErrorCode::kCorrupt);
  }
}

TEST_F(TarShards, OneWithoutAnEndIsSaidEachTime) {
  const std::string whole = test::numbered_shard(0, 3);
  std::vector<std::string> warnings;
  const auto opened = [&] {
    warnings.clear();
    return shards(folder_ / "a.tar", {.index_path = folder_ / "index",
                                      .warn = [&](const std::string& text) { warnings.push_back(text); }});
  };
  const auto said = ::testing::ElementsAre(AllOf(HasSubstr("a.tar: "), HasSubstr("has no end")));
  for (const std::size_t missing : {1024, 2048}) {  // the zeros; the last member too
    write_file(folder_ / "a.tar", whole.substr(0, whole.size() - missing));
    for (int i = 0; i < 2; ++i) {  // nothing of it is kept
      EXPECT_EQ(opened().size(), 3);
      EXPECT_THAT(warnings, said);
    }
    EXPECT_EQ(test::classes_of(stream(opened())).size(), 3U);
    EXPECT_THAT(warnings, said);
  }
  write_file(folder_ / "a.tar", whole.substr(0, whole.size() - 1024 - 500));  // its last sample says that it is cut
  EXPECT_EQ(opened().size(), 3);
  EXPECT_THAT(warnings, ::testing::IsEmpty());
  for (const std::size_t missing : {0, 512, 1000}) {
    write_file(folder_ / "a.tar", whole.substr(0, whole.size() - missing));
    EXPECT_EQ(test::classes_of(stream(opened())).size(), 3U);
    EXPECT_EQ(opened().size(), 3);
    EXPECT_THAT(warnings, ::testing::IsEmpty()) << missing;
  }
}

TEST_F(TarShards, AKeyThatComesAgainIsAnotherSample) {
  const Dataset dataset = made(tar_member("a.npy", npy(1)) + tar_member("b.npy", npy(2)) + tar_member("a.npy", npy(3)));
  ASSERT_EQ(dataset.size(), 3);
  EXPECT_EQ(test::key_of(dataset.get(2)), "a");
  EXPECT_EQ(dataset.get(2)["npy"].as_tensor().item<std::int64_t>(), 3);
}

TEST_F(TarShards, FieldsThatAreNoFilesAreNamed) {
  const auto linked = [](std::string& block) { test::put(block, 157, "a.npy"); };
  const std::string content = tar_member("a.npy", npy(1)) + tar_header("b.npy", 0, '1', linked) +
                              tar_member("b.cls", "2") + tar_header("c.npy", 0, '2', linked) +
                              tar_header("d.npy", 0, '3') + tar_member("e.npy", "x", 'S') +
                              tar_member("f.npy", "x", 'Q');
  const Dataset dataset = made(content);
  ASSERT_EQ(dataset.size(), 6);
  const char* const kinds[] = {"", "a link", "a link", "a device", "holes", "unknown"};
  for (std::int64_t i = 1; i < 6; ++i) {
    const auto error = error_of(dataset, i);
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported) << i;
    EXPECT_THAT(error->what(), HasSubstr(kinds[i])) << i;
    EXPECT_EQ(error->tensor(), std::string(1, static_cast<char>('a' + i)) + ".npy");
  }
  const auto path = folder_ / "a.tar";
  EXPECT_EQ(shards(path, {.keys = {"cls"}, .index = false}).get(1)["cls"].as_int(), 2);
}

TEST_F(TarShards, DamageIsNamedByShardMemberAndPlace) {
  const Dataset dataset = made(tar_member("s/a.npy", "no array at all") + tar_member("s/b.npy", "") +
                               tar_member("s/c.npy", npy(1).substr(0, 100)) + tar_member("s/d.json", "[1, }") +
                               tar_member("s/e.cls", "cat"));
  for (std::int64_t i = 0; i < 5; ++i) {
    const auto error = error_of(dataset, i);
    EXPECT_EQ(error->path(), folder_ / "a.tar") << i;
    EXPECT_THAT(error->tensor(), HasSubstr("s/" + std::string(1, static_cast<char>('a' + i)))) << i;
    ASSERT_TRUE(error->offset()) << i;
    EXPECT_GE(*error->offset(), 512U + (i == 0 ? 0 : 512));
  }
  EXPECT_EQ(error_of(dataset, 3)->offset(), 512U + 3 * 1024 - 512 + 5);
}

TEST_F(TarShards, ACutOneHasTheSamplesBeforeTheCut) {
  const std::string whole = test::numbered_shard(0, 3);
  const auto begins = whole.size() - 1024;
  const std::size_t sample = begins / 3;
  for (std::size_t length = 2 * sample + 1; length < begins; length += 61) {
    const Dataset dataset = made(whole.substr(0, length));
    const bool in_first_header = length < 2 * sample + 512;
    ASSERT_EQ(dataset.size(), in_first_header ? 2 : 3) << length;
    EXPECT_EQ(dataset.get(0)["cls"].as_int(), 0);
    if (length < 2 * sample + 512) {
      EXPECT_EQ(error_of(dataset, 1)->code(), ErrorCode::kTruncated) << length;
      continue;
    }
    EXPECT_EQ(dataset.get(1)["cls"].as_int(), 1);
    if (length % 512 == 0 && length - 2 * sample != 512) continue;  // may be between two members: a whole one
    const auto error = error_of(dataset, 2);
    EXPECT_EQ(error->code(), ErrorCode::kTruncated) << length;
    EXPECT_EQ(error->path(), folder_ / "a.tar");
  }
  EXPECT_EQ(made(whole.substr(0, begins)).size(), 3);
  EXPECT_EQ(made(whole.substr(0, begins)).get(2)["cls"].as_int(), 2);
}

TEST_F(TarShards, AppendedOnesAreOne) {
  const std::string zeros(9 * 512, '\0');
  const Dataset dataset = made(test::numbered_shard(0, 2) + zeros + test::numbered_shard(2, 2) + zeros);
  ASSERT_EQ(dataset.size(), 4);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(dataset.get(i)["cls"].as_int(), i);
}

/// An array of more than 256 KiB, whose members are read by themselves.
Tensor large(std::uint64_t seed) { return test::numbered_tensor(Shape{300, 301}, DType::int32, seed); }

TEST_F(TarShards, LargeMembersAreReadByThemselves) {
  std::string content;
  for (std::uint64_t i = 0; i < 6; ++i) {
    const std::string key = std::to_string(i);
    if (i == 3) content += std::string(20 * 512, '\0');  // an archive that was appended
    for (const char* extension : {".npy", ".npz", ".pt", ".safetensors"}) {
      const Tensor one = large(i * 10 + content.size() % 7);
      content += tar_member(key + extension, test::file_bytes(one, extension));
    }
    content +=
        tar_member(key + ".cls", key) + tar_member(key + ".mp4", std::string(400'000 + i, static_cast<char>('a' + i)));
  }
  write_file(folder_ / "a.tar", content);
  const Dataset dataset = shards(folder_ / "a.tar", {.index = false});
  ASSERT_EQ(dataset.size(), 6);
  const Dataset raw = shards(folder_ / "a.tar", {.raw = true, .index = false});
  for (std::int64_t i = 0; i < 6; ++i) {
    const Value sample = dataset.get(i);
    const Value bytes = raw.get(i);
    EXPECT_EQ(sample["cls"].as_int(), i);
    EXPECT_EQ(sample["mp4"].as_string(),
              std::string(static_cast<std::size_t>(400'000 + i), static_cast<char>('a' + i)));
    for (const char* field : {"npy", "npz", "pt", "safetensors"}) {
      const std::string path = folder_ / (std::string("x.") + field);
      write_file(path, bytes[field].as_string());
      EXPECT_EQ(bits_of(sample[field]), bits_of(load(path))) << i << field;
    }
  }
  for (const std::size_t workers : {0U, 3U}) {
    DataLoader loader(shards(folder_ / "a.tar", {.keys = {"pt", "cls"}, .index = false}),
                      {.batch_size = 2, .num_workers = workers, .collate = collate::samples()});
    std::int64_t seen = 0;
    while (const auto batch = loader.next()) {
      for (std::size_t i = 0; i < batch->value.size(); ++i, ++seen) {
        EXPECT_EQ(bits_of(batch->value[i]["pt"]), bits_of(dataset.get(seen)["pt"]));
      }
    }
    EXPECT_EQ(seen, 6);
  }
}

/// Samples of random fields, kinds and sizes; some beyond 256 KiB.
std::string random_shard(std::mt19937& random, int samples) {
  const auto below = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  std::string out;
  for (int i = 0; i < samples; ++i) {
    const std::string key = "k" + std::to_string(below(3)) + "_" + std::to_string(i);
    if (below(4) == 0) out += tar_header("folder/", 0, '5') + tar_member("__meta__.json", "{}");
    if (below(9) == 0) out += tar_end() + std::string(512 * static_cast<std::size_t>(below(5)), '\0');
    std::vector<int> kinds{0, 1, 2, 3, 4, 5};
    std::shuffle(kinds.begin(), kinds.end(), random);
    kinds.resize(static_cast<std::size_t>(1 + below(6)));
    for (const int kind : kinds) {
      if (below(5) == 0) out += test::gnu_long_name(key + (kind == 1 ? ".cls" : "." + std::to_string(kind) + ".bin"));
      const Tensor tensor =
          test::numbered_tensor(Shape{1 + below(below(6) == 0 ? 300 : 4), 1 + below(400)}, DType::float32, random());
      const char* const names[] = {".npy", ".cls", ".json", ".txt", ".bin", ".pt"};
      const std::string name = key + names[kind];
      if (kind == 0 || kind == 5) out += tar_member(name, test::file_bytes(tensor, names[kind]));
      if (kind == 1) out += tar_member(name, std::to_string(below(1000)));
      if (kind == 2) out += tar_member(name, below(2) == 0 ? "[1, 2]" : "{\"a\": NaN, \"b\": \"" + key + "\"}");
      if (kind == 3) out += tar_member(name, std::string(static_cast<std::size_t>(below(2000)), 't'));
      if (kind == 4) out += tar_member(name, std::string(static_cast<std::size_t>(below(300'000)), 'b'));
    }
  }
  return out + tar_end();
}

TEST_F(TarShards, AnyOrderGivesWhatReadingOneByOneGives) {
  std::mt19937 random(7);
  for (int round = 0; round < 4; ++round) {
    for (const char* name : {"a.tar", "b.tar", "c.tar"}) write_file(folder_ / name, random_shard(random, 8));
    ShardsOptions options{.index = false};
    if (round == 3) options.raw = true;
    const Dataset dataset = shards(folder_ / "*.tar", options);
    std::vector<std::string> expected;
    for (std::int64_t i = 0; i < dataset.size(); ++i)
      expected.push_back(bits_of(shards(folder_ / "*.tar", options).get(i)));
    for (const bool shuffle : {false, true}) {
      for (const std::size_t workers : {0U, 2U}) {
        DataLoader loader(
            dataset,
            {.batch_size = 5, .shuffle = shuffle, .num_workers = workers, .collate = collate::samples(), .seed = 3});
        std::set<std::int64_t> seen;
        while (const auto batch = loader.next()) {
          for (std::size_t i = 0; i < batch->indices.size(); ++i) {
            const std::int64_t index = batch->indices[i];
            EXPECT_TRUE(seen.insert(index).second);
            EXPECT_EQ(bits_of(batch->value[i]), expected[static_cast<std::size_t>(index)]) << index;
          }
        }
        EXPECT_EQ(seen.size(), expected.size());
      }
    }
    std::vector<std::string> streamed;
    for (const Value& sample : stream(dataset)) streamed.push_back(bits_of(sample));
    EXPECT_EQ(streamed, expected) << round;
  }
}

TEST_F(TarShards, BadSamplesAreSkippedOrReplaced) {
  std::string content;
  for (int i = 0; i < 9; ++i) {
    const bool is_bad = i == 2 || i == 3 || i == 8;
    content += tar_member(std::to_string(i) + ".npy", is_bad ? "broken" : npy(i)) +
               tar_member(std::to_string(i) + ".cls", std::to_string(i));
  }
  const Dataset dataset = made(content);
  const auto taken = [&](OnError on_error, std::size_t workers) {
    DataLoader loader(dataset, {.batch_size = 3, .num_workers = workers, .on_error = on_error});
    Numbers out;
    while (const auto batch = loader.next()) {
      const Numbers values = test::values_of<std::int64_t>(batch->value["npy"].as_tensor().reshape({batch->size()}));
      out.insert(out.end(), values.begin(), values.end());
    }
    if (on_error == OnError::kSkip) {
      EXPECT_EQ(loader.set_aside().size(), 3U);
      EXPECT_THAT(loader.set_aside().front().what, HasSubstr("a.tar[2]"));
      EXPECT_THAT(loader.set_aside().front().why, HasSubstr("2.npy"));
    }
    return out;
  };
  for (const std::size_t workers : {0U, 2U}) {
    EXPECT_THAT(taken(OnError::kSkip, workers), ElementsAre(0, 1, 4, 5, 6, 7));
    EXPECT_THAT(taken(OnError::kReplace, workers), ElementsAre(0, 1, 4, 4, 4, 5, 6, 7, 0));
  }
  DataLoader loader(dataset, {.batch_size = 3, .num_workers = 1});
  EXPECT_THAT(test::error_of([&] { loader.next(); })->what(),
              AllOf(HasSubstr("sample 2"), HasSubstr("2.npy"), HasSubstr("a.tar")));
}

TEST_F(TarShards, AShardThatIsRewrittenMeanwhileIsToldSo) {
  for (const bool is_large : {false, true}) {
    const auto content = [&](std::int64_t add) {
      std::string out;
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::string key = std::to_string(i);
        out += tar_member(key + ".npy", is_large ? test::file_bytes(large(static_cast<std::uint64_t>(i + add)), ".npy")
                                                 : npy(i + add));
      }
      return out;
    };
    for (const std::string& other :
         {content(5), content(5) + tar_end(), std::string(100, 'x'), tar_member("z.npy", npy(1)) + content(3)}) {
      const Dataset dataset = made(content(0));
      EXPECT_EQ(dataset.size(), 4);
      write_file(folder_ / "a.tar", other);
      for (std::int64_t i = 0; i < 4; ++i) {
        const auto code = test::code_of([&] { dataset.get(i); });
        const bool is_cut = code == ErrorCode::kTruncated && other.size() < content(0).size();
        EXPECT_TRUE(is_cut || code == ErrorCode::kChanged) << is_large << i;
      }
    }
    const Dataset dataset = made(content(0));
    const std::string before = bits_of(dataset.get(3));
    write_file(folder_ / "b.tar", content(5));
    std::filesystem::rename(folder_ / "b.tar", folder_ / "a.tar");
    EXPECT_EQ(bits_of(dataset.get(3)), before) << "the file that was opened is still read";
  }
}

TEST_F(TarShards, AnIndexBesideThatIsWrongMisleadsNobody) {
  const std::string content = test::numbered_shard(0, 3);
  write_file(folder_ / "a.tar", content);
  const std::uint64_t sample = (content.size() - 1024) / 3;
  const std::vector<std::uint64_t> joined = {0, 2 * sample, 3 * sample};
  write_file(folder_ / "a.tar.idx", std::as_bytes(std::span(joined)));
  const Dataset dataset = shards(folder_ / "a.tar", {.index = false});
  EXPECT_EQ(dataset.size(), 2);
  const auto error = error_of(dataset, 0);
  EXPECT_EQ(error->code(), ErrorCode::kChanged);
  EXPECT_THAT(error->message(), HasSubstr(".idx"));
  EXPECT_EQ(dataset.get(1)["cls"].as_int(), 2);
}

/// Any index whose numbers are begins of members: what is read is a whole sample, or an error that names the index.
TEST_F(TarShards, AnIndexBesidePartsNoSample) {
  const std::string content = tar_member("0.cls", "0") + tar_header("f/", 0, '5') + tar_member("0.txt", "a") +
                              tar_member("1.cls", "1") + tar_member("1.bin", std::string(3000, 'b')) +
                              tar_member("d/2.cls", "2") + tar_member("3.txt", "d") +
                              tar_member("3.npy", test::file_bytes(large(3), ".npy")) + tar_end();
  write_file(folder_ / "a.tar", content);
  const Source shard = open_source(folder_ / "a.tar");
  const std::vector<std::uint64_t> right = data::scan_samples(shard).begins;
  std::vector<std::uint64_t> members;
  format::TarWindow window(shard);
  format::TarWalk walk(window, "a.tar");
  while (const auto member = walk.next()) members.push_back(member->begin);
  ASSERT_EQ(members.size(), 8);
  const auto tried = [](const auto& work) -> std::optional<Error> {
    try {
      work();
    } catch (const Error& error) {
      return error;
    }
    return std::nullopt;
  };
  std::vector<std::string> samples;
  for (const Value& sample : stream(shards(folder_ / "a.tar"))) samples.push_back(bits_of(sample));
  for (unsigned chosen = 0; chosen < 128; ++chosen) {
    std::vector<std::uint64_t> begins{0};
    for (unsigned i = 0; i < 7; ++i) {
      if ((chosen >> i) % 2 != 0) begins.push_back(members[i + 1]);
    }
    begins.push_back(right.back());
    write_file(folder_ / "a.tar.idx", std::as_bytes(std::span(begins)));
    std::size_t wrong = 0;
    for (const bool is_first : {true, false}) {
      const Dataset dataset = shards(folder_ / "a.tar", {.index = false});
      ASSERT_EQ(dataset.size() + 1, begins.size());
      for (std::int64_t k = 0; k < dataset.size(); ++k) {
        const std::int64_t i = is_first ? k : dataset.size() - 1 - k;
        const auto error = tried([&] {
          const std::string bits = bits_of(dataset.get(i));
          EXPECT_EQ(std::count(samples.begin(), samples.end(), bits), 1) << chosen << "[" << i << "]";
        });
        if (!error) continue;
        ++wrong;
        EXPECT_EQ(error->code(), ErrorCode::kChanged);
        EXPECT_THAT(error->message(), HasSubstr(".idx"));
      }
      const Dataset keys = shards(folder_ / "a.tar", {.keys = {"__key__"}, .index = false});
      DataLoader loader(keys, {.batch_size = 3, .num_workers = 0, .on_error = OnError::kSkip});
      std::size_t read = 0;
      const auto none = tried([&] {  // where all are wrong
        while (const auto batch = loader.next()) read += static_cast<std::size_t>(batch->size());
      });
      EXPECT_EQ(none.has_value(), read == 0);
      EXPECT_EQ(read + wrong / (is_first ? 1 : 2), begins.size() - 1) << chosen;
    }
    EXPECT_EQ(wrong == 0, begins == right) << chosen;
  }
}

TEST_F(TarShards, AnIndexBesideIsOfThatShard) {
  const std::string inner = tar_member("x.cls", "7") + tar_end();
  const std::string content = tar_member("0.tar", inner) + tar_member("1.cls", "1") + tar_end();
  write_file(folder_ / "a.tar", content);
  const std::vector<std::uint64_t> right = data::scan_samples(open_source(folder_ / "a.tar")).begins;
  ASSERT_EQ(right.size(), 3);
  // In the content of a member: behind a header there, and at blocks of zeros.
  for (const std::uint64_t within : {1024, 2048}) {
    const std::vector<std::uint64_t> begins{0, within, right[1], right[2]};
    write_file(folder_ / "a.tar.idx", std::as_bytes(std::span(begins)));
    const Dataset dataset = shards(folder_ / "a.tar", {.index = false});
    ASSERT_EQ(dataset.size(), 3);
    for (const std::int64_t i : {1, 0}) {
      const auto error = error_of(dataset, i);
      ASSERT_TRUE(error) << within;
      EXPECT_EQ(error->code(), ErrorCode::kChanged) << within << error->message();
      EXPECT_THAT(error->message(), HasSubstr(".idx"));
    }
    // Behind what is no sample, the next one may begin anywhere.
    EXPECT_EQ(test::code_of([&] { dataset.get(2); }), ErrorCode::kChanged) << within;
  }
}

TEST_F(TarShards, EachSampleComesOnceOverRanksAndAfterAnotherNumberOfThem) {
  const Dataset dataset = shards(test::write_shards(folder_, {17, 1, 9, 33}), {.index = false});
  ASSERT_EQ(dataset.size(), 60);
  const auto loader = [&](std::int64_t rank, std::int64_t of) {
    return DataLoader(dataset, {.batch_size = 60 / 5 / of,
                                .shuffle = true,
                                .num_workers = 1,
                                .seed = 9,
                                .ranks = Ranks{.rank = rank, .size = of}});
  };
  for (const std::int64_t before : {1, 2, 3, 4}) {
    for (const std::int64_t after : {1, 2, 6}) {
      std::multiset<std::int64_t> seen;
      std::string position;
      for (std::int64_t rank = 0; rank < before; ++rank) {
        DataLoader part = loader(rank, before);
        for (int i = 0; i < 2; ++i) {
          for (const std::int64_t n : test::values_of<std::int64_t>(part.next()->value["cls"].as_tensor()))
            seen.insert(n);
        }
        position = part.position().to_json();
      }
      for (std::int64_t rank = 0; rank < after; ++rank) {
        DataLoader part = loader(rank, after);
        part.seek(LoaderPosition::from_json(position));
        while (const auto batch = part.next()) {
          for (const std::int64_t n : test::values_of<std::int64_t>(batch->value["cls"].as_tensor())) seen.insert(n);
        }
      }
      EXPECT_EQ(seen.size(), 60U);
      EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 60U) << before << " ranks, then " << after;
    }
  }
}

TEST_F(TarShards, FewDescriptorsServeManyShards) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const std::string pattern = test::write_shards(folder_, std::vector<std::int64_t>(150, 2));
  rlimit few = before;
  few.rlim_cur = test::open_files() + 24;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  {
    const Dataset dataset = shards(pattern, {.index = false});
    DataLoader loader(dataset, {.batch_size = 20, .shuffle = true, .num_workers = 2, .seed = 1});
    std::set<std::int64_t> seen;
    while (const auto batch = loader.next()) {
      for (const std::int64_t n : test::values_of<std::int64_t>(batch->value["cls"].as_tensor())) seen.insert(n);
    }
    EXPECT_EQ(seen.size(), 300U);
    EXPECT_EQ(test::classes_of(stream(dataset)).size(), 300U);
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(TarShards, OtherFieldsAreNotReadWhereTheyAreTheLargerPart) {
  std::string content;
  for (int i = 0; i < 20; ++i) {
    content +=
        tar_member(std::to_string(i) + ".cls", "1") + tar_member(std::to_string(i) + ".jpg", std::string(100'000, 'x'));
  }
  const auto read = [&](std::vector<std::string> keys) {
    DataLoader loader(made(content, {.keys = std::move(keys)}), {.batch_size = 5, .num_workers = 0});
    while (loader.next()) continue;
    return loader.stats().read_bytes;
  };
  EXPECT_LT(read({"cls"}), 20U * 8192);
  EXPECT_LT(read({"__key__"}), 20U * 8192);
  EXPECT_GE(read({"jpg"}), 20U * 100'000);
}

TEST_F(TarShards, AnEmptyOneHasNoSample) {
  EXPECT_EQ(made(tar_end()).size(), 0);
  EXPECT_TRUE(test::classes_of(stream(made(tar_end()))).empty());
  write_file(folder_ / "b.tar", test::numbered_shard(3, 1));
  EXPECT_EQ(shards(folder_ / "*.tar", {.index = false}).get(0)["cls"].as_int(), 3);
}

TEST_F(TarShards, MembersOfNoSampleAreNamedWhereThereIsNoOther) {
  const std::string strays = test::tar_header("s/", 0, '5') + tar_member("s/0001", "1") + tar_member("s/0002", "2");
  const auto refused = [&](const std::function<void()>& work, std::string_view shard, std::string_view told) {
    const auto error = test::error_of(work);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
    EXPECT_EQ(error->path(), folder_ / shard);
    EXPECT_THAT(error->message(), HasSubstr(told));
  };
  const auto told = "holds 3 members, such as 's/0001', and none of a sample";
  write_file(folder_ / "b.tar", strays + tar_end());
  const Dataset one = shards(folder_ / "b.tar", {.index_path = folder_ / "index"});
  for (int i = 0; i < 2; ++i) refused([&] { one.size(); }, "b.tar", told);  // nothing of it is kept
  refused([&] { test::classes_of(stream(one)); }, "b.tar", told);
  refused([&] { open(folder_ / "b.tar"); }, "b.tar", told);
  write_file(folder_ / "c.tar", test::tar_header("s/", 0, '5') + tar_end());
  refused([&] { shards(folder_ / "?.tar", {.index = false}).size(); }, "b.tar", "(1 more shard is like it)");

  std::vector<std::string> warnings;
  const ShardsOptions options{.index = false, .warn = [&](const std::string& text) { warnings.push_back(text); }};
  write_file(folder_ / "d.tar", test::numbered_shard(3, 2));
  const Dataset some = shards(folder_ / "?.tar", options);
  const auto warned = ::testing::ElementsAre(HasSubstr(std::string("b.tar: the shard ") + told), HasSubstr("c.tar"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(some.size(), 2);
  EXPECT_THAT(warnings, warned);
  const SampleStream streamed = stream(some);
  warnings.clear();
  for (int i = 0; i < 2; ++i) EXPECT_THAT(test::classes_of(streamed), ::testing::ElementsAre(3, 4));
  EXPECT_THAT(warnings, warned);
}

TEST_F(TarShards, AMemberThatIsAnArchiveIsNoTensors) {
  const std::string inner = tar_member("x.cls", "1") + tar_end();
  const std::string large = tar_member("x.bin", std::string(std::size_t{300} << 10, 'x')) + tar_end();
  for (const std::string& content : {inner, large}) {
    const Dataset data = made(tar_member("a.npy", content) + tar_end());
    EXPECT_EQ(test::code_of([&] { data.get(0); }), ErrorCode::kUnsupported);
    EXPECT_EQ(test::code_of([&] { open(folder_ / "a.tar"); }), ErrorCode::kUnsupported);
  }
}

TEST_F(TarShards, LoadedAsAFileNameTheirMemberInErrorsToo) {
  write_file(folder_ / "a.tar", tar_member("a.cls", "1") + tar_member("b.cls", "x") + tar_end());
  EXPECT_EQ(test::error_of([&] { open(folder_ / "a.tar"); })->tensor(), "b.cls");
}

TEST_F(TarShards, OneWithoutBytesIsNoShard) {
  const Dataset none = made("");
  EXPECT_EQ(test::error_of([&] { none.size(); })->path(), folder_ / "a.tar");
  const auto error = test::error_of([&] { test::classes_of(stream(none)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kTruncated);
}

TEST_F(TarShards, AreFiltersTransformsAndParts) {
  const Dataset dataset = shards(test::write_shards(folder_, {5, 5}), {.keys = {"npy", "cls"}, .index = false});
  EXPECT_EQ(dataset.cast(DType::float64, false, {"npy"}).get(3)["npy"].as_tensor().dtype(), DType::float64);
  const Dataset even = dataset.filter([](const Value& sample) { return sample["cls"].as_int() % 2 == 0; });
  DataLoader loader(even, {.batch_size = 10, .num_workers = 0});
  EXPECT_EQ(test::values_of<std::int64_t>(loader.next()->value["cls"].as_tensor()), (Numbers{0, 2, 4, 6, 8}));
  EXPECT_EQ(subset(dataset, {9, 0}).get(0)["cls"].as_int(), 9);
  EXPECT_THAT(dataset.describe(7), HasSubstr("001.tar[2]"));
}

}  // namespace
}  // namespace penstock
