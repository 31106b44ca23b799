// Every way to the bytes of a file, over files that change while they are open: each gives an error, or the bytes of
// the file that was opened, or of the one there is. Never anything else. A new reader is a row of `roads`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "data/support.h"
#include "penstock/load.h"
#include "penstock/pack.h"
#include "penstock/save.h"

namespace penstock {
namespace {

using test::bits_of;
using test::TemporaryFolder;

constexpr std::int64_t kRows = 600;

using Reads = std::vector<std::function<std::string()>>;

struct Road {
  std::string name;
  std::function<Reads(const std::string& path)> open;
};

struct Change {
  std::string name;
  std::function<void(const std::string& path)> apply;
};

void write(const std::string& path, const DType& dtype, std::uint64_t seed, std::int64_t rows) {
  const std::string folder = path + ".folder";
  pack(penstock::rows(test::numbered_tensor(Shape{rows, 100}, dtype, seed)), folder);
  std::filesystem::rename(folder + "/00000.safetensors", path);
  std::filesystem::remove_all(folder);
  // Where the clock of the file system is coarse, what comes next would have the same time.
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
}

/// Into the same file, as a program does that writes over it.
void write_over(const std::string& path, const DType& dtype, std::int64_t rows) {
  const std::string other = path + ".other";
  write(other, dtype, 9, rows);
  const std::string bytes = test::read_file(other);
  std::filesystem::remove(other);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).write(bytes.data(), std::ssize(bytes));
  std::filesystem::resize_file(path, bytes.size());
}

const std::vector<Change>& changes() {
  static const std::vector<Change> kChanges = {
      {"another type", [](const std::string& path) { write_over(path, DType::int32, kRows); }},
      {"other values", [](const std::string& path) { write_over(path, DType::float32, kRows); }},
      {"shorter", [](const std::string& path) { write_over(path, DType::float32, kRows - 100); }},
      {"longer", [](const std::string& path) { write_over(path, DType::float32, kRows + 100); }},
      {"replaced", [](const std::string& path) { write(path, DType::int32, 3, kRows); }},
      {"grown", [](const std::string& path) { std::ofstream(path, std::ios::app) << "more than there was"; }},
      {"cut in its last page",
       [](const std::string& path) { std::filesystem::resize_file(path, std::filesystem::file_size(path) - 50); }},
      {"cut within",
       [](const std::string& path) { std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2 + 100); }},
      {"emptied", [](const std::string& path) { std::filesystem::resize_file(path, 0); }},
  };
  return kChanges;
}

Reads samples_of(const Dataset& dataset) {
  Reads reads;
  for (std::int64_t i = 0; i < dataset.size(); i += 7) {
    reads.emplace_back([dataset, i] { return bits_of(dataset.get(i)); });
  }
  return reads;
}

Reads batches_of(const Dataset& dataset, const LoaderOptions& options) {
  const auto loader = std::make_shared<DataLoader>(dataset, options);
  const auto next = [loader] {
    const std::optional<Batch> batch = loader->next();
    return batch ? bits_of(batch->value) : std::string();
  };
  return Reads(static_cast<std::size_t>((dataset.size() + options.batch_size - 1) / options.batch_size), next);
}

std::function<Reads(const std::string&)> of_archive(const std::function<Tensor(const Archive&)>& read) {
  return [read](const std::string& path) {
    return Reads(2, [read, archive = open(path)] { return bits_of(Value::tensor(read(archive))); });
  };
}

std::function<Reads(const std::string&)> of_load(const LoadOptions& options) {
  return of_archive([options](const Archive& archive) { return archive.load(options).item(0).second.as_tensor(); });
}

Tensor place_for(const TensorEntry& entry, const DType& dtype) { return Tensor::zeros(entry.shape, dtype); }

const std::vector<Road>& roads() {
  static const std::vector<Road> kRoads = {
      {"load", of_load({})},
      {"load by threads", of_load({.threads = 3})},
      {"load past the cache", of_load({.direct = true})},
      {"load mapped", of_load({.mmap = true})},
      {"load storages", of_archive([](const Archive& archive) { return archive.load_storages()[0]; })},
      {"load into", of_archive([](const Archive& archive) {
         const Placement place{0, place_for(archive.entries()[0], archive.entries()[0].dtype)};
         archive.load_into({&place, 1});
         return place.to;
       })},
      {"load into another type", of_archive([](const Archive& archive) {
         const Placement place{0, place_for(archive.entries()[0], DType::float64)};
         archive.load_into({&place, 1});
         return place.to;
       })},
      {"load storages into", of_archive([](const Archive& archive) {
         const auto bytes = static_cast<std::int64_t>(archive.storages()[0].nbytes);
         const StoragePlacement place{0, Tensor::zeros(Shape{bytes}, DType::uint8)};
         archive.load_storages_into({&place, 1});
         return place.to;
       })},
      {"entry", of_archive([](const Archive& archive) { return archive.entry(0).load(); })},
      {"slice", of_archive([](const Archive& archive) { return archive.entry(0).slice(0, 10, 500).load(); })},
      {"scattered slice", of_archive([](const Archive& archive) { return archive.entry(0).slice(1, 3, 50).load(); })},
      {"mapped slice",
       of_archive([](const Archive& archive) { return archive.entry(0).slice(0, 10, 500).load({.mmap = true}); })},
      {"rows", [](const std::string& path) { return samples_of(rows(path)); }},
      {"rows that are read", [](const std::string& path) { return samples_of(rows(path, {}, false)); }},
      {"zip, concat, subset",
       [](const std::string& path) {
         return samples_of(
             zip(subset(concat({rows(path), rows(path, {}, false)}), {5, 9, 1000}), rows(Tensor::zeros({3, 2}))));
       }},
      {"packed", [](const std::string& path) { return samples_of(packed(path)); }},
      {"packed, read", [](const std::string& path) { return samples_of(packed(path, false)); }},
      {"files", [](const std::string& path) { return samples_of(files(path)); }},
      {"loader of rows", [](const std::string& path) { return batches_of(rows(path), {.batch_size = 50}); }},
      {"loader of rows that are read",
       [](const std::string& path) { return batches_of(rows(path, {}, false), {.batch_size = 50, .shuffle = true}); }},
      {"loader of packed",
       [](const std::string& path) { return batches_of(packed(path), {.batch_size = 50, .shuffle = true}); }},
      {"loader of files",
       [](const std::string& path) { return batches_of(files(std::vector<std::string>(4, path)), {.batch_size = 2}); }},
  };
  return kRoads;
}

using Outcome = std::optional<std::string>;

Outcome outcome(const std::function<std::string()>& read) {
  try {
    return read();
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<Outcome> outcomes(const Road& road, const std::string& path) {
  std::vector<Outcome> out;
  try {
    for (const auto& read : road.open(path)) out.push_back(outcome(read));
  } catch (const Error&) {
    out.clear();  // it cannot be opened any more
  }
  return out;
}

TEST(ChangingRoads, GiveAnErrorOrTheBytesOfAFile) {
  for (const Road& road : roads()) {
    for (const Change& change : changes()) {
      SCOPED_TRACE(road.name + ", " + change.name);
      TemporaryFolder folder;
      const std::string path = folder / "a.safetensors";
      write(path, DType::float32, 1, kRows);
      const std::vector<Outcome> before = outcomes(road, path);
      const Reads reads = road.open(path);
      ASSERT_EQ(before.size(), reads.size());
      change.apply(path);
      std::vector<Outcome> found;
      for (const auto& read : reads) found.push_back(outcome(read));
      const std::vector<Outcome> now = outcomes(road, path);
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_TRUE(before[i]);
        if (!found[i] || found[i] == before[i]) continue;
        EXPECT_TRUE(i < now.size() && found[i] == now[i]) << "part " << i;
      }
    }
  }
}

TEST(ChangingRoads, AFileWrittenOverIsChangedAndOneCutIsTruncated) {
  TemporaryFolder folder;
  const std::string path = folder / "a.safetensors";
  write(path, DType::float32, 1, kRows);
  const Archive archive = open(path);
  const Dataset dataset = rows(path);
  const auto both = [&](ErrorCode code) {
    for (const auto& error :
         {test::error_of([&] { archive.load(); }), test::error_of([&] { static_cast<void>(dataset.get(0)); }),
          test::error_of([&] { archive.entry(0).slice(0, 1, 3).load({.mmap = true}); })}) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), code) << error->what();
      EXPECT_EQ(error->path(), path);
    }
  };
  write_over(path, DType::int32, kRows);
  both(ErrorCode::kChanged);
  write_over(path, DType::int32, kRows - 200);
  both(ErrorCode::kChanged);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  both(ErrorCode::kTruncated);
}

}  // namespace
}  // namespace penstock
