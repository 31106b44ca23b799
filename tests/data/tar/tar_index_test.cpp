#include "data/tar/tar_index.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "data/tar/kept_index.h"
#include "data/tar/shards.h"
#include "support/bytes.h"

namespace penstock::data {
namespace {

using test::tar_end;
using test::tar_header;
using test::tar_member;
using test::TemporaryFolder;
using test::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint64_t> scan(const std::string& archive) {
  const TemporaryFolder folder;
  write_file(folder / "a.tar", archive);
  const auto out = scan_samples(open_source(folder / "a.tar")).begins;
  EXPECT_EQ(scan_samples(test::source_of(archive)).begins, out);
  return out;
}

TEST(ScanSamples, TellsWhereEachBegins) {
  EXPECT_THAT(scan(tar_member("a.npy", "x") + tar_member("a.cls", "") + tar_member("b.npy", "x") + tar_end()),
              ElementsAre(0, 1536, 2560));
  EXPECT_EQ(test::code_of([] { scan(""); }), ErrorCode::kTruncated);
  EXPECT_THAT(scan(tar_end()), ElementsAre(0));
  EXPECT_THAT(scan(tar_member("readme", "x")), ElementsAre(0));
}

TEST(ScanSamples, AKeyThatComesAgainIsAnotherSample) {
  EXPECT_THAT(scan(tar_header("a.npy", 0) + tar_header("b.npy", 0) + tar_header("a.cls", 0)),
              ElementsAre(0, 512, 1024, 1536));
}

TEST(ScanSamples, PassesByWhatBelongsToNone) {
  EXPECT_THAT(scan(tar_header("folder/", 0, '5') + tar_header("a.npy", 0) + tar_member("__info__.json", "{}") +
                   tar_header("a.cls", 0) + tar_header("readme", 0) + tar_header("b.npy", 0) + tar_header(".x", 0)),
              ElementsAre(512, 3072, 3584));
}

TEST(ScanSamples, BeginAtTheFirstHeaderOfAMember) {
  EXPECT_THAT(scan(tar_header("a.npy", 0) + test::gnu_long_name("b.npy") + tar_header("x", 0)),
              ElementsAre(0, 512, 2048));
}

TEST(ScanSamples, ACutShardHasTheSampleThatWasCut) {
  const std::string whole = tar_member("a.npy", "x") + tar_member("b.npy", std::string(600, 'y'));
  EXPECT_THAT(scan(whole.substr(0, 1536)), ElementsAre(0, 1024, 3072 - 512));
  EXPECT_THAT(scan(whole.substr(0, 1700)), ElementsAre(0, 1024, 2560));
  EXPECT_THAT(scan(whole.substr(0, 1100)), ElementsAre(0, 1100));  // the header may be of sample a
  EXPECT_EQ(test::code_of([&] { scan(whole.substr(0, 100)); }), ErrorCode::kTruncated);
  EXPECT_EQ(test::code_of([&] { scan(whole + std::string(512, 'j')); }), ErrorCode::kCorrupt);
}

TEST(MayBeBegins, AreRisingBlocksInsideTheShard) {
  using Begins = std::vector<std::uint64_t>;
  EXPECT_TRUE(may_be_begins(Begins{0}, 0));
  EXPECT_TRUE(may_be_begins(Begins{0, 512}, 512));
  EXPECT_TRUE(may_be_begins(Begins{512, 1024, 99'999}, 2000));
  EXPECT_FALSE(may_be_begins(Begins{}, 512));
  EXPECT_FALSE(may_be_begins(Begins{512}, 512));
  EXPECT_FALSE(may_be_begins(Begins{0, 0}, 512));
  EXPECT_FALSE(may_be_begins(Begins{512, 0}, 512));
  EXPECT_FALSE(may_be_begins(Begins{0, 100, 512}, 512));
  EXPECT_FALSE(may_be_begins(Begins{0, 512, 1024}, 512));
  EXPECT_FALSE(may_be_begins(Begins{0, ~std::uint64_t{0} - 511, ~std::uint64_t{0}}, 4096));
}

class KeptShards : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_shards(folder_, {3, 2});
    for (const char* name : {"000.tar", "001.tar"}) paths_.push_back(folder_ / name);
  }

  TarIndex made() const { return TarIndex({.paths = paths_, .samples = {}}, {.is_kept = true, .path = index_}); }
  /// Whether the index now takes what is kept: samples by which headers are gone are found there alone.
  bool is_known(const std::string& path) const {
    const Source source = open_source(path);
    const std::vector<std::string> all = paths_;
    const KeptIndex kept({.is_kept = true, .path = index_}, all);
    return kept.find(path == paths_[0] ? 0 : 1, KeptIndex::version_of(source), source.size()).has_value();
  }
  /// A time in seconds.
  static void set_time(const std::string& path, std::int64_t seconds) {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  TemporaryFolder folder_{test::quick_folder()};
  std::vector<std::string> paths_;
  std::string index_ = folder_ / "shards.index";
};

TEST_F(KeptShards, AreFoundOnce) {
  EXPECT_FALSE(is_known(paths_[0]));
  EXPECT_EQ(made().size(), 5);
  EXPECT_TRUE(is_known(paths_[0]) && is_known(paths_[1]));
  const auto time = std::filesystem::last_write_time(index_);
  const TarIndex again = made();
  EXPECT_EQ(again.size(), 5);
  EXPECT_EQ(again.shard_of(2).path, paths_[0]);
  EXPECT_EQ(again.shard_of(3).path, paths_[1]);
  EXPECT_EQ(std::filesystem::last_write_time(index_), time) << "nothing was new";
}

TEST_F(KeptShards, AreStaleByTimeAndSize) {
  set_time(paths_[0], 1'600'000'000);
  EXPECT_EQ(made().size(), 5);
  set_time(paths_[0], 1'600'000'001);
  EXPECT_FALSE(is_known(paths_[0]));
  EXPECT_TRUE(is_known(paths_[1]));
  EXPECT_EQ(made().size(), 5);
  EXPECT_TRUE(is_known(paths_[0]));
  write_file(paths_[0], test::numbered_shard(0, 4));
  set_time(paths_[0], 1'600'000'001);  // the size alone tells it
  EXPECT_FALSE(is_known(paths_[0]));
  EXPECT_EQ(made().size(), 6);
}

TEST_F(KeptShards, ThatWereReplacedAreStale) {
  set_time(paths_[0], 1'600'000'000);
  EXPECT_EQ(made().size(), 5);
  std::string other = test::read_file(paths_[0]);
  write_file(folder_ / "new", other);
  set_time(folder_ / "new", 1'600'000'000);
  std::filesystem::rename(folder_ / "new", paths_[0]);
  EXPECT_FALSE(is_known(paths_[0]));
}

TEST_F(KeptShards, AnIndexThatIsDamagedAtAnyPlaceCountsAsNone) {
  EXPECT_EQ(made().size(), 5);
  const std::string good = test::read_file(index_);
  for (std::size_t i = 0; i < good.size(); i += 3) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    write_file(index_, bad);
    EXPECT_FALSE(is_known(paths_[0])) << i;
    write_file(index_, good.substr(0, i));
    EXPECT_FALSE(is_known(paths_[0])) << i;
  }
  write_file(index_, good.substr(0, good.size() - 1));
  EXPECT_EQ(made().size(), 5);
  EXPECT_TRUE(is_known(paths_[0])) << "it was written anew";
}

TEST_F(KeptShards, AFileThatIsNoIndexIsNotWrittenOver) {
  write_file(index_, "notes of mine");
  EXPECT_EQ(test::code_of([&] { made(); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::read_file(index_), "notes of mine");
}

TEST_F(KeptShards, OfASetAreKeptForThatSet) {
  EXPECT_EQ(made().size(), 5);
  const TarIndex one({.paths = {paths_[1]}, .samples = {}}, {.is_kept = true, .path = index_});
  EXPECT_EQ(one.size(), 2);
  EXPECT_EQ(made().size(), 5);
  const TarIndex twice({.paths = {paths_[1], paths_[1]}, .samples = {}}, {.is_kept = true, .path = index_});
  EXPECT_EQ(twice.size(), 4);
}

TEST_F(KeptShards, AListMayNotTellAnotherNumberOfSamples) {
  const auto told = [&](std::optional<std::int64_t> number) {
    return TarIndex({.paths = paths_, .samples = {number, std::nullopt}}, {.is_kept = true, .path = index_}).size();
  };
  EXPECT_EQ(told(3), 5);
  EXPECT_EQ(told({}), 5);
  for (const std::int64_t wrong : {0, 2, 4}) {
    const auto error = test::error_of([&] { told(wrong); });
    EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
    EXPECT_EQ(error->path(), paths_[0]);
    EXPECT_THAT(error->message(), HasSubstr("has 3"));
  }
}

/// What Energon writes beside a shard.
class BesideShards : public ::testing::Test {
 protected:
  void SetUp() override {
    content_ = test::numbered_shard(0, 3);
    content_.resize((content_.size() + 10239) / 10240 * 10240, '\0');
    write_file(path_, content_);
    begins_ = scan_samples(open_source(path_)).begins;
  }
  void write(const std::vector<std::uint64_t>& begins) const {
    write_file(path_ + ".idx", std::as_bytes(std::span(begins)));
  }
  std::vector<std::uint64_t> taken() const {
    const TarIndex index({.paths = {path_}, .samples = {}}, {.is_kept = false, .path = {}});
    return index.shards().front().begins;
  }
  /// Makes the headers of the second sample unreadable, so that only an index can name three samples.
  void hide_headers() const {
    std::string damaged = content_;
    damaged[begins_[1]] = '?';
    write_file(path_, damaged);
  }

  TemporaryFolder folder_{test::quick_folder()};
  std::string path_ = folder_ / "a.tar";
  std::string content_;
  std::vector<std::uint64_t> begins_;
};

TEST_F(BesideShards, AreTaken) {
  hide_headers();
  EXPECT_EQ(test::code_of([&] { taken(); }), ErrorCode::kCorrupt);
  write(begins_);
  EXPECT_EQ(taken(), begins_);
}

TEST_F(BesideShards, ThatAreOlderAreNot) {
  write({begins_[0], begins_[2], begins_[3]});
  const timespec old[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (path_ + ".idx").c_str(), old, 0), 0);
  EXPECT_EQ(taken(), begins_);
}

TEST_F(BesideShards, ThatCannotBeRightAreNot) {
  const std::uint64_t end = begins_[3];
  for (const std::vector<std::uint64_t>& wrong : {std::vector<std::uint64_t>{},
                                                  {0},
                                                  {0, 0, end},
                                                  {0, end, begins_[1]},
                                                  {0, begins_[1] + 1, end},
                                                  {0, std::uint64_t{1} << 40, std::uint64_t{1} << 41},
                                                  {0, ~std::uint64_t{0}},
                                                  {0, begins_[1], begins_[2]},    // the last sample is missing
                                                  {begins_[1], begins_[2], end},  // the first is
                                                  {0, begins_[1], begins_[2], end - 512}}) {
    write(wrong);
    EXPECT_EQ(taken(), begins_) << wrong.size();
  }
  write_file(path_ + ".idx", "123");
  EXPECT_EQ(taken(), begins_);
  std::filesystem::remove(path_ + ".idx");
  std::filesystem::create_directory(path_ + ".idx");
  EXPECT_EQ(taken(), begins_);
}

TEST_F(BesideShards, ThatEndAtZeroBlocksLoseNothingBehindThem) {
  write_file(path_, content_ + test::numbered_shard(7, 1));
  write(begins_);
  EXPECT_EQ(taken().size(), begins_.size() + 1);
}

TEST_F(BesideShards, MayLeaveOutWhatIsNoSample) {
  const std::string folder = tar_header("s/", 0, '5');
  write_file(path_, folder + content_);
  std::vector<std::uint64_t> begins = begins_;
  for (std::uint64_t& begin : begins) begin += folder.size();
  write(begins);
  EXPECT_EQ(taken(), begins);
}

TEST_F(BesideShards, OfNoSampleDoNotHideWhatIsThere) {
  write_file(path_, tar_member("readme", "x") + tar_end());
  write({0});
  const auto error = test::error_of([&] { taken(); });
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), HasSubstr("holds 1 member, such as 'readme', and none of a sample"));
}

TEST(TarIndex, RefusesWhatIsNoShard) {
  const TemporaryFolder folder(test::quick_folder());
  const auto refused = [&](const std::string& content) {
    write_file(folder / "a.tar", content);
    return test::error_of(
        [&] { TarIndex({.paths = {folder / "a.tar"}, .samples = {}}, {.is_kept = false, .path = {}}); });
  };
  EXPECT_EQ(refused(std::string("\x1f\x8b\x08\0\0\0\0\0\0\0", 10))->code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refused("<html>" + std::string(600, 'x'))->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(refused("short")->code(), ErrorCode::kTruncated);
  EXPECT_EQ(refused("short")->path(), folder / "a.tar");
  EXPECT_EQ(
      test::code_of([&] { TarIndex({.paths = {folder / "none.tar"}, .samples = {}}, {.is_kept = false, .path = {}}); }),
      ErrorCode::kNotFound);
}

}  // namespace
}  // namespace penstock::data
