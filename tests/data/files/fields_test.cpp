#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "data/dataset/pairs.h"
#include "penstock/join.h"
#include "support/http_server.h"

namespace penstock {
namespace {

using test::NamedFiles;
using test::numbers_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Fields, AreReadFromTemplates) {
  const NamedFiles folder;
  folder.add("images", {1, 2, 3});
  folder.add("masks", {1, 2, 3}, "_mask");
  const Dataset samples = fields(folder.files("images"), {{"image", "{name}"}, {"mask", "../masks/{stem}_mask.npy"}});
  EXPECT_EQ(numbers_of(samples), "1|1 2|2 3|3");
  EXPECT_EQ(samples.get(0).item(1).first.as_string(), "mask");
  EXPECT_EQ(samples.paths(), folder.files("images").paths());
  EXPECT_EQ(numbers_of(fields(subset(folder.files("images"), {2, 0}), {{"m", "../masks/{stem}_mask.npy"}})), "3 1");
  DataLoader loader(samples, {.batch_size = 3, .shuffle = true, .num_workers = 2, .seed = 1});
  const Value batch = loader.next()->value;
  EXPECT_EQ(test::bits_of(batch["image"]), test::bits_of(batch["mask"]));
}

TEST(Fields, MirrorATreeOfFolders) {
  const NamedFiles folder;
  folder.add("images/cat/1.npy", 1);
  folder.add("images/dog/old/1.npy", 2);
  folder.add("masks/cat/1.npy", 1);
  folder.add("masks/dog/old/1.npy", 2);
  const Dataset samples =
      fields(folder.files("images/**/*.npy"), {{"i", "{name}"}, {"m", "{root}/../masks/{path}.npy"}});
  EXPECT_EQ(numbers_of(samples), "1|1 2|2");
}

TEST(Fields, ThatAreNotThereAreNamedOrLeftOut) {
  const NamedFiles folder;
  for (int i = 0; i < 40; ++i) folder.add("images", {i});
  for (int i = 0; i < 40; i += 2) folder.add("masks", {i});
  folder.add("few", {0, 1});
  const std::vector<std::pair<std::string, std::string>> templates = {{"image", "{name}"}, {"mask", "../masks/{name}"}};
  const auto error = test::error_of([&] { fields(folder.files("images"), templates); });
  EXPECT_EQ(error->code(), ErrorCode::kNotFound);
  EXPECT_THAT(error->message(), AllOf(HasSubstr("20 files"), HasSubstr("masks/1.npy (mask)"), HasSubstr(", ...")));
  EXPECT_EQ(error->path(), folder.at("masks/1.npy"));
  const Dataset dropped = fields(folder.files("images"), templates, {.missing = Missing::kDrop});
  EXPECT_EQ(dropped.size(), 20);
  EXPECT_EQ(dropped.paths()[1], folder.at("images/10.npy"));
  EXPECT_EQ(numbers_of(subset(dropped, {1})), "10|10");
  const auto one = test::error_of([&] { fields(folder.files("few"), {{"mask", "../masks/{name}"}}); });
  EXPECT_THAT(one->message(), HasSubstr("1 file that fields derive is not there"));
  EXPECT_EQ(test::code_of([&] {
              fields(folder.files("few"), {{"m", "../absent/{name}"}}, {.missing = Missing::kDrop});
            }),
            ErrorCode::kNotFound)
      << "nothing would be left";
  const Dataset unchecked = fields(folder.files("images"), templates, {.check = false});
  EXPECT_EQ(test::error_of([&] { unchecked.get(1); })->path(), folder.at("masks/1.npy"));
  EXPECT_EQ(test::code_of([&] { fields(folder.files("few"), templates, {.missing = Missing::kDrop, .check = false}); }),
            ErrorCode::kInvalidArgument);
}

TEST(Fields, AreRawWhereTheListedFilesAreOrWhereNamed) {
  const NamedFiles folder;
  folder.add("a", {1});
  const auto dtypes = [](const Dataset& dataset) {
    const Value sample = dataset.get(0);
    return std::pair(sample["x"].as_tensor().dtype(), sample["y"].as_tensor().dtype());
  };
  const std::vector<std::pair<std::string, std::string>> both = {{"x", "{name}"}, {"y", "{name}"}};
  const Dataset raw = files(folder.at("a/*.npy"), {.raw = true});
  EXPECT_EQ(dtypes(fields(raw, both)), std::pair(DType(DType::uint8), DType(DType::uint8)));
  EXPECT_EQ(dtypes(fields(raw, both, {.raw = {{"y"}}})), std::pair(DType(DType::int64), DType(DType::uint8)));
  EXPECT_EQ(dtypes(fields(folder.files("a"), both, {.raw = {{"x"}}})),
            std::pair(DType(DType::uint8), DType(DType::int64)));
  EXPECT_THAT(test::error_of([&] { fields(raw, both, {.raw = {{"z"}}}); })->message(), HasSubstr("'z'"));
}

TEST(Fields, AreOfPlainFilesAlone) {
  const NamedFiles folder;
  folder.add("a/x", {1});
  const Dataset plain = folder.files("a/*/*.npy");
  const auto refused = [](const Dataset& dataset) {
    return test::code_of([&] { fields(dataset, {{"x", "{name}"}}); }) == ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(plain.cast(DType::float32)));
  EXPECT_TRUE(refused(plain.map([](const Value& sample) { return sample; })));
  EXPECT_TRUE(refused(files(folder.at("a/*/*.npy"), {.keys = {"k"}})));
  EXPECT_TRUE(refused(files(folder.at("a/*/*.npy"), {.class_folders = true})));
  EXPECT_TRUE(refused(rows(Tensor::zeros({2, 2}))));
  EXPECT_TRUE(refused(concat({plain, files(folder.at("a/*/*.npy"), {.raw = true})})));
  EXPECT_EQ(test::code_of([&] { fields(plain, {}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { fields(plain, {{"x", "{name}"}, {"x", "{name}"}}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(numbers_of(fields(concat({plain, plain}), {{"x", "{name}"}})), "1 1");
}

TEST(Fields, OfFilesThatTheProgramOpensAreOpenedByIt) {
  const NamedFiles folder;
  folder.add("a", {1, 2});
  const auto open = [&](const std::string& path) { return open_source(folder.at("a/" + path.substr(8))); };
  const Dataset stored = files({"store://1.npy", "store://2.npy"}, {.source = open});
  EXPECT_EQ(numbers_of(fields(stored, {{"x", "{stem}.npy"}, {"y", "{name}"}})), "1|1 2|2");
  EXPECT_EQ(test::code_of([&] {
              fields(stored, {{"x", "{name}"}}, {.missing = Missing::kDrop});
            }),
            ErrorCode::kUnsupported);
}

/// A bucket with the masks of images 0 to 2, listed once.
TEST(Fields, InABucketAreListedOnce) {
  std::atomic<int> lists = 0;
  test::HttpServer server([&](const test::HttpRequest& request) {
    if (request.target.find("list-type=2") == std::string::npos) return test::http_answer(404, "");
    ++lists;
    std::string body = "<?xml version=\"1.0\"?><ListBucketResult>";
    for (int i = 0; i < 3; ++i) {
      body += "<Contents><Key>m/" + std::to_string(i) + ".npy</Key><Size>1</Size></Contents>";
    }
    return test::http_answer(200, body + "</ListBucketResult>");
  });
  ::setenv("AWS_ENDPOINT_URL", server.url("").c_str(), 1);
  ::setenv("PENSTOCK_S3_ANONYMOUS", "1", 1);
  const auto listed = [](int count) {
    std::vector<std::string> paths;
    for (int i = 0; i < count; ++i) paths.push_back("s3://bucket/i/" + std::to_string(i) + ".npy");
    return files(paths);
  };
  EXPECT_EQ(fields(listed(3), {{"m", "../m/{name}"}}).size(), 3);
  EXPECT_EQ(lists, 1);
  EXPECT_THAT(test::error_of([&] {
                fields(listed(5), {{"m", "../m/{name}"}});
              })->message(),
              HasSubstr("2 files that fields derive are not there: s3://bucket/m/3.npy"));
  const Dataset web = files({"http://127.0.0.1:9/i/1.npy"});
  EXPECT_EQ(fields(web, {{"m", "../m/{name}"}}).size(), 1) << "nobody can list it";
  EXPECT_EQ(test::code_of([&] {
              fields(web, {{"m", "../m/{name}"}}, {.missing = Missing::kDrop});
            }),
            ErrorCode::kUnsupported);
  ::unsetenv("AWS_ENDPOINT_URL");
  ::unsetenv("PENSTOCK_S3_ANONYMOUS");
}

}  // namespace
}  // namespace penstock
