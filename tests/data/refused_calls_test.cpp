// Kernels without a system call, and sandboxes that forbid one: what is only quicker with it works without.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "data/files/twins.h"
#include "data/support.h"
#include "penstock/load.h"
#include "support/process.h"
#include "support/sanitized.h"
#include "support/seccomp.h"

namespace penstock {
namespace {

using test::kSanitized;
using test::Refusal;
using test::TemporaryFolder;

constexpr long kCachestat = 451;

const std::map<std::string, std::vector<Refusal>>& sandboxes() {
  static const std::map<std::string, std::vector<Refusal>> kSandboxes = [] {
    std::map<std::string, std::vector<Refusal>> out;
    const std::vector<std::pair<std::string, long>> calls = {
        {"cachestat", kCachestat}, {"preadv2", SYS_preadv2}, {"statx", SYS_statx},
        {"madvise", SYS_madvise},  {"readv", SYS_readv},     {"sched_getaffinity", SYS_sched_getaffinity},
        {"prctl", SYS_prctl},
    };
    for (const auto& [name, error] : std::map<std::string, int>{{"ENOSYS", ENOSYS}, {"EPERM", EPERM}}) {
      std::vector<Refusal> all;
      for (const auto& [call, number] : calls) {
        if (error == ENOSYS) out[call] = {{number, error}};
        all.push_back({number, error});
      }
      out["all " + name] = all;
      out["cachestat and preadv2 " + name] = {{kCachestat, error}, {SYS_preadv2, error}};
    }
    out["O_DIRECT EINVAL"] = {{SYS_openat, EINVAL, 2, O_DIRECT, {}}};
    out["O_DIRECT EPERM"] = {{SYS_openat, EPERM, 2, O_DIRECT, {}}};
    out["O_PATH EINVAL"] = {{SYS_openat, EINVAL, 2, O_PATH, {}}};
    out["shared mappings EPERM"] = {{SYS_mmap, EPERM, 3, MAP_SHARED, {}}};
    out["shared mappings ENODEV"] = {{SYS_mmap, ENODEV, 3, MAP_SHARED, {}}};
    return out;
  }();
  return kSandboxes;
}

/// Everything that reads: small files, large ones, rows, whole archives past the cache and through it, an index.
std::vector<std::string> read_everything(const TemporaryFolder& folder) {
  std::vector<std::string> out;
  for (const std::string kind : {"small", "large", "damaged"}) {
    DataLoader loader(files(folder / (kind + "/*")), {.batch_size = 4, .num_workers = 2, .collate = collate::ragged()});
    for (std::int64_t i = 0; i < loader.size(); ++i) {
      out.push_back(test::outcome_of([&] { return loader.next()->value; }));
    }
  }
  const FilesOptions kept{.index = true, .index_path = folder / "kept.index"};
  for (int round = 0; round < 2; ++round) out.push_back(files(folder / "small/*", kept).describe(7));
  DataLoader loader(rows(folder / "rows.npy"), {.batch_size = 50, .shuffle = true, .num_workers = 2});
  while (const auto batch = loader.next()) out.push_back(test::print_of(batch->value));
  for (const std::string name : {"rows.npy", "whole.pt", "whole.safetensors", "missing.pt"}) {
    for (const std::optional<bool> map : {std::optional<bool>(), std::optional(true)}) {
      out.push_back(test::outcome_of([&] { return load(folder / name, {.mmap = map}); }));
    }
  }
  return out;
}

void write_everything(const TemporaryFolder& folder) {
  for (const char* name : {"small", "large", "damaged"}) std::filesystem::create_directory(folder / name);
  const std::vector<std::string> extensions = {".npy", ".pt", ".safetensors"};
  for (std::size_t i = 0; i < 12; ++i) {
    const std::string name = (i < 10 ? "000" : "00") + std::to_string(i) + extensions[i / 4];
    save(test::numbered_tensor(Shape{64, 16}, DType::int32, i), folder / ("small/" + name), {.sync = false});
    save(test::numbered_tensor(Shape{1024, 80}, DType::int32, i), folder / ("large/" + name), {.sync = false});
    save(test::numbered_tensor(Shape{32, 32}, DType::int32, i), folder / ("damaged/" + name), {.sync = false});
    if (i % 4 == 2) std::filesystem::resize_file(folder / ("damaged/" + name), 3000);
  }
  for (const char* name : {"rows.npy", "whole.pt", "whole.safetensors"}) {
    save(test::numbered_rows(300, 4000), folder / name, {.sync = false});
  }
}

TEST(RefusedCalls, ChangeNothing) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer makes these calls itself and may end without them";
  for (const auto& [name, refusals] : sandboxes()) {
    const test::Ended ended =
        test::run_again("PENSTOCK_SANDBOX='" + name + "'", "RefusedCalls.DISABLED_ChangeNothingHere");
    EXPECT_EQ(ended.status, 0) << name << "\n" << ended.output;
  }
}

TEST(RefusedCalls, DISABLED_ChangeNothingHere) {
  const char* const name = std::getenv("PENSTOCK_SANDBOX");
  ASSERT_NE(name, nullptr);
  TemporaryFolder folder;
  write_everything(folder);
  const std::vector<std::string> expected = read_everything(folder);
  if (!test::refuse(sandboxes().at(name))) GTEST_SKIP() << "no seccomp filters here";
  const std::vector<std::string> found = read_everything(folder);
  ASSERT_EQ(found.size(), expected.size());
  const bool maps = std::string_view(name).find("mappings") == std::string_view::npos;
  for (std::size_t i = 0; i < found.size(); ++i) {
    // A map that was asked for is refused by name where there can be none.
    const bool no_map = !maps && found[i].starts_with("unsupported: ") && found[i].find("map") != std::string::npos;
    if (!no_map) {
      EXPECT_EQ(found[i], expected[i]) << "read " << i;
    }
  }
}

}  // namespace
}  // namespace penstock
