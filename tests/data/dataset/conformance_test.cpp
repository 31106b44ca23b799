// What every dataset, and every function or transform of one, must do: give the same batches for any number of workers
// and from any position, give the same samples by `get`, and be packed. A dataset or a transform is one row of a table.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "data/support.h"
#include "data/tar/shards.h"
#include "data/transform/op.h"
#include "penstock/documents.h"
#include "penstock/join.h"
#include "penstock/lengths.h"
#include "penstock/mix.h"
#include "penstock/ops.h"
#include "penstock/pack.h"
#include "penstock/raw.h"
#include "penstock/sample_stream.h"
#include "penstock/windows.h"
#include "support/token_files.h"

namespace penstock {
namespace {

using test::bits_of;
using test::TemporaryFolder;

constexpr std::int64_t kSamples = 11;

struct DatasetRow {
  const char* name;
  Dataset (*make)(const TemporaryFolder& folder);  ///< of kSamples
  bool one_tensor = true;                          ///< samples are tensors of float32, of one shape
};

Tensor sample_tensor(std::int64_t index) { return full({4}, static_cast<double>(index), DType::float32); }

Dataset folder_of(const TemporaryFolder& folder, const char* extension) {
  for (std::int64_t i = 0; i < kSamples; ++i)
    save(sample_tensor(i), test::numbered_path(folder, i, extension), {.sync = false});
  return files(folder.path().string());
}

Dataset in_memory(const TemporaryFolder&) {
  std::vector<Tensor> out;
  for (std::int64_t i = 0; i < kSamples; ++i) out.push_back(sample_tensor(i));
  return dataset(out);
}

struct Own final : DatasetInterface {
  std::int64_t size() const override { return kSamples; }
  Value get(std::int64_t index) const override { return Value::tensor(sample_tensor(index)); }
  std::string describe(std::int64_t index) const override { return "own " + std::to_string(index); }
};

Dataset labelled(const TemporaryFolder& folder) {
  return zip(folder_of(folder, ".npy"), dataset(kSamples, [](std::int64_t i) { return Value::integer(i % 3); }));
}

Dataset flat_rows(std::int64_t count) { return rows(arange(0, count, 1, DType::float32)); }

std::string sample_bytes() {
  std::string out;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const Tensor sample = sample_tensor(i);
    out.append(reinterpret_cast<const char*>(sample.data()), sample.nbytes());
  }
  return out;
}

Dataset headerless(const TemporaryFolder& folder) {
  test::write_file(folder / "x.raw", sample_bytes());
  return rows(raw(folder / "x.raw", {.dtype = DType::float32, .shape = {-1, 4}}));
}

Dataset documents_of_megatron(const TemporaryFolder& folder) {
  test::MegatronIdx idx{.code = 7, .lengths = {}, .offsets = {}, .documents = {0}};
  for (std::int64_t i = 0; i < kSamples; ++i) {
    idx.lengths.push_back(4);
    idx.offsets.push_back(i * 16);
    idx.documents.push_back(i + 1);
  }
  test::write_file(folder / "x.idx", idx.bytes());
  test::write_file(folder / "x.bin", sample_bytes());
  return documents(folder / "x");
}

Dataset shards_of(const TemporaryFolder& folder) {
  test::write_shards(folder, {4, 0, 1, kSamples - 5});
  return shards(folder / "{000..003}.tar", {.keys = {"npy", "cls"}, .index = false});
}

const std::vector<DatasetRow> kDatasets = {
    {"rows", [](const TemporaryFolder&) { return rows(test::numbered_rows(kSamples, 4).to(DType::float32)); }},
    {"files_npy", [](const TemporaryFolder& folder) { return folder_of(folder, ".npy"); }},
    {"files_pt", [](const TemporaryFolder& folder) { return folder_of(folder, ".pt"); }},
    {"headerless", headerless},
    {"documents", documents_of_megatron},
    {"values", in_memory},
    {"function", [](const TemporaryFolder&) { return dataset(kSamples, sample_tensor); }},
    {"repeated", [](const TemporaryFolder& folder) { return take(repeat(folder_of(folder, ".npy"), 2), kSamples); }},
    {"mixed",
     [](const TemporaryFolder& folder) {
       return mix({folder_of(folder, ".npy"), in_memory(folder)}, {1, 2}, {.size = kSamples});
     }},
    {"packed_sequences", [](const TemporaryFolder& folder) { return pack_sequences(folder_of(folder, ".npy"), 7); },
     false},
    {"packed_sequences_with_ends",
     [](const TemporaryFolder& folder) { return pack_sequences(folder_of(folder, ".npy"), 7, {.cu_seqlens = true}); },
     false},
    {"own_class", [](const TemporaryFolder&) { return Dataset(Own()); }},
    {"subset_of_function",
     [](const TemporaryFolder&) {
       return subset(dataset(40, sample_tensor), {3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8});
     }},
    {"concat",
     [](const TemporaryFolder& folder) {
       return subset(concat({in_memory(folder), folder_of(folder, ".npy")}), {0, 20, 1, 19, 2, 18, 3, 17, 4, 16, 5});
     }},
    {"zip", labelled, false},
    {"slices",
     [](const TemporaryFolder&) {
       return slices(flat_rows(90), {0, 80, 7, 4, 8, 33, 34, 86, 61, 2, 50}, std::vector<std::int64_t>(kSamples, 4));
     }},
    {"windows", [](const TemporaryFolder&) { return windows(flat_rows(25), 4, {.stride = 2}); }},
    {"windows_with_targets", [](const TemporaryFolder&) { return windows(flat_rows(45), 4, {.shift = 1}); }, false},
    {"windows_apart",
     [](const TemporaryFolder&) {
       return windows(slices(flat_rows(50), {30, 3, 17}), 4);
     }},
    {"windows_joined",
     [](const TemporaryFolder&) {
       return windows(slices(flat_rows(44), {3, 20, 1, 9, 0, 11}), 4, {.join = JoinSlices::kShuffled});
     }},
    {"random_windows", [](const TemporaryFolder&) { return random_windows(flat_rows(44), 4, kSamples); }},
    {"choice",
     [](const TemporaryFolder& folder) {
       return choice({folder_of(folder, ".npy"), in_memory(folder)});
     }},
    {"join",
     [](const TemporaryFolder& folder) {
       const Dataset all = folder_of(folder, ".npy");
       return join(subset(all, {3, 1, 4, 0, 5, 9, 2, 6, 10, 7, 8}), all);
     },
     false},
    {"fields",
     [](const TemporaryFolder& folder) {
       return fields(folder_of(folder, ".npy"), {{"x", "{name}"}, {"y", "{stem}.npy"}});
     },
     false},
    {"shards", shards_of, false},
};

struct TransformRow {
  const char* name;
  Dataset (*apply)(const Dataset& dataset);
  bool of_tensors = true;  ///< takes nothing but tensors
  bool batched = false;
};

const std::vector<TransformRow> kTransforms = {
    {"none", [](const Dataset& d) { return d; }, false},
    {"same", [](const Dataset& d) { return d.map([](const Value& sample) { return sample; }); }, false},
    {"tensors", [](const Dataset& d) { return d.map([](const Tensor& sample) { return sample * 2; }); }},
    {"chain",
     [](const Dataset& d) { return d.map([](const Tensor& x) { return x + 1; }).map([](Tensor x) { return x * 3; }); }},
    {"dicts",
     [](const Dataset& d) {
       return d.map([](const Value& s) { return Value::dict({{"x", s}, {"n", Value::integer(7)}}); });
     },
     false},
    {"strided", [](const Dataset& d) { return d.map([](const Tensor& x) { return x.slice(0, 0, 4, 2); }); }},
    {"random", [](const Dataset& d) { return d.map([](const Tensor& x, Generator& g) { return x + rand({4}, g); }); }},
    {"random_twice",
     [](const Dataset& d) {
       const auto noise = [](const Tensor& x, Generator& g) { return x + randn({4}, g); };
       return d.map(noise).map(noise);
     }},
    {"filter",
     [](const Dataset& d) {
       return d.map([](const Tensor& x) { return x; }).filter([](const Tensor& x) {
         return x[0].item<float>() < 9000;
       });
     }},
    {"batches",
     [](const Dataset& d) { return d.map([](const Value& batch) { return Value::list({batch}); }, {.batched = true}); },
     false, true},
    {"random_batches",
     [](const Dataset& d) {
       return d.map([](const Tensor& x, Generator& g) { return x + rand(x.shape(), g); }, {.batched = true});
     },
     true, true},
    {"cast", [](const Dataset& d) { return d.cast(DType::float64); }},
    {"scale", [](const Dataset& d) { return d.scale(0.1); }},
    {"normalize",
     [](const Dataset& d) {
       return d.normalize({1, 2, 3, 4}, {0.5});
     }},
    {"clamp", [](const Dataset& d) { return d.clamp(2, 7); }},
    {"permute", [](const Dataset& d) { return d.permute({0}); }},
    {"crop", [](const Dataset& d) { return d.crop({1}, {2}); }},
    {"center_crop", [](const Dataset& d) { return d.center_crop({2}); }},
    {"random_crop", [](const Dataset& d) { return d.random_crop({2}); }},
    {"flip", [](const Dataset& d) { return d.flip(); }},
    {"random_flip", [](const Dataset& d) { return d.random_flip(); }},
    {"pad", [](const Dataset& d) { return d.pad({1}, {2}, 3); }},
    {"one_hot", [](const Dataset& d) { return d.clamp(0, 63).cast(DType::int64).one_hot(64); }},
    {"transforms",
     [](const Dataset& d) { return d.pad({2}, {2}).random_crop({5}).cast(DType::float16).random_flip(); }},
};

using Rows = std::tuple<DatasetRow, TransformRow>;

std::vector<Rows> all_rows() {
  std::vector<Rows> out;
  for (const DatasetRow& dataset : kDatasets) {
    for (const TransformRow& transform : kTransforms) {
      if (dataset.one_tensor || !transform.of_tensors) out.emplace_back(dataset, transform);
    }
  }
  return out;
}

class EveryDataset : public ::testing::TestWithParam<Rows> {
 protected:
  const TransformRow& transform() const { return std::get<1>(GetParam()); }
  Dataset made() const { return transform().apply(std::get<0>(GetParam()).make(folder_)); }

  TemporaryFolder folder_;
};

LoaderOptions options(std::size_t workers) {
  return {.batch_size = 3, .shuffle = true, .num_workers = workers, .seed = 5};
}

TEST_P(EveryDataset, GivesTheSameBatchesForAnyNumberOfWorkers) {
  const Dataset dataset = made();
  DataLoader alone(dataset, options(0));
  for (int epoch = 0; epoch < 2; ++epoch) {
    const std::vector<std::string> expected = test::rest_of_epoch(alone);
    ASSERT_EQ(expected.size(), static_cast<std::size_t>((dataset.size() + 2) / 3));
    for (const std::size_t workers : {1U, 2U, 4U}) {
      DataLoader loader(dataset, options(workers));
      loader.set_epoch(static_cast<std::uint64_t>(epoch));
      EXPECT_EQ(test::rest_of_epoch(loader), expected) << workers;
    }
  }
}

TEST_P(EveryDataset, GoesOnFromEachPosition) {
  const Dataset dataset = made();
  DataLoader whole(dataset, options(1));
  whole.set_epoch(3);
  std::vector<LoaderPosition> positions = {whole.position()};
  std::vector<std::string> expected;
  while (const auto batch = whole.next()) {
    expected.push_back(bits_of(*batch));
    positions.push_back(whole.position());
  }
  for (std::size_t taken = 0; taken <= expected.size(); ++taken) {
    DataLoader loader(dataset, options(taken % 3));
    loader.seek(LoaderPosition::from_json(positions[taken].to_json()));
    const std::vector<std::string> rest(expected.begin() + static_cast<std::ptrdiff_t>(taken), expected.end());
    EXPECT_EQ(test::rest_of_epoch(loader), rest) << taken;
  }
}

TEST_P(EveryDataset, GivesTheSamplesOfItsBatchesAlone) {
  const Dataset dataset = made();
  if (transform().batched) {
    EXPECT_EQ(test::code_of([&] { dataset.get(0); }), ErrorCode::kInvalidArgument);
    return;
  }
  DataLoader loader(dataset, {.batch_size = 4, .num_workers = 2, .collate = collate::samples()});
  std::int64_t seen = 0;
  for (const Batch& batch : loader) {
    for (std::size_t i = 0; i < batch.value.size(); ++i, ++seen) {
      EXPECT_EQ(bits_of(batch.value[i]), bits_of(dataset.get(seen))) << seen;
      EXPECT_FALSE(dataset.describe(seen).empty());
    }
  }
  EXPECT_EQ(seen, dataset.size());
}

TEST_P(EveryDataset, IsPartOfOthers) {
  const Dataset dataset = made();
  const Dataset some = subset(dataset, {2, 0, 1});
  if (transform().batched) {
    EXPECT_EQ(DataLoader(some, {.batch_size = 3, .num_workers = 0}).size(), 1);
    EXPECT_EQ(test::code_of([&] { zip(dataset, dataset); }), ErrorCode::kInvalidArgument);
    EXPECT_EQ(test::code_of([&] { concat({dataset, dataset}); }), ErrorCode::kInvalidArgument);
    return;
  }
  EXPECT_EQ(bits_of(some.get(0)), bits_of(dataset.get(2)));
  EXPECT_EQ(bits_of(concat({some, dataset}).get(3)), bits_of(dataset.get(0)));
  const Dataset both = zip({{"a", dataset}, {"b", dataset}});
  EXPECT_EQ(bits_of(both.get(1)["b"]), bits_of(dataset.get(1)));
  const Value mapped = both.map([](const Value& sample) { return sample["a"]; }).get(1);
  EXPECT_EQ(bits_of(mapped), bits_of(dataset.get(1)));
}

TEST_P(EveryDataset, IsPackedAndReadBack) {
  const Dataset dataset = made();
  const TemporaryFolder target;
  if (transform().batched) {
    EXPECT_EQ(test::code_of([&] { pack(dataset, target / "shards"); }), ErrorCode::kInvalidArgument);
    return;
  }
  EXPECT_EQ(pack(dataset, target / "shards").samples, dataset.size());
  const auto batch_of = [](const Dataset& of) {
    return bits_of(DataLoader(of, {.batch_size = of.size(), .num_workers = 0}).next()->value);
  };
  EXPECT_EQ(batch_of(packed(target / "shards")), batch_of(dataset));
}

TEST_P(EveryDataset, IsAStream) {
  const Dataset dataset = made();
  if (transform().batched) {
    EXPECT_EQ(test::code_of([&] { stream(dataset); }), ErrorCode::kInvalidArgument);
    return;
  }
  DataLoader whole(dataset, {.batch_size = 4, .num_workers = 0});
  const std::vector<std::string> expected = test::rest_of_epoch(whole);
  DataLoader streamed(stream(dataset), {.batch_size = 4, .num_workers = 2});
  EXPECT_EQ(test::rest_of_epoch(streamed), expected);
  streamed.seek({.batch = 2, .batch_size = 4, .order = "stream", .read = 8});
  EXPECT_EQ(test::rest_of_epoch(streamed), std::vector<std::string>(expected.begin() + 2, expected.end()));
}

/// The names of all ops, by the alternatives of the variant.
template <std::size_t... kNumbers>
std::vector<std::string> op_names(std::index_sequence<kNumbers...>) {
  return {std::string(data::name_of(data::Op(std::in_place_index<kNumbers>)))...};
}

TEST(Transforms, HaveARowForEachOp) {
  for (const std::string& name : op_names(std::make_index_sequence<std::variant_size_v<data::Op>>())) {
    const bool found =
        std::any_of(kTransforms.begin(), kTransforms.end(), [&](const auto& row) { return row.name == name; });
    EXPECT_TRUE(found) << "kTransforms has no row for " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryDataset, ::testing::ValuesIn(all_rows()), [](const auto& row) {
  return std::string(std::get<0>(row.param).name) + "_" + std::get<1>(row.param).name;
});

}  // namespace
}  // namespace penstock
