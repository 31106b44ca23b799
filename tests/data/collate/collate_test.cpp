#include "penstock/collate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "data/collate/rule.h"
#include "data/support.h"
#include "penstock/ops.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::bits_of;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A dataset of these values, one file each.
Dataset file_per_value(const TemporaryFolder& folder, const std::vector<Value>& values) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < values.size(); ++i) {
    paths.push_back(test::numbered_path(folder, static_cast<std::int64_t>(i), ".pt"));
    save(values[i], paths.back(), {.sync = false});
  }
  return files(paths);
}

Dataset file_per_tensor(const TemporaryFolder& folder, const std::vector<Tensor>& tensors) {
  std::vector<Value> values;
  for (const Tensor& tensor : tensors) values.push_back(Value::tensor(tensor));
  return file_per_value(folder, values);
}

/// All samples as one batch.
Batch collate_all(const Dataset& dataset, const Collate& collate) {
  DataLoader loader(dataset, {.batch_size = dataset.size(), .collate = collate});
  return loader.next().value();
}

std::optional<Error> collate_error(const Dataset& dataset, const Collate& collate) {
  return test::error_of([&] { collate_all(dataset, collate); });
}

TEST(Stack, AddsADimension) {
  const Tensor array = test::numbered_rows(5, 3);
  const Batch batch = collate_all(rows(array), collate::stack());
  EXPECT_EQ(bits_of(batch.value), bits_of(Value::tensor(array)));
  EXPECT_EQ(batch.size(), 5);
}

/// Numbers of this shape whose dimensions lie in this order in memory, outermost first.
Tensor stored_as(const std::vector<std::int64_t>& sizes, const std::vector<std::size_t>& order) {
  Shape strides(sizes);
  std::int64_t step = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    strides[*dim] = step;
    step *= sizes[*dim];
  }
  const Tensor flat = test::numbered_rows(1, step);
  return Tensor(flat.buffer(), flat.dtype(), Shape(sizes), strides, 0);
}

TEST(Stack, KeepsChannelsLastWhereAllSamplesAreSo) {
  const Tensor last = stored_as({2, 3, 4, 5}, {0, 2, 3, 1});
  const Tensor rows = last.contiguous();
  for (const std::size_t others : {0, 1}) {
    TemporaryFolder folder;
    std::vector<Tensor> tensors(3, last);
    for (std::size_t i = 0; i < others; ++i) tensors.push_back(rows);
    const Dataset samples = file_per_tensor(folder, tensors);
    const Tensor batch = collate_all(samples, data::stack_in_order()).tensor();
    EXPECT_EQ(batch.strides(), others == 0 ? Strides({120, 60, 1, 15, 3}) : batch.shape().contiguous_strides());
    EXPECT_TRUE(collate_all(samples, collate::stack()).tensor().is_contiguous());
    EXPECT_TRUE(Tensor::identical(batch.contiguous(), collate_all(samples, collate::stack()).tensor()));
  }
}

TEST(Samples, LieInTheOrderOfTheirFileWhereThatIsAskedFor) {
  TemporaryFolder folder;
  const std::vector<Tensor> tensors = {stored_as({4, 5}, {1, 0}), stored_as({2, 3, 4}, {1, 2, 0}),
                                       Tensor::of<int>({7})};
  const Dataset samples = file_per_tensor(folder, tensors);
  const Value in_order = collate_all(samples, data::samples_in_order()).value;
  const Value in_rows = collate_all(samples, collate::samples()).value;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(in_order[i].as_tensor().strides(), tensors[i].strides());
    EXPECT_TRUE(in_rows[i].as_tensor().is_contiguous());
    EXPECT_TRUE(samples[static_cast<std::int64_t>(i)].as_tensor().is_contiguous());
    EXPECT_TRUE(Tensor::identical(in_order[i].as_tensor().contiguous(), in_rows[i].as_tensor()));
  }
}

TEST(Stack, AMarkForGradientsIsThatOfTheBatch) {
  TemporaryFolder folder;
  const Tensor plain = test::numbered_rows(2, 3).to(DType::float32);
  const Dataset samples = file_per_tensor(folder, {plain, plain.with_requires_grad(true), plain});
  EXPECT_TRUE(collate_all(samples, collate::stack()).tensor().requires_grad());
  EXPECT_FALSE(collate_all(subset(samples, {0, 2}), collate::stack()).tensor().requires_grad());
  EXPECT_TRUE(samples[1].as_tensor().requires_grad());
}

TEST(Stack, ScalarsBecomeTensorsAndTextStaysAList) {
  TemporaryFolder folder;
  std::vector<Value> values;
  for (std::int64_t i = 0; i < 3; ++i) {
    values.push_back(
        Value::dict({{"x", Value::tensor(test::numbered_tensor(Shape{2}, DType::float16, 1))},
                     {"i", Value::integer(i - 1)},
                     {"f", Value::real(0.5 * static_cast<double>(i))},
                     {"b", Value::boolean(i == 1)},
                     {"c", Value::complex({1.0, static_cast<double>(i)})},
                     {"s", Value::string("text" + std::to_string(i))},
                     {"n", Value()},
                     {"t", Value::tuple({Value::integer(7), Value::list({Value::real(static_cast<double>(i))})})}}));
  }
  const Batch batch = collate_all(file_per_value(folder, values), collate::stack());
  EXPECT_EQ(batch["x"].shape(), (Shape{3, 2}));
  EXPECT_EQ(bits_of(batch.value["i"]), bits_of(Value::tensor(Tensor::of<std::int64_t>({-1, 0, 1}))));
  EXPECT_EQ(bits_of(batch.value["f"]), bits_of(Value::tensor(Tensor::of<double>({0, 0.5, 1}))));
  EXPECT_EQ(bits_of(batch.value["b"]), bits_of(Value::tensor(Tensor::of<bool>({false, true, false}))));
  EXPECT_EQ(batch["c"].dtype(), DType::complex128);
  const Tensor complex = batch["c"];
  EXPECT_EQ(reinterpret_cast<const double*>(complex.data())[5], 2.0);
  EXPECT_EQ(bits_of(batch.value["s"]),
            bits_of(Value::list({Value::string("text0"), Value::string("text1"), Value::string("text2")})));
  EXPECT_EQ(bits_of(batch.value["n"]), bits_of(Value::list({Value(), Value(), Value()})));
  EXPECT_TRUE(batch.value["t"].is(Value::Kind::kTuple));
  EXPECT_EQ(bits_of(batch.value["t"][1][0]), bits_of(Value::tensor(Tensor::of<double>({0, 1, 2}))));
}

TEST(Stack, NamesTheSamplesThatDiffer) {
  TemporaryFolder folder;
  const Dataset shapes =
      file_per_tensor(folder, {Tensor::zeros(Shape{3, 4}), Tensor::zeros(Shape{3, 4}), Tensor::zeros(Shape{2, 4})});
  const auto shape = collate_error(shapes, collate::stack());
  EXPECT_EQ(shape->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(shape->message(), AllOf(HasSubstr("stack expects each tensor to be equal size"), HasSubstr("sample 2 ("),
                                      HasSubstr("0002.pt"), HasSubstr("(2, 4)"), HasSubstr("sample 0 ("),
                                      HasSubstr("(3, 4)"), HasSubstr("pad")));
  TemporaryFolder other;
  const Dataset dtypes = file_per_tensor(other, {Tensor::zeros(Shape{3}), Tensor::zeros(Shape{3}, DType::float64)});
  const auto dtype = collate_error(dtypes, collate::stack());
  EXPECT_EQ(dtype->code(), ErrorCode::kDTypeMismatch);
  EXPECT_THAT(dtype->message(), AllOf(HasSubstr("sample 1 ("), HasSubstr("float64"), HasSubstr("float32")));
}

TEST(Stack, NamesTheStructuresThatDiffer) {
  const Value x = Value::tensor(Tensor::zeros(Shape{3}));
  const std::vector<std::pair<Value, Value>> unequal = {
      {Value::dict({{"x", x}}), Value::dict({{"y", x}})},
      {Value::list({x, x}), Value::list({x})},
      {Value::list({x}), Value::tuple({x})},
      {x, Value::list({x})},
      {Value::dict({{"x", x}, {"y", Value::integer(1)}}), Value::dict({{"x", x}, {"y", Value::real(1)}})},
      {Value::dict({{"x", x}, {"y", Value()}}), Value::dict({{"x", x}, {"y", x}})},
  };
  for (const auto& [a, b] : unequal) {
    TemporaryFolder folder;
    const Dataset dataset = file_per_value(folder, {a, a, b});
    for (const Collate& rule : {collate::stack(), collate::pad(), collate::ragged()}) {
      const auto error = collate_error(dataset, rule);
      EXPECT_EQ(error->code(), ErrorCode::kShapeMismatch);
      EXPECT_THAT(error->message(), AllOf(HasSubstr("each element in list of batch should be of equal size"),
                                          HasSubstr("sample 2 ("), HasSubstr("sample 0 (")));
    }
  }
  TemporaryFolder folder;
  EXPECT_THAT(collate_error(file_per_value(folder, {unequal[4].first, unequal[4].second}), collate::stack())->message(),
              HasSubstr("['y'] is a float where"));
}

TEST(Samples, NeedHaveNothingInCommon) {
  const auto number = [](std::int64_t i) { return Value::tensor(test::numbered_rows(i + 1, 2)); };
  // Small ones and one that is read by parts.
  const Value large = Value::tensor(test::numbered_rows(100'000, 3));
  const std::vector<Value> values = {
      number(0),
      Value::list({number(1), number(2)}),
      Value::dict({{"x", number(3)}, {"n", Value::integer(4)}}),
      Value::dict({{"n", Value::integer(5)}, {"big", large}}),
      Value::tuple({Value(), number(6), Value::dict({{"deep", number(7)}})}),
      Value::list({}),
  };
  TemporaryFolder folder;
  const Dataset dataset = file_per_value(folder, values);
  for (const std::size_t workers : {0U, 2U}) {
    DataLoader loader(dataset, {.batch_size = 4, .num_workers = workers, .collate = collate::samples()});
    std::size_t seen = 0;
    for (const Batch& batch : loader) {
      for (std::size_t i = 0; i < batch.value.size(); ++i, ++seen) {
        EXPECT_TRUE(bits_of(batch.value[i]) == bits_of(values[seen])) << seen;
      }
    }
    EXPECT_EQ(seen, values.size());
  }
}

TEST(Collates, RefuseWhatIsNoSample) {
  TemporaryFolder folder;
  for (const Value& odd : {Value::dtype(DType::float32), Value::set({Value::integer(1)}),
                           Value::big_integer("1" + std::string(30, '0'))}) {
    const auto error = collate_error(file_per_value(folder, {Value::dict({{"odd", odd}})}), collate::stack());
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error->message(), AllOf(HasSubstr("sample 0"), HasSubstr("['odd']"), HasSubstr("keys")));
  }
}

TEST(Collates, TakeOneSample) {
  for (const data::CollateEntry& entry : data::collates()) {
    const Batch batch = collate_all(rows(test::numbered_rows(1, 8)), entry.make());
    EXPECT_EQ(batch.size(), 1) << entry.name;
  }
}

// Every rule of the table keeps every element of samples of equal shape.
TEST(Collates, KeepWhatIsThere) {
  const Tensor array = test::numbered_rows(6, 8);
  for (const data::CollateEntry& entry : data::collates()) {
    Batch batch = collate_all(rows(array), entry.make());
    if (batch.value.is(Value::Kind::kDict)) batch.value = Value::tensor(batch["values"].reshape({6, 8}));
    for (std::int64_t i = 0; i < 6; ++i) {
      const Tensor sample = batch.value.is(Value::Kind::kList) ? batch[static_cast<int>(i)] : batch.tensor()[i];
      EXPECT_EQ(bits_of(Value::tensor(sample)), bits_of(Value::tensor(array[i]))) << entry.name;
    }
  }
}

TEST(Pad, GoesToTheLongest) {
  TemporaryFolder folder;
  const Dataset dataset = file_per_tensor(
      folder, {Tensor::of<std::int32_t>({1, 2, 3}), Tensor::of<std::int32_t>({4}), Tensor::of<std::int32_t>({})});
  const Batch batch = collate_all(dataset, collate::pad({.value = -1, .lengths = true, .mask = true}));
  EXPECT_EQ(batch["values"].shape(), (Shape{3, 3}));
  EXPECT_THAT(test::values_of<std::int32_t>(batch["values"]), ::testing::ElementsAre(1, 2, 3, 4, -1, -1, -1, -1, -1));
  EXPECT_THAT(test::values_of<std::int64_t>(batch["lengths"]), ::testing::ElementsAre(3, 1, 0));
  EXPECT_THAT(test::values_of<bool>(batch["mask"]),
              ::testing::ElementsAre(true, true, true, true, false, false, false, false, false));
  const Batch only = collate_all(dataset, collate::pad({.lengths = true}));
  EXPECT_EQ(only.value.size(), 2u);
  EXPECT_FALSE(only.value.find("mask"));
}

TEST(Pad, ToALengthCutsAndPads) {
  TemporaryFolder folder;
  const Dataset dataset =
      file_per_tensor(folder, {Tensor::of<std::int32_t>({1, 2, 3, 4}), Tensor::of<std::int32_t>({5})});
  const Batch batch = collate_all(dataset, collate::pad_to(3, {.lengths = true}));
  EXPECT_THAT(test::values_of<std::int32_t>(batch["values"]), ::testing::ElementsAre(1, 2, 3, 5, 0, 0));
  EXPECT_THAT(test::values_of<std::int64_t>(batch["lengths"]), ::testing::ElementsAre(3, 1));
  const Batch none = collate_all(dataset, collate::pad_to(0, {.mask = true}));
  EXPECT_EQ(none["values"].shape(), (Shape{2, 0}));
  EXPECT_EQ(none["mask"].shape(), (Shape{2, 0}));
}

/// What padding means, element by element.
Tensor padded(const std::vector<Tensor>& tensors, std::size_t dim, std::int64_t length, PadMode mode) {
  Shape slot = tensors[0].shape();
  slot[dim] = length;
  Tensor out = Tensor::zeros(slot.prepend(static_cast<std::int64_t>(tensors.size())), tensors[0].dtype());
  const std::size_t itemsize = out.dtype().itemsize();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t own = std::min(tensors[i].shape()[dim], length);
    for (std::int64_t at = 0; at < length; ++at) {
      std::int64_t from = at;
      if (at >= own && mode == PadMode::kConstant) continue;
      if (at >= own && mode == PadMode::kReplicate) from = own - 1;
      for (; from >= own || from < 0;) from = from >= own ? 2 * (own - 1) - from : -from;
      const Tensor target = out[static_cast<std::int64_t>(i)].select(dim, at);
      const Tensor source = tensors[i].select(dim, from).contiguous();
      // Elements of the strided target, one by one.
      std::vector<std::int64_t> index(target.rank(), 0);
      for (std::int64_t n = 0; n < source.numel(); ++n) {
        std::int64_t offset = 0;
        std::int64_t rest = n;
        for (std::size_t d = target.rank(); d-- > 0;) {
          offset += rest % target.shape()[d] * target.strides()[d];
          rest /= target.shape()[d];
        }
        std::memcpy(target.data() + static_cast<std::size_t>(offset) * itemsize,
                    source.data() + static_cast<std::size_t>(n) * itemsize, itemsize);
      }
    }
  }
  return out;
}

TEST(Pad, AnyDimensionModeAndTypeFromMemoryAndFiles) {
  std::mt19937 random(11);
  TemporaryFolder folder;
  for (int round = 0; round < 150; ++round) {
    const DType dtype = std::vector{DType::uint8, DType::int16, DType::float32, DType::complex128}[random() % 4];
    const auto mode = static_cast<PadMode>(random() % 3);
    Shape shape = test::random_shape(random, 1, 3, 4);
    const std::size_t dim = random() % shape.rank();
    std::vector<Tensor> tensors;
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < 1 + random() % 5; ++i) {
      shape[dim] = 2 + static_cast<std::int64_t>(random() % 6);
      longest = std::max(longest, shape[dim]);
      tensors.push_back(test::numbered_tensor(shape, dtype, random()));
    }
    const bool to_length = random() % 2 == 0;
    const std::int64_t length = to_length ? 2 + static_cast<std::int64_t>(random() % 8) : longest;
    const auto signed_dim =
        static_cast<std::int64_t>(dim) - (random() % 2 == 0 ? static_cast<std::int64_t>(shape.rank()) : 0);
    const PadOptions options{.dim = signed_dim, .mode = mode};
    const Collate rule = to_length ? collate::pad_to(length, options) : collate::pad(options);
    const std::string expected = bits_of(Value::tensor(padded(tensors, dim, length, mode)));
    EXPECT_EQ(bits_of(collate_all(file_per_tensor(folder, tensors), rule).value), expected);
    std::vector<Dataset> memory;
    for (const Tensor& tensor : tensors) {
      // One row of a Fortran-ordered array, so that elements lie apart.
      Tensor row = tensor.reshape(tensor.shape().prepend(1));
      if (round % 2 == 0 && row.rank() > 2) row = row.transpose(1, 2).clone().transpose(1, 2);
      memory.push_back(rows(row));
    }
    EXPECT_EQ(bits_of(collate_all(concat(memory), rule).value), expected);
  }
}

TEST(Pad, SeveralDimensionsToTheLargestOfEach) {
  TemporaryFolder folder;
  const Tensor wide = test::numbered_tensor(Shape{2, 3}, DType::int32, 1);
  const Tensor high = test::numbered_tensor(Shape{3, 1}, DType::int32, 2);
  const auto a = test::values_of<std::int32_t>(wide);
  const auto b = test::values_of<std::int32_t>(high);
  const std::vector<std::int32_t> expected = {a[0], a[1], a[2], a[3], a[4], a[5], -1,   -1, -1,
                                              b[0], -1,   -1,   b[1], -1,   -1,   b[2], -1, -1};
  const PadOptions options{.dims = {0, 1}, .value = -1, .lengths = true, .mask = true};
  for (const Dataset& samples : {dataset({wide, high}), file_per_tensor(folder, {wide, high})}) {
    const Batch batch = collate_all(samples, collate::pad(options));
    EXPECT_EQ(batch["values"].shape(), (Shape{2, 3, 3}));
    EXPECT_EQ(test::values_of<std::int32_t>(batch["values"]), expected);
    EXPECT_EQ(batch["lengths"].shape(), (Shape{2, 2}));
    EXPECT_THAT(test::values_of<std::int64_t>(batch["lengths"]), ::testing::ElementsAre(2, 3, 3, 1));
    EXPECT_EQ(batch["mask"].shape(), (Shape{2, 3, 3}));
    std::vector<std::int32_t> inside;
    const auto mask = test::values_of<bool>(batch["mask"]);
    for (std::size_t i = 0; i < mask.size(); ++i) EXPECT_EQ(mask[i], expected[i] != -1) << i;
    // Behind a transform, whose result has a place of its own before it is padded.
    const Batch cast = collate_all(samples.cast(DType::float64), collate::pad(options));
    EXPECT_EQ(bits_of(Value::tensor(cast["values"].to(DType::int32))), bits_of(Value::tensor(batch["values"])));
  }
}

TEST(Pad, ToSizesOfTheLastDimensionsRefusesLargerSamples) {
  TemporaryFolder folder;
  const Dataset samples = file_per_tensor(folder, {Tensor::zeros(Shape{1, 4, 3}), Tensor::zeros(Shape{1, 2, 5})});
  const Batch batch = collate_all(samples, collate::pad_to({4, 6}, {.lengths = true}));
  EXPECT_EQ(batch["values"].shape(), (Shape{2, 1, 4, 6}));
  EXPECT_THAT(test::values_of<std::int64_t>(batch["lengths"]), ::testing::ElementsAre(4, 3, 2, 5));
  EXPECT_EQ(collate_all(samples, collate::pad_to({6, 4}, {.dims = {-1, 1}})).tensor().shape(), (Shape{2, 1, 4, 6}));
  const auto large = collate_error(samples, collate::pad_to({4, 4}));
  EXPECT_EQ(large->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(large->message(), AllOf(HasSubstr("sample 1"), HasSubstr("(1, 2, 5)"), HasSubstr("dimension 2"),
                                      HasSubstr("crop"), HasSubstr("0001")));
}

TEST(Pad, RefusesDimensionsThatDoNotGoTogether) {
  const Dataset samples = rows(test::numbered_rows(2, 3).reshape({2, 3, 1}));
  const auto invalid = [&](auto make) {
    EXPECT_EQ(test::code_of([&] { collate_all(samples, make()); }), ErrorCode::kInvalidArgument);
  };
  invalid([] { return collate::pad({.dims = {0, 0}}); });
  invalid([] { return collate::pad({.dims = {1, -1}}); });
  invalid([] { return collate::pad({.dim = 1, .dims = {0, 1}}); });
  invalid([] { return collate::pad_to(3, {.dims = {0, 1}}); });
  invalid([] { return collate::pad_to({3, 4}, {.dims = {0}}); });
  invalid([] { return collate::pad_to({3, -4}); });
  invalid([] { return collate::pad_to(std::vector<std::int64_t>{}); });
  EXPECT_EQ(collate_error(samples, collate::pad({.dims = {0, 2}}))->code(), ErrorCode::kShapeMismatch);
}

TEST(Pad, OnlyTheKeysItIsGiven) {
  TemporaryFolder folder;
  std::vector<Value> values;
  for (std::int64_t i = 1; i < 4; ++i) {
    values.push_back(Value::dict({{"a", Value::tensor(Tensor::zeros(Shape{i}))},
                                  {"b", Value::tensor(Tensor::zeros(Shape{2, 2}))},
                                  {"c", Value::tensor(Tensor::zeros(Shape{}))}}));
  }
  const Dataset dataset = file_per_value(folder, values);
  const Batch some = collate_all(dataset, collate::pad_to(5, {.lengths = true, .keys = {"a"}}));
  EXPECT_EQ(some.value["a"]["values"].as_tensor().shape(), (Shape{3, 5}));
  EXPECT_EQ(some["b"].shape(), (Shape{3, 2, 2}));
  const Batch all = collate_all(dataset, collate::pad_to(5));
  EXPECT_EQ(all["a"].shape(), (Shape{3, 5}));
  EXPECT_EQ(all["b"].shape(), (Shape{3, 5, 2}));
  EXPECT_EQ(all["c"].shape(), (Shape{3})) << "what lacks the dimension is stacked";

  const auto missing = collate_error(dataset, collate::pad({.keys = {"aa"}}));
  EXPECT_EQ(missing->code(), ErrorCode::kKeyNotFound);
  EXPECT_THAT(missing->message(), AllOf(HasSubstr("'aa'"), HasSubstr("did you mean 'a'")));
  EXPECT_EQ(collate_error(dataset, collate::pad({.dim = 1, .keys = {"a"}}))->code(), ErrorCode::kShapeMismatch);
}

TEST(Pad, SaysWhatDoesNotFit) {
  TemporaryFolder folder;
  const Dataset other_dim = file_per_tensor(folder, {Tensor::zeros(Shape{2, 3}), Tensor::zeros(Shape{2, 4})});
  const auto differ = collate_error(other_dim, collate::pad());
  EXPECT_EQ(differ->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(differ->message(), AllOf(HasSubstr("sample 1"), HasSubstr("dimension 0 alone")));
  EXPECT_EQ(collate_all(other_dim, collate::pad({.dim = 1})).tensor().shape(), (Shape{2, 2, 4}));

  TemporaryFolder ranks;
  EXPECT_EQ(collate_error(file_per_tensor(ranks, {Tensor::zeros(Shape{2}), Tensor::zeros(Shape{2, 4})}), collate::pad())
                ->code(),
            ErrorCode::kShapeMismatch);

  TemporaryFolder tiny;
  const Dataset short_ones = file_per_tensor(tiny, {Tensor::zeros(Shape{3}), Tensor::zeros(Shape{1})});
  EXPECT_THAT(collate_error(short_ones, collate::pad({.mode = PadMode::kReflect}))->message(),
              AllOf(HasSubstr("sample 1"), HasSubstr("needs 2 or more")));
  EXPECT_NO_THROW(collate_all(short_ones, collate::pad({.mode = PadMode::kReplicate})));
  EXPECT_NO_THROW(collate_all(short_ones, collate::pad_to(1, {.mode = PadMode::kReflect})));
  TemporaryFolder none;
  EXPECT_EQ(
      collate_error(file_per_tensor(none, {Tensor::zeros(Shape{0})}), collate::pad_to(1, {.mode = PadMode::kReplicate}))
          ->code(),
      ErrorCode::kShapeMismatch);

  EXPECT_EQ(
      collate_error(file_per_tensor(none, {Tensor::zeros(Shape{2}, DType::uint8)}), collate::pad_to(3, {.value = 256}))
          ->code(),
      ErrorCode::kDTypeMismatch);
  EXPECT_EQ(test::code_of([] { collate::pad_to(-1); }), ErrorCode::kInvalidArgument);
}

TEST(Ragged, KeepsTensorsApartInOneBlock) {
  TemporaryFolder folder;
  const std::vector<Tensor> tensors = {
      test::numbered_tensor(Shape{3, 2}, DType::int16, 1), test::numbered_tensor(Shape{0}, DType::float64, 2),
      test::numbered_tensor(Shape{}, DType::uint8, 3), test::numbered_tensor(Shape{5}, DType::complex64, 4)};
  const Batch batch = collate_all(file_per_tensor(folder, tensors), collate::ragged());
  ASSERT_EQ(batch.value.kind(), Value::Kind::kList);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(bits_of(batch.value[i]), bits_of(Value::tensor(tensors[i])));
    EXPECT_TRUE(batch[i].buffer().shares_memory_with(batch[0].buffer()));
  }
}

/// A dict of a sequence of `length` rows, and a number.
Value sequence_of(std::int64_t length) {
  return Value::dict({{"x", Value::tensor(test::numbered_tensor(Shape{length, 2}, DType::int16, length))},
                      {"label", Value::tensor(Tensor::of<std::int64_t>({length}).reshape({}))},
                      {"n", Value::integer(length)}});
}

TEST(Ragged, JoinsTensorsAndSaysWhereEachEnds) {
  TemporaryFolder folder;
  std::vector<Value> values;
  std::vector<Tensor> parts;
  for (const std::int64_t length : {3, 0, 5, 1}) {
    values.push_back(sequence_of(length));
    parts.push_back(values.back()["x"].as_tensor());
  }
  const Dataset loose = file_per_value(folder, values);
  for (const Dataset& dataset : {loose, penstock::dataset(values)}) {
    const Batch batch = collate_all(dataset, collate::ragged({.cu_seqlens = true}));
    EXPECT_EQ(bits_of(batch.value["x"]["values"]), bits_of(Value::tensor(cat(parts))));
    EXPECT_EQ(bits_of(batch.value["x"]["cu_seqlens"]),
              bits_of(Value::tensor(Tensor::of<std::int32_t>({0, 3, 3, 8, 9}))));
    EXPECT_EQ(batch.value["x"]["max_seqlen"].as_int(), 5);
    EXPECT_EQ(bits_of(batch.value["label"]), bits_of(Value::tensor(Tensor::of<std::int64_t>({3, 0, 5, 1}))));
    EXPECT_EQ(bits_of(batch.value["n"]), bits_of(batch.value["label"]));
  }
  const Batch cast = collate_all(loose.cast(DType::float64, false, {"x"}), collate::ragged({.cu_seqlens = true}));
  EXPECT_EQ(bits_of(cast.value["x"]["values"]), bits_of(Value::tensor(cat(parts).to(DType::float64))));
  const Dataset pair = penstock::dataset({values[0], values[0]});
  const Batch named = collate_all(pair, collate::ragged({.cu_seqlens = true, .keys = {"x"}}));
  EXPECT_EQ(named.value["x"]["max_seqlen"].as_int(), 3);
}

TEST(Ragged, RefusesWhatCannotBeJoined) {
  const auto code_of = [](const std::vector<Tensor>& tensors, const RaggedOptions& options) {
    return test::code_of([&] { collate_all(dataset(tensors), collate::ragged(options)); });
  };
  const RaggedOptions joined{.cu_seqlens = true};
  EXPECT_EQ(code_of({Tensor::zeros({2, 3}), Tensor::zeros({2, 4})}, joined), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of({Tensor::zeros({2}), Tensor::zeros({2, 4})}, joined), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of({Tensor::zeros({2}), Tensor::zeros({})}, joined), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of({Tensor::zeros({2}), Tensor::zeros({2}, DType::int8)}, joined), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(code_of({Tensor::zeros({2})}, {.cu_seqlens = true, .keys = {"x"}}), ErrorCode::kKeyNotFound);
  EXPECT_EQ(test::code_of([] { collate::ragged({.keys = {"x"}}); }), ErrorCode::kInvalidArgument);
  // Rows without elements take no memory, however many there are.
  const Tensor many = Tensor::zeros({(std::int64_t{1} << 30), 0}, DType::uint8);
  EXPECT_NO_THROW(collate_all(dataset({many}), collate::ragged(joined)));
  const auto error = test::error_of([&] { collate_all(dataset({many, many}), collate::ragged(joined)); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), AllOf(HasSubstr("2 samples"), HasSubstr("2147483647"), HasSubstr("batch_size")));
}

TEST(Samples, KeepsSamplesAsTheyAre) {
  TemporaryFolder folder;
  std::vector<Value> values;
  for (std::int64_t i = 0; i < 3; ++i) {
    const Tensor x = test::numbered_tensor(Shape{i, 2}, DType::int16, i);
    const Tensor y = test::numbered_tensor(Shape{2}, i == 1 ? DType::float64 : DType::uint8, i);
    values.push_back(Value::dict(
        {{"x", Value::tensor(x)}, {"of", Value::tuple({Value::tensor(y), Value::integer(i), Value::string("s")})}}));
  }
  const Batch batch = collate_all(file_per_value(folder, values), collate::samples());
  ASSERT_EQ(batch.value.kind(), Value::Kind::kList);
  ASSERT_EQ(batch.value.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(bits_of(batch.value[i]), bits_of(values[i])) << i;
  EXPECT_TRUE(
      batch.value[2]["x"].as_tensor().buffer().shares_memory_with(batch.value[1]["of"][0].as_tensor().buffer()));
}

TEST(Collates, OneBlockHoldsTheWholeBatch) {
  TemporaryFolder folder;
  std::vector<Value> values;
  for (std::int64_t i = 0; i < 3; ++i) {
    values.push_back(
        Value::dict({{"x", Value::tensor(Tensor::zeros(Shape{7}, DType::uint8))}, {"y", Value::integer(i)}}));
  }
  const Batch batch = collate_all(file_per_value(folder, values), collate::stack());
  EXPECT_TRUE(batch["x"].buffer().shares_memory_with(batch["y"].buffer()));
  for (const char* key : {"x", "y"}) {
    const Tensor tensor = batch[key];
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0u);
  }
}

TEST(Collates, ABatchLargerThanMemoryIsRefused) {
  const Tensor one = Tensor::zeros(Shape{1, 1});
  // A row of 2^40 elements, all of them the same one.
  const Tensor huge(one.buffer(), DType::float32, Shape{64, std::int64_t{1} << 40}, Strides{0, 0});
  const auto memory = collate_error(rows(huge), collate::stack());
  EXPECT_EQ(memory->code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(memory->message(), AllOf(HasSubstr("batch 0 (64 samples"), HasSubstr("281 TB")));
  const Tensor endless(one.buffer(), DType::float32, Shape{2, std::int64_t{1} << 59}, Strides{0, 0});
  EXPECT_EQ(collate_error(rows(endless), collate::stack())->code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(
      collate_error(rows(test::numbered_rows(2, 1)), collate::pad_to(std::numeric_limits<std::int64_t>::max()))->code(),
      ErrorCode::kOutOfMemory);
}

TEST(DefaultCollate, Stacks) {
  DataLoader loader(dataset({Tensor::of({1, 2}), Tensor::of({3, 4})}), {.batch_size = 2, .collate = Collate()});
  EXPECT_EQ(loader.next()->tensor().shape(), (Shape{2, 2}));
}

}  // namespace
}  // namespace penstock
