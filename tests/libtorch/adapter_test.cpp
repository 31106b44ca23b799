#include <ATen/DLConvertor.h>
#include <gtest/gtest.h>
#include <penstock/dlpack.h>
#include <penstock/penstock.h>
#include <penstock/torch.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <sstream>

namespace penstock {
namespace {

template <class Work>
std::optional<ErrorCode> code_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

/// Lets the second loader go on where the first one is, by way of a saved archive.
template <class Batches>
void hand_over(Batches& first, Batches& second) {
  torch::serialize::OutputArchive out;
  first.save(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  second.load(in);
}

std::string temporary(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path() / ("penstock-libtorch-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

TEST(ToTorch, SharesMemoryOfEveryType) {
  for (const detail::TorchType& row : detail::kTorchTypes) {
    const Tensor tensor = Tensor::zeros(Shape{3, 4}, row.code).transpose(0, 1);
    const at::Tensor out = to_torch(tensor);
    EXPECT_EQ(out.data_ptr(), tensor.data());
    EXPECT_EQ(out.scalar_type(), row.scalar);
    EXPECT_EQ(out.sizes(), (at::IntArrayRef{4, 3}));
    EXPECT_EQ(out.strides(), (at::IntArrayRef{1, 4}));
    EXPECT_TRUE(Tensor::identical(from_torch(out), tensor));
  }
}

TEST(Dlpack, TorchTakesAndGivesTensors) {
  for (const detail::TorchType& row : detail::kTorchTypes) {
    const Tensor tensor = Tensor::zeros(Shape{3, 4}, row.code).transpose(0, 1);
    const at::Tensor now = at::fromDLPackVersioned(to_dlpack(tensor).release());
    const at::Tensor before = at::fromDLPack(to_dlpack_unversioned(tensor).release());
    for (const at::Tensor& out : {now, before}) {
      EXPECT_EQ(out.data_ptr(), tensor.data());
      EXPECT_EQ(out.scalar_type(), row.scalar);
      EXPECT_EQ(out.strides(), (at::IntArrayRef{1, 4}));
      for (const Tensor& back : {from_dlpack(at::toDLPackVersioned(out)), from_dlpack(at::toDLPack(out))}) {
        EXPECT_EQ(back.data(), tensor.data());
        EXPECT_TRUE(Tensor::identical(back, tensor));
      }
    }
  }
}

TEST(ToTorch, KeepsTheMemoryAndTheMark) {
  at::Tensor out;
  {
    const Tensor values = Tensor::of<float>({1, 2, 3});
    out = to_torch(values.with_requires_grad(true));
  }
  EXPECT_TRUE(out.requires_grad());
  EXPECT_EQ(out.sum().item<float>(), 6);
}

TEST(ToTorch, CopiesWhatMayNotBeWrittenAndRefusesWhatTorchHasNot) {
  static const float kValues[2] = {1, 2};
  const Buffer fixed = Buffer::wrap(const_cast<float*>(kValues), sizeof(kValues), std::make_shared<int>(0), true);
  const Tensor tensor(fixed, DType::float32, Shape{2});
  EXPECT_NE(to_torch(tensor).data_ptr(), tensor.data());
  EXPECT_EQ(code_of([] { to_torch(DType::with_descr(DType::Code::kText, 12, "<U3")); }), ErrorCode::kUnsupported);
}

TEST(FromTorch, SharesViewsAndOutlivesTheProducer) {
  Tensor view;
  {
    const at::Tensor whole = torch::arange(12, torch::kInt).reshape({3, 4});
    view = from_torch(whole.t().slice(0, 1, 4, 2));
    whole[0][1] = 100;
  }
  EXPECT_EQ(view.shape(), (Shape{2, 3}));
  const Tensor compact = view.contiguous();
  EXPECT_EQ(compact.values<std::int32_t>()[0], 100);
  EXPECT_TRUE(from_torch(torch::ones({2}, torch::requires_grad())).requires_grad());
}

TEST(FromTorch, RefusesWhatIsNotItsElements) {
  EXPECT_EQ(code_of([] { from_torch(torch::eye(3).to_sparse()); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([] { from_torch(torch::ones({2}, torch::kComplexFloat).conj()); }), ErrorCode::kUnsupported);
}

/// Elements [first, 1000) of a tensor whose storage is cut afterwards.
at::Tensor shortened(std::size_t bytes, std::int64_t first = 0, std::int64_t last = 1000) {
  at::Tensor out = torch::arange(1000, torch::kFloat).slice(0, first, last);
  out.storage().unsafeGetStorageImpl()->set_nbytes(bytes);
  return out;
}

TEST(FromTorch, RefusesMemoryThatIsNotThere) {
  EXPECT_EQ(code_of([] { from_torch(at::Tensor()); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([] { from_torch(at::_efficientzerotensor({10}, torch::kFloat)); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([] { from_torch(torch::ones({10}, torch::kMeta)); }), ErrorCode::kUnsupported);
  for (const std::size_t bytes : {0, 16, 3999}) {
    EXPECT_EQ(code_of([&] { from_torch(shortened(bytes)); }), ErrorCode::kUnsupported);
  }
  EXPECT_EQ(code_of([] { from_torch(shortened(3000, 700)); }), ErrorCode::kUnsupported);
  EXPECT_EQ(from_torch(shortened(3000, 0, 750)).numel(), 750);
  EXPECT_EQ(from_torch(torch::ones({0, 3})).shape(), (Shape{0, 3}));
}

TEST(LoadStateDict, NamesTheParameterThatHasNoMemory) {
  torch::nn::Linear module(30, 20);
  const std::string path = temporary("whole.safetensors");
  save(Value::dict(
           {{"weight", Value::tensor(from_torch(module->weight))}, {"bias", Value::tensor(from_torch(module->bias))}}),
       path);
  module->weight.storage().unsafeGetStorageImpl()->set_nbytes(16);
  try {
    load_state_dict(*module, path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_EQ(error.tensor(), "weight");
  }
}

TEST(LoadStateDict, FillsTheModuleInPlaceAndKeepsItsMarks) {
  torch::nn::Linear from(3, 2);
  torch::nn::Linear to(3, 2);
  const std::string path = temporary("linear.safetensors");
  save(Value::dict({{"weight", Value::tensor(from_torch(from->weight.to(torch::kDouble)))},
                    {"bias", Value::tensor(from_torch(from->bias))}}),
       path);
  to->bias.set_requires_grad(false);
  const void* const before = to->weight.data_ptr();
  load_state_dict(*to, path);
  EXPECT_EQ(to->weight.data_ptr(), before);
  EXPECT_TRUE(torch::equal(to->weight, from->weight));
  EXPECT_TRUE(to->weight.requires_grad());
  EXPECT_FALSE(to->bias.requires_grad());
}

TEST(LoadStateDict, ChecksBeforeItTouchesAnything) {
  torch::nn::Linear module(3, 2);
  const at::Tensor before = module->bias.clone();
  const std::string path = temporary("other.safetensors");
  const Value bias = Value::tensor(Tensor::zeros(Shape{2}));
  save(Value::dict({{"bias", bias}}), path);
  EXPECT_EQ(code_of([&] { load_state_dict(*module, path); }), ErrorCode::kKeyNotFound);
  save(Value::dict({{"bias", bias}, {"weight", Value::tensor(Tensor::zeros(Shape{3, 2}))}}), path);
  EXPECT_EQ(code_of([&] { load_state_dict(*module, path); }), ErrorCode::kShapeMismatch);
  save(Value::dict({{"bias", bias},
                    {"weight", Value::tensor(Tensor::zeros(Shape{2, 3}))},
                    {"x", Value::tensor(Tensor::zeros(Shape{2}))}}),
       path);
  EXPECT_EQ(code_of([&] { load_state_dict(*module, path); }), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(torch::equal(module->bias, before));
  EXPECT_EQ(load_state_dict(*module, path, {.strict = false}).unexpected, std::vector<std::string>{"x"});
  EXPECT_EQ(module->weight.abs().sum().item<float>(), 0);
}

TEST(LoadStateDict, TakesAPartOfTheFileAndNoOtherBytes) {
  torch::nn::Linear from(3, 2);
  torch::nn::Linear to(3, 2);
  const Value state = Value::dict({{"module.weight", Value::tensor(from_torch(from->weight))},
                                   {"module.bias", Value::tensor(from_torch(from->bias))}});
  const Value large = Value::tensor(Tensor::zeros(Shape{1 << 20}));
  const std::string path = temporary("checkpoint.pt");
  save(Value::dict({{"epoch", Value::integer(4)}, {"model", state}, {"optimizer", Value::dict({{"m", large}})}}), path);
  load_state_dict(*to, path, {.key = "model", .prefix = "module."});
  EXPECT_TRUE(torch::equal(to->weight, from->weight));
  Report report;
  open(path).part("model").load({.report = &report});
  EXPECT_LT(report.read_bytes, 1U << 16);

  const auto message = [&](const LoadStateDictOptions& options) {
    try {
      load_state_dict(*to, path, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message({}).find("it has \"model.module.weight\""), std::string::npos) << message({});
  EXPECT_NE(message({.key = "epoch"}).find("found 4, expected a state dict"), std::string::npos);
  EXPECT_EQ(code_of([&] { load_state_dict(*to, path, {.key = "modle"}); }), ErrorCode::kKeyNotFound);
  const auto keys = load_state_dict(*to, path, {.strict = false});
  EXPECT_EQ(keys.missing, (std::vector<std::string>{"weight", "bias"}));
  EXPECT_EQ(keys.unexpected,
            (std::vector<std::string>{"model.module.weight", "model.module.bias", "optimizer.m", "epoch"}));
}

TEST(SaveStateDict, IsReadByLoadStateDictAndKeepsNamesAndTypes) {
  torch::nn::Sequential from(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4));
  for (const char* name : {"saved.pt", "saved.safetensors"}) {
    const std::string path = temporary(name);
    save_state_dict(*from, path);
    torch::nn::Sequential to(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4));
    load_state_dict(*to, path);
    EXPECT_TRUE(torch::equal(to->named_parameters()["0.weight"], from->named_parameters()["0.weight"]));
    EXPECT_EQ(open(path)["1.num_batches_tracked"].dtype(), DType::int64);
  }
  EXPECT_FALSE(load(temporary("saved.pt"))["0.weight"].as_tensor().requires_grad());
  EXPECT_EQ(load(temporary("saved.pt")).type_name(), "collections.OrderedDict");
}

TEST(SaveStateDict, NamesTheParameterThatHasNoMemory) {
  torch::nn::Linear module(3, 4);
  module->weight.storage().unsafeGetStorageImpl()->set_nbytes(16);
  try {
    save_state_dict(*module, temporary("refused.pt"));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.tensor(), "weight");
  }
  EXPECT_FALSE(std::filesystem::exists(temporary("refused.pt")));
}

TEST(LoadStateDict, NumbersBesideTensorsAreUnexpected) {
  torch::nn::Linear module(3, 2);
  const std::string path = temporary("numbers.pt");
  save(Value::dict({{"weight", Value::tensor(from_torch(module->weight))},
                    {"bias", Value::tensor(from_torch(module->bias))},
                    {"epoch", Value::integer(4)}}),
       path);
  EXPECT_EQ(code_of([&] { load_state_dict(*module, path); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(load_state_dict(*module, path, {.strict = false}).unexpected, std::vector<std::string>{"epoch"});
}

TEST(ToIValue, KeepsStructureKeysAndStrings) {
  const Value value = Value::dict({{"image", Value::tensor(Tensor::of<float>({1, 2}))},
                                   {"caption", Value::list({Value::string("a"), Value::string("b")})},
                                   {"pair", Value::tuple({Value::integer(3), Value::real(0.5), Value()})},
                                   {"by number", Value::dict({{Value::integer(7), Value::boolean(true)}})}});
  const auto dict = to_ivalue(value).toGenericDict();
  EXPECT_TRUE(torch::equal(dict.at("image").toTensor(), torch::tensor({1.0F, 2.0F})));
  EXPECT_EQ(dict.at("caption").toList().get(1).toStringRef(), "b");
  const auto pair = dict.at("pair").toTuple()->elements();
  EXPECT_EQ(pair[0].toInt(), 3);
  EXPECT_EQ(pair[1].toDouble(), 0.5);
  EXPECT_TRUE(pair[2].isNone());
  EXPECT_TRUE(dict.at("by number").toGenericDict().at(7).toBool());
  EXPECT_EQ(code_of([] { to_ivalue(Value::list({Value::set({Value::integer(1)})})); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([] {
              to_ivalue(Value::tensor(Tensor::zeros(Shape{1}, DType::with_descr(DType::Code::kText, 12, "<U3"))));
            }),
            ErrorCode::kUnsupported);
}

TEST(ToIValue, SharedPartsStaySharedHoweverManyWaysLeadToThem) {
  Value value = Value::list({Value::tensor(Tensor::of<float>({1, 2}))});
  for (int i = 0; i < 60; ++i) {
    const Value both = Value::list({value, value});
    value = Value::dict({{"a", both}, {"b", both}});
  }
  const auto dict = to_ivalue(value).toGenericDict();
  EXPECT_TRUE(dict.at("a").is(dict.at("b")));
  EXPECT_TRUE(dict.at("a").toList().get(0).is(dict.at("b").toList().get(1)));
}

/// Samples {"x": tensor, "name": text}.
Dataset named_samples() {
  std::vector<std::string> paths;
  for (int i = 0; i < 4; ++i) {
    paths.push_back(temporary("sample" + std::to_string(i) + ".pt"));
    save(Value::dict(
             {{"x", Value::tensor(Tensor::of<std::int64_t>({i}))}, {"name", Value::string("s" + std::to_string(i))}}),
         paths.back());
  }
  return files(paths);
}

TEST(TorchValues, HaveKeysAndStrings) {
  TorchValues values(named_samples(), {.batch_size = 2});
  const auto batch = values.get_batch(0)->toGenericDict();
  EXPECT_TRUE(torch::equal(batch.at("x").toTensor().flatten(), torch::tensor({0, 1})));
  EXPECT_EQ(batch.at("name").toList().get(1).toStringRef(), "s1");
}

/// Samples with several tensors of other types, numbers, text and parts within parts.
Dataset rich_samples(std::int64_t count) {
  return dataset(count, [](std::int64_t i) {
    return Value{
        {"image", full({2, 3}, static_cast<double>(i), DType::float32)},
        {"mask", Tensor::of<bool>({i % 2 == 0})},
        {"label", i},
        {"weight", static_cast<double>(i) / 2},
        {"name", "s" + std::to_string(i)},
        {"meta", {{"tags", Value::list({"a", "t" + std::to_string(i)})}, {"box", Tensor::of<std::int64_t>({i, 1})}}}};
  });
}

std::vector<std::string> names_in(const c10::IValue& batch) {
  std::vector<std::string> out;
  for (const c10::IValue& name : batch.toGenericDict().at("name").toListRef()) out.push_back(name.toStringRef());
  return out;
}

TEST(TorchValues, ReachTorchsLoaderWithAllTheirParts) {
  auto loader = torch::data::make_data_loader(TorchValues(rich_samples(5), {.batch_size = 2, .num_workers = 2}),
                                              torch::data::DataLoaderOptions());
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::string> names;
    for (const c10::IValue& batch : *loader) {
      const auto parts = batch.toGenericDict();
      const std::vector<std::string> own = names_in(batch);
      const auto count = static_cast<std::int64_t>(own.size());
      EXPECT_EQ(parts.size(), 6U);
      EXPECT_EQ(parts.at("image").toTensor().sizes(), (std::vector<std::int64_t>{count, 2, 3}));
      EXPECT_EQ(parts.at("mask").toTensor().scalar_type(), torch::kBool);
      EXPECT_EQ(parts.at("label").toTensor().scalar_type(), torch::kInt64);
      EXPECT_EQ(parts.at("weight").toTensor().scalar_type(), torch::kFloat64);
      const auto meta = parts.at("meta").toGenericDict();
      EXPECT_EQ(meta.at("box").toTensor().sizes(), (std::vector<std::int64_t>{count, 2}));
      for (std::int64_t i = 0; i < count; ++i) {
        const auto number = parts.at("label").toTensor()[i].item<std::int64_t>();
        EXPECT_EQ(own[static_cast<std::size_t>(i)], "s" + std::to_string(number));
        EXPECT_EQ(parts.at("image").toTensor()[i][1][2].item<float>(), static_cast<float>(number));
        EXPECT_EQ(meta.at("tags").toListRef()[1].toListRef()[static_cast<std::size_t>(i)].toStringRef(),
                  "t" + std::to_string(number));
      }
      names.insert(names.end(), own.begin(), own.end());
    }
    EXPECT_EQ(names, (std::vector<std::string>{"s0", "s1", "s2", "s3", "s4"})) << epoch;
  }
}

TEST(TorchValues, SamplesThatAreNotStackedStayApart) {
  TorchValues values(rich_samples(3), {.batch_size = 3, .collate = collate::samples()});
  const c10::IValue batch = *values.get_batch(0);
  ASSERT_EQ(batch.toListRef().size(), 3U);
  const auto second = batch.toListRef()[1].toGenericDict();
  EXPECT_EQ(second.at("name").toStringRef(), "s1");
  EXPECT_EQ(second.at("label").toInt(), 1);
  EXPECT_EQ(second.at("weight").toDouble(), 0.5);
  EXPECT_EQ(second.at("image").toTensor().sizes(), (std::vector<std::int64_t>{2, 3}));
}

TEST(TorchValues, Resume) {
  const auto make = [] { return TorchValues(rich_samples(10), {.batch_size = 3, .shuffle = true, .seed = 5}); };
  TorchValues first = make();
  first.get_batch(0);
  TorchValues second = make();
  hand_over(first, second);
  while (const auto batch = first.get_batch(0)) EXPECT_EQ(names_in(*second.get_batch(0)), names_in(*batch));
  EXPECT_FALSE(second.get_batch(0));
}

TEST(TorchBatches, RefuseWhatIsMoreThanTensors) {
  TorchBatches batches(named_samples(), {.batch_size = 2});
  EXPECT_EQ(code_of([&] { batches.get_batch(0); }), ErrorCode::kUnsupported);
  const Tensor values = Tensor::of<float>({1, 2});
  TorchBatches pairs(zip({rows(values), rows(values)}), {.batch_size = 2});
  EXPECT_EQ(pairs.get_batch(0)->size(), 2U);
}

TEST(TorchBatches, AreTheLoadersAndResume) {
  const Tensor values = from_torch(torch::arange(10));
  const auto make = [&] { return TorchBatches(rows(values), {.batch_size = 3, .shuffle = true, .seed = 5}); };
  TorchBatches all = make();
  std::vector<at::Tensor> batches;
  while (const auto batch = all.get_batch(0)) batches.push_back(batch->front());
  ASSERT_EQ(batches.size(), 4U);
  EXPECT_TRUE(torch::equal(std::get<0>(torch::cat(batches).sort()), torch::arange(10)));

  TorchBatches first = make();
  first.get_batch(0);
  TorchBatches second = make();
  hand_over(first, second);
  EXPECT_TRUE(torch::equal(second.get_batch(0)->front(), batches[1]));
}

}  // namespace
}  // namespace penstock
