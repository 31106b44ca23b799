// What a process may have is little: the loaders work, or say which limit it is, and never hang. Each case is a process
// of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "data/files/twins.h"
#include "data/support.h"
#include "penstock/load.h"
#include "support/limited_addresses.h"
#include "support/process.h"
#include "support/sanitized.h"

namespace penstock {
namespace {

using test::kSanitized;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Runs DISABLED_<name>, which finds `folder` in its environment.
void run_case(const std::string& name, const TemporaryFolder& folder, const std::string& environment = {}) {
  const test::Ended ended =
      test::run_again("PENSTOCK_FOLDER='" + folder.path().string() + "' " + environment, "Limits.DISABLED_" + name);
  EXPECT_EQ(ended.status, 0) << ended.output;
}

std::string folder_of_case() {
  const char* const folder = std::getenv("PENSTOCK_FOLDER");
  return folder != nullptr ? folder : "";
}

void limit(int resource, rlim_t most) {
  rlimit now{};
  ASSERT_EQ(::getrlimit(static_cast<__rlimit_resource_t>(resource), &now), 0);
  now.rlim_cur = std::min(most, now.rlim_max);
  ASSERT_EQ(::setrlimit(static_cast<__rlimit_resource_t>(resource), &now), 0);
}

/// 10,000 files in 100 folders, by 100 contents.
void write_tree(const TemporaryFolder& folder) {
  for (int i = 0; i < 100; ++i) {
    const std::string content = folder / ("content" + std::to_string(i));
    save(test::numbered_tensor(Shape{4, 8}, DType::int32, static_cast<std::uint64_t>(i)), content,
         {.format = i % 2 == 0 ? "npy" : "pt", .sync = false});
    const std::filesystem::path to = folder.path() / "tree" / std::to_string(100 + i);
    std::filesystem::create_directories(to);
    for (int k = 0; k < 100; ++k) {
      std::filesystem::create_hard_link(content, to / (std::to_string(100 + k) + (i % 2 == 0 ? ".npy" : ".pt")));
    }
  }
}

TEST(Limits, FewDescriptorsAndManyFiles) {
  const TemporaryFolder folder(test::quick_folder());
  write_tree(folder);
  run_case("FewDescriptorsAndManyFiles", folder);
}

TEST(Limits, DISABLED_FewDescriptorsAndManyFiles) {
  limit(RLIMIT_NOFILE, 64);
  const std::string tree = folder_of_case() + "/tree/**";
  // Each would hold folders open, were there enough descriptors.
  const std::vector<Dataset> several = {files(tree), files(tree), files(tree)};
  ASSERT_EQ(several[0].size(), 10'000);
  const std::vector<std::string> expected = [&] {
    DataLoader loader(several[0], {.batch_size = 500, .num_workers = 0});
    return test::rest_of_epoch(loader);
  }();
  for (const Dataset& dataset : several) {
    DataLoader loader(dataset, {.batch_size = 500, .num_workers = 16});
    EXPECT_EQ(test::rest_of_epoch(loader), expected);
  }
  DataLoader loader(zip(several), {.batch_size = 500, .num_workers = 16});
  EXPECT_EQ(test::rest_of_epoch(loader).size(), expected.size());
}

TEST(Limits, FewDescriptorsAndManyArchives) {
  if (kSanitized) GTEST_SKIP() << "UndefinedBehaviorSanitizer takes objects for invalid when it has no descriptor left";
  const TemporaryFolder folder(test::quick_folder());
  for (int i = 0; i < 120; ++i) {
    save(test::numbered_tensor(Shape{100}, DType::int32, 1),
         folder / (std::to_string(i) + (i % 2 == 0 ? ".pt" : ".safetensors")), {.sync = false});
  }
  save(test::numbered_tensor(Shape{3000, 1000}, DType::int32, 1), folder / "large.npy", {.sync = false});
  run_case("FewDescriptorsAndManyArchives", folder);
}

TEST(Limits, DISABLED_FewDescriptorsAndManyArchives) {
  limit(RLIMIT_NOFILE, 64);
  const auto path = [](int i) {
    return folder_of_case() + "/" + std::to_string(i) + (i % 2 == 0 ? ".pt" : ".safetensors");
  };
  const std::string large = folder_of_case() + "/large.npy";
  const std::string expected = test::outcome_of([&] { return load(large); });
  std::vector<Archive> archives;
  const auto error = test::error_of([&] {
    for (int i = 0; i < 120; ++i) archives.push_back(open(path(i)));
  });
  EXPECT_EQ(error->code(), ErrorCode::kIo);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("ulimit -n"), HasSubstr(path(static_cast<int>(archives.size())))));
  EXPECT_GT(archives.size(), 50U);
  // Those that are open still load, and a loader without a descriptor says so of each sample.
  for (const Archive& archive : archives) EXPECT_NO_THROW(archive.load());
  DataLoader loader(files({path(0), path(2)}), {.num_workers = 1});
  for (int i = 0; i < 2; ++i) {
    const auto starved = test::error_of([&] { loader.next(); });
    EXPECT_THAT(starved->what(), AllOf(HasSubstr("ulimit -n"), HasSubstr("sample " + std::to_string(i))));
  }
  // One descriptor is all that a load needs, though it would use a second for direct reads.
  archives.pop_back();
  EXPECT_EQ(test::outcome_of([&] { return load(large); }), expected);
  EXPECT_FALSE(loader.next());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(loader.next());
  archives.clear();
  for (int i = 0; i < 120; ++i) EXPECT_NO_THROW(load(path(i)));
}

TEST(Limits, LittleMemoryToLock) {
  const TemporaryFolder folder(test::quick_folder());
  write_tree(folder);
  run_case("LittleMemoryToLock", folder);
}

TEST(Limits, DISABLED_LittleMemoryToLock) {
  limit(RLIMIT_MEMLOCK, kMiB);
  DataLoader loader(files(folder_of_case() + "/tree/**"), {.batch_size = 500, .num_workers = 16});
  EXPECT_EQ(test::rest_of_epoch(loader).size(), 20U);
  EXPECT_EQ(load_tensor(folder_of_case() + "/tree/100/100.npy").shape(), (Shape{4, 8}));
}

/// A `.npy` of `rows` rows of a MiB of zeros, which takes no room.
void write_sparse_npy(const std::string& path, std::size_t rows) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", 1048576), }";
  header.resize(117, ' ');
  test::write_file(path, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + '\n');
  std::filesystem::resize_file(path, 128 + rows * kMiB);
}

/// What a process may have of memory beyond what it has.
std::size_t address_space() {
  std::ifstream pages("/proc/self/statm");
  std::size_t size = 0;
  pages >> size;
  return size * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// The batches of an epoch, none of which is kept.
std::size_t count(DataLoader& loader) {
  std::size_t out = 0;
  while (loader.next()) ++out;
  return out;
}

/// With little memory: what is too large is refused by name, what is small goes on.
void expect_refusals(const std::string& folder, std::size_t workers) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(test::code_of([&] { load_tensor(folder + "/large.npy"); }), ErrorCode::kOutOfMemory);
    DataLoader large(files(std::vector<std::string>(12, folder + "/medium.npy")),
                     {.batch_size = 12, .num_workers = workers});
    const auto error = test::error_of([&] { large.next(); });
    EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(error->what(), HasSubstr("batch 0"));
    DataLoader small(files(std::vector<std::string>(40, folder + "/medium.npy")),
                     {.num_workers = workers, .memory_budget = 128 * kMiB});
    EXPECT_EQ(count(small), 40U);
  }
}

TEST(Limits, LittleAddressSpace) {
  if (kSanitized) GTEST_SKIP() << "sanitizers reserve terabytes";
  if (const auto why = test::LimitedAddresses::why_not(); !why.empty()) GTEST_SKIP() << why;
  const TemporaryFolder folder(test::quick_folder());
  write_sparse_npy(folder / "large.npy", 1024);
  write_sparse_npy(folder / "medium.npy", 50);
  // Arenas of the C library reserve 64 MiB for each thread; without, all are in one place.
  run_case("LittleAddressSpace", folder, "MALLOC_ARENA_MAX=1");
}

TEST(Limits, DISABLED_LittleAddressSpace) {
  limit(RLIMIT_AS, address_space() + 400 * kMiB);
  expect_refusals(folder_of_case(), 0);
  expect_refusals(folder_of_case(), 2);
  // As many threads as there is room for stacks of, or an error that says so.
  try {
    DataLoader loader(files(std::vector<std::string>(100, folder_of_case() + "/medium.npy")), {.num_workers = 200});
    loader.next();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(error.what(), HasSubstr("worker"));
  }
}

/// The control group of this process, and a way to make one below it.
class MemoryGroup {
 public:
  explicit MemoryGroup(std::size_t bytes) {
    std::ifstream membership("/proc/self/cgroup");
    for (std::string line; std::getline(membership, line);) {
      const std::size_t path = line.find(':', line.find(':') + 1) + 1;
      const bool v1 = line.find(":memory:") != std::string::npos;
      const bool v2 = line.starts_with("0::") && std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers");
      if (!v1 && !v2) continue;
      make((v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup") + line.substr(path),
           v1 ? "memory.limit_in_bytes" : "memory.max", bytes);
    }
  }
  ~MemoryGroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  /// Empty where none can be made.
  const std::string& path() const { return path_; }

 private:
  void make(const std::string& parent, const std::string& limit, std::size_t bytes) {
    const std::string path = parent + "/penstock-test-" + std::to_string(::getpid());
    std::error_code failed;
    if (!path_.empty() || !std::filesystem::create_directory(path, failed)) return;
    std::ofstream file(path + "/" + limit);
    if (file << bytes << std::flush) {
      path_ = path;
    } else {
      ::rmdir(path.c_str());
    }
  }

  std::string path_;
};

TEST(Limits, ALittleControlGroup) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need more memory";
  const MemoryGroup group(256 * kMiB);
  if (group.path().empty()) GTEST_SKIP() << "no control group can be made here";
  // On a disk: memory that files take counts.
  const TemporaryFolder folder;
  write_sparse_npy(folder / "large.npy", 1024);
  write_sparse_npy(folder / "medium.npy", 50);
  run_case("ALittleControlGroup", folder, "PENSTOCK_GROUP='" + group.path() + "'");
}

TEST(Limits, DISABLED_ALittleControlGroup) {
  const char* const group = std::getenv("PENSTOCK_GROUP");
  ASSERT_NE(group, nullptr);
  ASSERT_TRUE(std::ofstream(std::string(group) + "/cgroup.procs") << "0" << std::flush);
  expect_refusals(folder_of_case(), 0);
  expect_refusals(folder_of_case(), 2);
  // More than there is memory for, by parts.
  DataLoader loader(rows(folder_of_case() + "/large.npy"), {.batch_size = 16, .num_workers = 2});
  EXPECT_EQ(loader.size(), 64);
  EXPECT_EQ(count(loader), 64U);
}

}  // namespace
}  // namespace penstock
