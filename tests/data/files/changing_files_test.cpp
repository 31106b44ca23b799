// Files that change after they were listed, while an epoch is underway: the error names the sample and its file and
// says what reading that file alone says, and the loader goes on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/files/twins.h"
#include "data/support.h"
#include "penstock/load.h"
#include "support/unprivileged.h"

namespace penstock {
namespace {

using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kFiles = 40;
constexpr std::int64_t kTaken = 3;     ///< batches before the change
constexpr std::int64_t kChanged = 30;  ///< further on than workers have read by then

struct Change {
  std::string name;
  std::function<void(const std::string& path)> apply;
};

const std::vector<Change>& changes() {
  static const std::vector<Change> kChanges = {
      {"deleted", [](const std::string& path) { std::filesystem::remove(path); }},
      {"made a folder",
       [](const std::string& path) {
         std::filesystem::remove(path);
         std::filesystem::create_directory(path);
       }},
      {"made a FIFO",
       [](const std::string& path) {
         std::filesystem::remove(path);
         ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
       }},
      {"made a link to itself",
       [](const std::string& path) {
         std::filesystem::remove(path);
         std::filesystem::create_symlink(path, path);
       }},
      {"made a device",
       [](const std::string& path) {
         std::filesystem::remove(path);
         std::filesystem::create_symlink("/dev/null", path);
       }},
      {"emptied", [](const std::string& path) { std::filesystem::resize_file(path, 0); }},
      {"cut",
       [](const std::string& path) { std::filesystem::resize_file(path, std::filesystem::file_size(path) * 2 / 3); }},
      {"grown", [](const std::string& path) { std::ofstream(path, std::ios::app) << "more than there was"; }},
      {"overwritten", [](const std::string& path) { test::write_file(path, std::string(5000, '?')); }},
      {"another shape",
       [](const std::string& path) {
         save(test::numbered_tensor(Shape{33, 32}, DType::int32, 9), path, {.sync = false});
       }},
      {"other content",
       [](const std::string& path) {
         const std::filesystem::path file(path);
         std::filesystem::copy_file(file.parent_path() / ("0000" + file.extension().string()), file,
                                    std::filesystem::copy_options::overwrite_existing);
       }},
  };
  return kChanges;
}

struct Case {
  std::string extension;
  std::int64_t rows;  ///< small files are read whole, large ones in two steps
  std::size_t workers;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const std::string extension : {".npy", ".pt", ".safetensors"}) {
    for (const std::int64_t rows : {32, 2200}) {
      for (const std::size_t workers : {0U, 2U, 4U}) out.push_back({extension, rows, workers});
    }
  }
  return out;
}

class ChangingFiles : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    for (std::int64_t i = 0; i < kFiles; ++i) {
      const Tensor tensor =
          test::numbered_tensor(Shape{GetParam().rows, 32}, DType::int32, static_cast<std::uint64_t>(i % 4));
      save(tensor, path(i), {.sync = false});
    }
  }
  std::string path(std::int64_t index) const { return test::numbered_path(folder_, index, GetParam().extension); }

  LoaderOptions options() const { return {.num_workers = GetParam().workers, .prefetch_factor = 2}; }

  /// Every batch of an epoch, in which `change` is made after some.
  std::vector<std::string> epoch(DataLoader& loader, const std::function<void()>& change) const {
    std::vector<std::string> out;
    while (out.size() < kFiles + 1) {
      if (static_cast<std::int64_t>(out.size()) == kTaken) change();
      bool ended = false;
      out.push_back(test::outcome_of([&]() -> Value {
        const auto batch = loader.next();
        ended = !batch;
        return batch ? batch->value : Value();
      }));
      if (ended) break;
    }
    return out;
  }

  /// What a loader that begins with the file as it is now says of it.
  std::string alone() const {
    DataLoader loader(files(paths_), {.batch_sampler = sampler::batches({{kChanged}}), .num_workers = 0});
    return test::outcome_of([&] { return loader.next()->value; });
  }

  /// The file in its own place again, as it was.
  void restore() const {
    std::filesystem::remove_all(path(kChanged));
    std::filesystem::copy_file(path(kChanged % 4), path(kChanged));
  }

  void expect_error_of_one_sample(const Change& change, const std::string& what) {
    DataLoader loader(files(folder_.path().string()), options());
    const auto good = epoch(loader, [] {});
    ASSERT_EQ(good.size(), std::size_t{kFiles + 1});
    const auto changed = epoch(loader, [&] { change.apply(path(kChanged)); });
    const std::string expected = alone();
    restore();
    ASSERT_EQ(changed.size(), good.size()) << what;
    for (std::size_t i = 0; i < good.size(); ++i) {
      EXPECT_EQ(changed[i], i == kChanged ? expected : good[i]) << what << ", batch " << i;
    }
    if (!test::is_value(expected)) {
      EXPECT_THAT(expected, AllOf(HasSubstr("sample 30: "), HasSubstr(path(kChanged)))) << what;
    }
    EXPECT_EQ(epoch(loader, [] {}), good) << what << ", the epoch after";
  }

  TemporaryFolder folder_{test::quick_folder()};
  std::vector<std::string> paths_ = [this] {
    std::vector<std::string> out;
    for (std::int64_t i = 0; i < kFiles; ++i) out.push_back(path(i));
    return out;
  }();
};

TEST_P(ChangingFiles, AreErrorsOfTheirSamples) {
  for (const Change& change : changes()) expect_error_of_one_sample(change, change.name);
}

TEST_P(ChangingFiles, ThatCannotBeReadAreErrorsOfTheirSamples) {
  for (std::int64_t i = 0; i < kFiles; ++i) test::Unprivileged::give(path(i));
  test::Unprivileged::give(folder_.path().string());
  const test::Unprivileged unprivileged;
  expect_error_of_one_sample({"unreadable", [](const std::string& path) { ASSERT_EQ(::chmod(path.c_str(), 0), 0); }},
                             "unreadable");
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.extension.substr(1) + (info.param.rows > 1000 ? "_large_" : "_small_") +
         std::to_string(info.param.workers) + "_workers";
}
INSTANTIATE_TEST_SUITE_P(Files, ChangingFiles, ::testing::ValuesIn(cases()), case_name);

std::uint64_t inode_of(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

/// Between the look at a large file's index and the read of its payload. A file that is held open stays as it was when
/// its name is given to another one or to none; what is written into it is an error.
TEST(ChangingLargeFile, IsNoticedWhateverHappensToIt) {
  for (const bool held : {true, false}) {
    const auto others = held ? std::vector<std::unique_ptr<data::HeldDescriptors>>() : test::hold_all();
    for (const std::string extension : {".npy", ".pt", ".safetensors", ".npz"}) {
      for (const Change& change : changes()) {
        TemporaryFolder folder;
        const std::string path = folder / ("a" + extension);
        save(test::numbered_tensor(Shape{4096, 32}, DType::int32, 1), path, {.sync = false});
        save(test::numbered_tensor(Shape{4096, 32}, DType::int32, 2), folder / ("0000" + extension), {.sync = false});
        std::optional<Change> next;
        const auto do_change = [&](std::int64_t, const data::CallContext&) {
          if (next) next->apply(path);
        };
        // The second part of the tuple is fetched after the first, and before any payload is read.
        const Dataset dataset = zip(files(path), test::watched(rows(test::numbered_rows(1, 1)), do_change));
        const auto outcome = [&] {
          DataLoader loader(dataset, {.num_workers = 0});
          return test::outcome_of([&] { return loader.next()->value; });
        };
        const std::string before = outcome();
        ASSERT_TRUE(test::is_value(before)) << before;
        const std::uint64_t inode = inode_of(path);
        next = change;
        const std::string after = outcome();
        if (held && inode_of(path) != inode) {
          EXPECT_EQ(after, before) << change.name;
        } else {
          EXPECT_FALSE(test::is_value(after)) << change.name << ": read as if nothing had happened";
          EXPECT_THAT(after, AllOf(HasSubstr("sample 0"), HasSubstr(path))) << change.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock
