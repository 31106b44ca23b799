#include <gtest/gtest.h>
#include <penstock/penstock.h>
#include <penstock/torch.h>
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
  torch::serialize::OutputArchive out;
  first.save(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  TorchBatches second = make();
  second.load(in);
  EXPECT_TRUE(torch::equal(second.get_batch(0)->front(), batches[1]));
}

}  // namespace
}  // namespace penstock
