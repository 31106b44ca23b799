#include "data/tar/shard_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/errors.h"
#include "support/files.h"

namespace penstock::data {
namespace {

using test::TemporaryFolder;
using test::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Texts = std::vector<std::string>;

std::optional<ErrorCode> refused(const std::string& text) {
  return test::code_of([&] { expand_braces(text); });
}

TEST(Braces, AreWrittenOut) {
  EXPECT_THAT(expand_braces("a.tar"), ElementsAre("a.tar"));
  EXPECT_THAT(expand_braces("a-{0..3}.tar"), ElementsAre("a-0.tar", "a-1.tar", "a-2.tar", "a-3.tar"));
  EXPECT_THAT(expand_braces("{a,b}-{0..1}"), ElementsAre("a-0", "a-1", "b-0", "b-1"));
  EXPECT_THAT(expand_braces("{a,}"), ElementsAre("a", ""));
  EXPECT_THAT(expand_braces("{a,a}"), ElementsAre("a", "a"));
  EXPECT_THAT(expand_braces("{7..7}"), ElementsAre("7"));
}

TEST(Braces, HaveNumbersOfOneWidthWhereOneHasZerosInFront) {
  EXPECT_THAT(expand_braces("{08..11}"), ElementsAre("08", "09", "10", "11"));
  EXPECT_THAT(expand_braces("{8..11}"), ElementsAre("8", "9", "10", "11"));
  EXPECT_THAT(expand_braces("{0..10}"), SizeIs(11));
  EXPECT_EQ(expand_braces("{0..10}")[3], "3");
  EXPECT_EQ(expand_braces("{00..100}")[3], "003");
  EXPECT_EQ(expand_braces("{9..010}"), (Texts{"009", "010"}));
  EXPECT_EQ(expand_braces("t-{000000..000146}.tar").back(), "t-000146.tar");
}

TEST(Braces, MayLieInOthers) {
  EXPECT_THAT(expand_braces("{a,{b,c}}"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(expand_braces("{a{0..1},b}{x,y}"), ElementsAre("a0x", "a0y", "a1x", "a1y", "bx", "by"));
  EXPECT_THAT(expand_braces("{{a,b},{c,{d,e}}}"), ElementsAre("a", "b", "c", "d", "e"));
}

TEST(Braces, ThatStandForNothingStay) {
  for (const char* text : {"{}", "{a}", "a{b", "a}b", "}{", "{", "{{}}", "{a}{b}"})
    EXPECT_THAT(expand_braces(text), ElementsAre(text));
  EXPECT_THAT(expand_braces("{x{a,b}}"), ElementsAre("{xa}", "{xb}"));
  EXPECT_THAT(expand_braces("{a{0..1}"), ElementsAre("{a0", "{a1"));
}

TEST(Braces, RefuseRangesThatAreNone) {
  for (const char* text :
       {"{3..1}", "{a..c}", "{0..}", "{..3}", "{-1..3}", "{0..6..2}", "{0..1.5}", "{0..99999999999999999999}"}) {
    EXPECT_EQ(refused(text), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(Braces, StandForAMillionAtMost) {
  EXPECT_THAT(expand_braces("{1..1000000}"), SizeIs(1'000'000));
  EXPECT_EQ(refused("{0..1000000}"), ErrorCode::kLimit);
  EXPECT_EQ(refused("{0..999999999999999999}"), ErrorCode::kLimit);
  EXPECT_EQ(refused("{0..9999}{0..9999}{0..9999}"), ErrorCode::kLimit);
}

class Lists : public ::testing::Test {
 protected:
  std::string list(const std::string& json, const std::string& name = "list.json") const {
    write_file(folder_ / name, json);
    return folder_ / name;
  }
  std::optional<ErrorCode> refused(const std::string& json) const {
    return test::code_of([&] { list_shards(Texts{list(json)}); });
  }

  TemporaryFolder folder_{test::quick_folder()};
};

TEST_F(Lists, TakeEachWayToNameShards) {
  for (const char* name : {"b.tar", "a.tar", "c.txt"}) write_file(folder_ / name, "");
  EXPECT_THAT(list_shards(Texts{folder_.path().string()}).paths, ElementsAre(folder_ / "a.tar", folder_ / "b.tar"));
  EXPECT_THAT(list_shards(Texts{folder_ / "*.tar"}).paths, ElementsAre(folder_ / "a.tar", folder_ / "b.tar"));
  EXPECT_THAT(list_shards(Texts{folder_ / "{b,a}.tar"}).paths, ElementsAre(folder_ / "b.tar", folder_ / "a.tar"));
  EXPECT_THAT(list_shards(Texts{(folder_ / "b.tar") + "::" + (folder_ / "{a,b}.tar"), "x"}).paths,
              ElementsAre(folder_ / "b.tar", folder_ / "a.tar", folder_ / "b.tar", "x"));
  EXPECT_THAT(list_shards(Texts{"s3://b/t-{000..002}.tar::http://h/{x,y}.tar?q=*"}).paths,
              ElementsAre("s3://b/t-000.tar", "s3://b/t-001.tar", "s3://b/t-002.tar", "http://h/x.tar?q=*",
                          "http://h/y.tar?q=*"));
  EXPECT_THAT(list_shards(Texts{"http://[::1]:80/a.tar::http://[fe80::2]/b.tar"}).paths,
              ElementsAre("http://[::1]:80/a.tar", "http://[fe80::2]/b.tar"));
}

TEST_F(Lists, RefuseNoShardAndPrograms) {
  EXPECT_EQ(test::code_of([] { list_shards(Texts{}); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { list_shards(Texts{folder_ / "*.tar"}); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { list_shards(Texts{folder_.path().string()}); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([] { list_shards(Texts{"pipe:cat a.tar"}); }), ErrorCode::kUnsafe);
  EXPECT_EQ(test::code_of([] { list_shards(Texts{"a.tar::pipe:curl x"}); }), ErrorCode::kUnsafe);
}

TEST_F(Lists, OfWidsNameShardsBesideThem) {
  const ShardList found =
      list_shards(Texts{list(R"({"wids_version": 1, "name": "n", "__kind__": {"any": [1]}, "shardlist": [
                {"url": "a.tar", "nsamples": 12, "filesize": 5.5}, {"nsamples": null, "url": "sub/b.tar"},
                {"url": "s3://b/c.tar"}], "base": null})"),
                        "d.tar"});
  EXPECT_THAT(found.paths, ElementsAre(folder_ / "a.tar", folder_ / "sub/b.tar", "s3://b/c.tar", "d.tar"));
  ASSERT_THAT(found.samples, SizeIs(4));
  EXPECT_EQ(found.samples[0], 12);
  EXPECT_FALSE(found.samples[1] || found.samples[2] || found.samples[3]);
  const auto at = [&](const std::string& base) {
    return list_shards(Texts{list(R"({"base": ")" + base + R"(", "shardlist": [{"url": "a.tar"}]})")}).paths.front();
  };
  EXPECT_EQ(at("sub"), folder_ / "sub/a.tar");
  EXPECT_EQ(at("sub/"), folder_ / "sub/a.tar");
  EXPECT_EQ(at("http://h/x"), "http://h/x/a.tar");
  EXPECT_EQ(at("s3://b/"), "s3://b/a.tar");
}

TEST_F(Lists, OfWidsNameNoOtherFiles) {
  for (const char* url : {"/etc/passwd", "../a.tar", "sub/../../a.tar", "..", "sub/..", "file:///etc/passwd",
                          "pipe:cat /etc/passwd", "gopher://x/a.tar", "a\\u0000.tar", "/", "//a.tar"}) {
    EXPECT_EQ(refused(std::string(R"({"shardlist": [{"url": ")") + url + "\"}]}"), ErrorCode::kUnsafe) << url;
  }
  for (const char* base : {"/etc", "..", "sub/../..", "file:///etc", "pipe:x"}) {
    EXPECT_EQ(refused(std::string(R"({"base": ")") + base + R"(", "shardlist": [{"url": "a.tar"}]})"),
              ErrorCode::kUnsafe)
        << base;
  }
}

TEST_F(Lists, OfWidsAreReadStrictly) {
  for (const char* json :
       {"", "[]", "{", R"({"shardlist": {}})", R"({"shardlist": ["a.tar"]})", R"({"shardlist": [[]]})",
        R"({"shardlist": [{}]})", R"({"shardlist": [{"url": ""}]})", R"({"shardlist": [{"url": 3}]})",
        R"({"shardlist": [{"url": null}]})", R"({"shardlist": [{"url": "a.tar", "nsamples": -1}]})",
        R"({"shardlist": [{"url": "a.tar", "nsamples": 1.5}]})",
        R"({"shardlist": [{"url": "a.tar", "nsamples": "1"}]})",
        R"({"shardlist": [{"url": "a.tar", "nsamples": 18446744073709551615}]})",
        R"({"shardlist": [{"url": "a.tar", "url": "b.tar"}]})", R"({"shardlist": [{"url": "a.tar"}], "shardlist": []})",
        R"({"shardlist": [{"url": "a.tar"}]} x)"}) {
    EXPECT_EQ(refused(json), ErrorCode::kCorrupt) << json;
  }
  EXPECT_EQ(refused(R"({"shardlist": []})"), ErrorCode::kNotFound);
  EXPECT_EQ(refused(R"({"wids_version": 1})"), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { list_shards(Texts{folder_ / "none.json"}); }), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace penstock::data
