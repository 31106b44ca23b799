#include "penstock/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "data/dataset_impl.h"
#include "data/support.h"
#include "penstock/save.h"

namespace penstock {
namespace {

using test::bits_of;
using test::TemporaryFolder;
using ::testing::HasSubstr;

TEST(Rows, OfATensorInMemory) {
  const Tensor array = test::numbered_rows(5, 3);
  const Dataset dataset = rows(array);
  ASSERT_EQ(dataset.size(), 5);
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(bits_of(dataset.get(i)), bits_of(Value::tensor(array[i])));
  EXPECT_EQ(bits_of(dataset.get(-1)), bits_of(Value::tensor(array[4])));
  EXPECT_EQ(dataset.describe(2), "<tensor>[2]");
  EXPECT_FALSE(dataset.get(0).as_tensor().buffer().shares_memory_with(array.buffer()));
}

TEST(Rows, OfEveryShapeAndOrder) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const Shape shape = test::random_shape(random, 1, 4, 5);
    Tensor array = test::numbered_tensor(shape, round % 2 == 0 ? DType::int16 : DType::complex128, random());
    if (shape.rank() > 1 && round % 3 == 0) array = array.transpose(0, shape.rank() - 1);
    const Dataset dataset = rows(array);
    ASSERT_EQ(dataset.size(), array.shape()[0]);
    for (std::int64_t i = 0; i < dataset.size(); ++i) {
      ASSERT_EQ(bits_of(dataset.get(i)), bits_of(Value::tensor(array[i]))) << array.to_string();
    }
  }
}

TEST(Rows, OfAFileAreThoseOfTheArrayInIt) {
  TemporaryFolder folder;
  const Tensor array = test::numbered_rows(7, 4);
  save(array, folder / "a.npy");
  save(test::dict_of({{"x", array}, {"y", array.slice(0, 0, 3).clone()}}), folder / "b.safetensors");
  EXPECT_EQ(bits_of(rows(folder / "a.npy").get(3)), bits_of(Value::tensor(array[3])));
  EXPECT_EQ(rows(folder / "b.safetensors", "y").size(), 3);
  EXPECT_EQ(bits_of(rows(open(folder / "b.safetensors")["x"]).get(6)), bits_of(Value::tensor(array[6])));
  EXPECT_EQ(rows(open(folder / "b.safetensors")["x"].slice(0, 2, 5)).size(), 3);
  EXPECT_EQ(rows(folder / "a.npy").describe(3), folder / "a.npy[3]");
}

TEST(Rows, OfCompressedAndSwappedArrays) {
  TemporaryFolder folder;
  const Tensor array = test::numbered_rows(7, 4);
  save(test::dict_of({{"x", array}}), folder / "c.npz", {.compress = true});
  EXPECT_EQ(bits_of(rows(folder / "c.npz").get(5)), bits_of(Value::tensor(array[5])));

  std::string npy = "\x93NUMPY\x01\x00";
  const std::string header = "{'descr': '>i2', 'fortran_order': False, 'shape': (3, 2), }\n";
  npy = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + std::string(1, '\0') + header;
  for (char i = 0; i < 6; ++i) npy += std::string(1, '\0') + i;
  test::write_file(folder / "big.npy", npy);
  EXPECT_EQ(bits_of(rows(folder / "big.npy").get(1)), bits_of(Value::tensor(Tensor::of<std::int16_t>({2, 3}))));
}

TEST(Rows, OfFortranFiles) {
  TemporaryFolder folder;
  const std::string header = "{'descr': '|u1', 'fortran_order': True, 'shape': (3, 2), }\n";
  std::string npy =
      std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + std::string(1, '\0') + header;
  npy += std::string("\0\1\2\3\4\5", 6);
  test::write_file(folder / "f.npy", npy);
  EXPECT_EQ(bits_of(rows(folder / "f.npy").get(1)), bits_of(Value::tensor(Tensor::of<std::uint8_t>({1, 4}))));
}

TEST(Rows, SayWhatIsWrong) {
  TemporaryFolder folder;
  save(test::dict_of({{"x", test::numbered_rows(2, 2)}, {"y", test::numbered_rows(2, 2)}}), folder / "two.npz");
  save(Tensor::zeros(Shape{}), folder / "scalar.npy");
  EXPECT_THAT(test::error_of([&] { rows(folder / "two.npz"); })->what(), HasSubstr("'x', 'y'"));
  EXPECT_EQ(test::code_of([&] { rows(folder / "two.npz", "z"); }), ErrorCode::kKeyNotFound);
  EXPECT_EQ(test::code_of([&] { rows(folder / "scalar.npy"); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(test::code_of([&] { rows(folder / "missing.npy"); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { rows(Tensor()); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([] { rows(test::numbered_rows(3, 1)).get(3); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([] { rows(test::numbered_rows(3, 1)).get(-4); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([] { static_cast<void>(rows(test::numbered_rows(3, 1)).describe(3)); }),
            ErrorCode::kIndexOutOfRange);
}

TEST(Rows, AFileThatIsCutIsAnErrorAndNoCrash) {
  TemporaryFolder folder;
  save(test::numbered_tensor(Shape{100, 4096}, DType::uint8), folder / "a.npy");
  const Dataset dataset = rows(folder / "a.npy");
  ASSERT_EQ(::truncate((folder / "a.npy").c_str(), 50 * 4096), 0);
  // What lies before the cut may be another content by now, too.
  EXPECT_EQ(test::code_of([&] { dataset.get(3); }), ErrorCode::kTruncated);
  const auto error = test::error_of([&] { dataset.get(90); });
  EXPECT_EQ(error->code(), ErrorCode::kTruncated);
  EXPECT_THAT(error->what(), HasSubstr("sample 90"));
  EXPECT_THAT(error->what(), HasSubstr(folder / "a.npy"));
}

TEST(Zip, MakesTuples) {
  const Dataset x = rows(test::numbered_rows(4, 3));
  const Dataset y = rows(test::numbered_rows(4, 1));
  const Dataset both = zip(x, y);
  ASSERT_EQ(both.size(), 4);
  const Value sample = both.get(2);
  ASSERT_EQ(sample.kind(), Value::Kind::kTuple);
  ASSERT_EQ(sample.size(), 2u);
  EXPECT_EQ(bits_of(sample[0]), bits_of(x.get(2)));
  EXPECT_EQ(bits_of(sample[1]), bits_of(y.get(2)));
  const Value nested = zip(both, x).get(1);
  EXPECT_EQ(bits_of(nested[0][1]), bits_of(y.get(1)));
  EXPECT_EQ(bits_of(nested[1]), bits_of(x.get(1)));
  EXPECT_EQ(both.describe(1), "<tensor>[1], <tensor>[1]");
}

TEST(Zip, ZipsOfZipsAreNestedAsTheyWereMade) {
  const Dataset x = rows(test::numbered_rows(4, 3));
  const Dataset y = rows(test::numbered_rows(4, 1));
  // The rows as they are, and behind a function, which are fetched sample by sample.
  for (const Dataset& last : {y, y.map([](const Value& sample) { return sample; })}) {
    const Dataset named = zip({{"x", x}, {"pair", zip(x, last)}});
    const Dataset deep = zip(zip(named, zip(last)), zip({{"all", named}}));
    DataLoader loader(deep, {.batch_size = 4});
    const Value batch = loader.next()->value;
    const auto is_of = [](const Value& part, const Dataset& dataset) {
      return Tensor::identical(part.as_tensor(), DataLoader(dataset, {.batch_size = 4}).next()->tensor());
    };
    EXPECT_TRUE(is_of(batch[0][0]["x"], x));
    EXPECT_TRUE(is_of(batch[0][0]["pair"][0], x));
    EXPECT_TRUE(is_of(batch[0][0]["pair"][1], y));
    EXPECT_TRUE(is_of(batch[0][1][0], y));
    EXPECT_TRUE(is_of(batch[1]["all"]["pair"][1], y));
    EXPECT_EQ(bits_of(deep.get(2)[1]["all"]["x"]), bits_of(x.get(2)));
    DataLoader cast(deep.cast(DType::float64, false, {"pair"}), {.batch_size = 4});
    const Value changed = cast.next()->value;
    EXPECT_EQ(changed[0][0]["pair"][1].as_tensor().dtype(), DType::float64);
    EXPECT_NE(changed[0][0]["x"].as_tensor().dtype(), DType::float64);
    EXPECT_NE(changed[0][1][0].as_tensor().dtype(), DType::float64);
  }
}

TEST(Zip, ADatasetThatStandsInVeryManyPlacesIsNotTakenApart) {
  Dataset dataset = rows(test::numbered_rows(2, 1));
  for (int i = 0; i < 40; ++i) dataset = zip(dataset, dataset);
  EXPECT_EQ(dataset.size(), 2);
}

TEST(Zip, MakesDictsOfNames) {
  const Dataset x = rows(test::numbered_rows(4, 3));
  const Dataset y = rows(test::numbered_rows(4, 1));
  const Dataset both = zip({{"image", x}, {"label", zip(x, y)}});
  const Value sample = both.get(2);
  ASSERT_EQ(sample.kind(), Value::Kind::kDict);
  EXPECT_EQ(bits_of(sample.item(0).first), bits_of(Value::string("image")));
  EXPECT_EQ(bits_of(sample.item(0).second), bits_of(x.get(2)));
  EXPECT_EQ(bits_of(sample.item(1).second[1]), bits_of(y.get(2)));
  DataLoader loader(both, {.batch_size = 4, .num_workers = 1});
  const Value batch = loader.next()->value;
  EXPECT_EQ(batch.item(0).second.as_tensor().shape(), (Shape{4, 3}));
  EXPECT_EQ(batch.item(1).second[1].as_tensor().shape(), (Shape{4, 1}));
  EXPECT_EQ(test::code_of([&] { zip({{"a", x}, {"a", y}}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { zip({{"a", x}, {"b", rows(test::numbered_rows(5, 1))}}); }), ErrorCode::kShapeMismatch);
}

TEST(Paths, AreThoseOfFilesAndOfWhatIsMadeOfThem) {
  TemporaryFolder folder;
  for (const char* name : {"a.npy", "b.npy", "c.npy"}) save(test::numbered_rows(2, 2), folder / name);
  const Dataset all = files(folder.path().string());
  const std::vector<std::string> expected = {folder / "a.npy", folder / "b.npy", folder / "c.npy"};
  EXPECT_EQ(all.paths(), expected);
  EXPECT_EQ(subset(all, {2, 0}).paths(), (std::vector<std::string>{folder / "c.npy", folder / "a.npy"}));
  EXPECT_EQ(concat({subset(all, {1}), all}).paths().size(), 4u);
  EXPECT_EQ(test::code_of([&] { zip(all, all).paths(); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { concat({all, rows(folder / "a.npy")}).paths(); }), ErrorCode::kInvalidArgument);
}

TEST(Zip, RefusesUnequalSizes) {
  const auto error = test::error_of([] { zip(rows(test::numbered_rows(4, 3)), rows(test::numbered_rows(5, 3))); });
  EXPECT_EQ(error->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(error->message(), HasSubstr("5"));
  EXPECT_EQ(test::code_of([] { zip(std::vector<Dataset>{}); }), ErrorCode::kInvalidArgument);
}

TEST(Concat, PutsOneBehindTheOther) {
  const Dataset a = rows(test::numbered_rows(3, 2));
  const Dataset none = rows(test::numbered_rows(0, 2));
  const Dataset b = rows(test::numbered_rows(2, 2));
  const Dataset all = concat({a, none, b, none});
  ASSERT_EQ(all.size(), 5);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(bits_of(all.get(i)), bits_of(a.get(i)));
  for (std::int64_t i = 0; i < 2; ++i) EXPECT_EQ(bits_of(all.get(3 + i)), bits_of(b.get(i)));
  EXPECT_EQ(all.describe(3), "<tensor>[0]");
  EXPECT_EQ(concat({}).size(), 0);
}

TEST(Subset, PicksAndRepeats) {
  const Dataset a = rows(test::numbered_rows(5, 2));
  const Dataset some = subset(a, {4, 0, 4, -2});
  ASSERT_EQ(some.size(), 4);
  EXPECT_EQ(bits_of(some.get(2)), bits_of(a.get(4)));
  EXPECT_EQ(bits_of(some.get(3)), bits_of(a.get(3)));
  EXPECT_EQ(some.describe(1), "<tensor>[0]");
  EXPECT_EQ(test::code_of([&] { subset(a, {5}); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([&] { subset(a, {-6}); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(subset(a, {}).size(), 0);
}

TEST(Combinators, AnErrorFindsItsSample) {
  const auto seven_is_bad = [](std::int64_t index, const data::CallContext&) {
    if (index == 7) throw Error(ErrorCode::kCorrupt, "seven is bad", {.path = "seven.pt"});
  };
  const Dataset inner = test::watched(rows(test::numbered_rows(10, 2)), seven_is_bad);
  const Dataset good = rows(test::numbered_rows(10, 2));
  // Sample 17 of the whole is sample 7 of the second part, which is where the odd one lies.
  const Dataset whole = zip(concat({good, subset(inner, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}), concat({good, good}));
  DataLoader loader(whole, {.batch_sampler = sampler::batches({{3, 12, 17, 0}})});
  const auto error = test::error_of([&] { loader.next(); });
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error->message(), HasSubstr("sample 17 (watched <tensor>[7], <tensor>[7]): seven is bad"));
  EXPECT_EQ(error->path(), "seven.pt");
}

TEST(Combinators, MixSamplesOfDifferentPartsInOneBatch) {
  TemporaryFolder folder;
  const std::vector<Tensor> tensors = test::equal_tensors(6, Shape{4});
  test::write_tensors(folder, tensors, ".npy");
  const Dataset loose = files(folder.path().string());
  const Dataset all = concat({loose, rows(test::numbered_rows(4, 4))});
  DataLoader loader(zip(all, all), {.batch_sampler = sampler::batches({{8, 2, 5, 9, 0}})});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  for (std::size_t i = 0; i < batch->indices.size(); ++i) {
    const std::string expected = bits_of(all.get(batch->indices[i]));
    EXPECT_EQ(bits_of(Value::tensor((*batch)[0][static_cast<std::int64_t>(i)])), expected);
    EXPECT_EQ(bits_of(Value::tensor((*batch)[1][static_cast<std::int64_t>(i)])), expected);
  }
}

TEST(Combinators, TellHowMuchASampleTakesToRead) {
  constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
  const TemporaryFolder folder;
  const std::string path = folder / "a.npy";
  save(test::numbered_rows(7, 4), path);
  const std::uint64_t file_bytes = std::filesystem::file_size(path);
  const auto read_bytes = [](const Dataset& dataset, std::int64_t index) { return dataset.impl().read_bytes(index); };

  const Dataset array = rows(test::numbered_rows(2, 4));
  const std::uint64_t row_bytes = array.get(0).as_tensor().nbytes();
  const Dataset loose = files({path, folder / "missing.npy", folder.path().string()});
  EXPECT_EQ(read_bytes(array, 1), row_bytes);
  EXPECT_EQ(read_bytes(loose, 0), file_bytes);
  EXPECT_EQ(read_bytes(loose, 1), kUnknown);
  EXPECT_EQ(read_bytes(loose, 2), kUnknown);
  const Dataset all = concat({loose, array});
  EXPECT_EQ(read_bytes(all, 0), file_bytes);
  EXPECT_EQ(read_bytes(all, 3), row_bytes);
  EXPECT_EQ(read_bytes(subset(all, {4, 0}), 1), file_bytes);
  EXPECT_EQ(read_bytes(zip(all, all, all), 0), 3 * file_bytes);
  EXPECT_EQ(read_bytes(zip(all, all), 1), kUnknown);
}

}  // namespace
}  // namespace penstock
