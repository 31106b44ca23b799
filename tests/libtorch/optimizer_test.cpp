#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <penstock/torch_optimizer.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock {
namespace {

namespace optim = torch::optim;
using testing::HasSubstr;

template <class Work>
std::optional<Error> error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

std::string temporary(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path() / ("penstock-optimizer-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

/// Parameters that always begin alike, and gradients that depend on the step alone; LBFGS, which evaluates a function,
/// gets one that does not.
struct Problem {
  std::vector<at::Tensor> parameters = {torch::ones({2, 3}).set_requires_grad(true),
                                        torch::full({3}, 2.0).set_requires_grad(true)};

  void step(optim::Optimizer& optimizer, int number) {
    if (dynamic_cast<optim::LBFGS*>(&optimizer) != nullptr) {
      optimizer.step([&] {
        optimizer.zero_grad();
        const at::Tensor loss = (parameters[0] - 3).pow(4).sum() + (parameters[1] + 1).pow(4).sum();
        loss.backward();
        return loss;
      });
      return;
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].mutable_grad() = torch::full_like(parameters[i], 0.1 * (number + 1) + static_cast<double>(i));
    }
    optimizer.step();
  }
  void become(const Problem& other) {
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(other.parameters[i]);
  }
};

using Maker = std::unique_ptr<optim::Optimizer> (*)(std::vector<at::Tensor>);
struct Kind {
  const char* name;
  Maker make;   ///< with options that are not the defaults
  Maker plain;  ///< with the defaults, which a load has to replace
};

template <class Optimizer, class Options>
std::unique_ptr<optim::Optimizer> made(std::vector<at::Tensor> parameters, Options options) {
  return std::make_unique<Optimizer>(std::move(parameters), options);
}

const Kind kKinds[] = {
    {"Adam",
     [](auto p) {
       return made<optim::Adam>(p, optim::AdamOptions(0.05).betas({0.8, 0.9}).amsgrad(true));
     },
     [](auto p) { return made<optim::Adam>(p, optim::AdamOptions()); }},
    {"AdamW", [](auto p) { return made<optim::AdamW>(p, optim::AdamWOptions(0.05).weight_decay(0.2)); },
     [](auto p) { return made<optim::AdamW>(p, optim::AdamWOptions()); }},
    {"SGD", [](auto p) { return made<optim::SGD>(p, optim::SGDOptions(0.05).momentum(0.9).nesterov(true)); },
     [](auto p) { return made<optim::SGD>(p, optim::SGDOptions(1)); }},
    {"RMSprop",
     [](auto p) { return made<optim::RMSprop>(p, optim::RMSpropOptions(0.05).momentum(0.5).centered(true)); },
     [](auto p) { return made<optim::RMSprop>(p, optim::RMSpropOptions()); }},
    {"Adagrad", [](auto p) { return made<optim::Adagrad>(p, optim::AdagradOptions(0.05).lr_decay(0.1)); },
     [](auto p) { return made<optim::Adagrad>(p, optim::AdagradOptions()); }},
    {"LBFGS",
     [](auto p) {
       return made<optim::LBFGS>(p,
                                 optim::LBFGSOptions(0.5).max_iter(3).history_size(4).line_search_fn("strong_wolfe"));
     },
     [](auto p) { return made<optim::LBFGS>(p, optim::LBFGSOptions()); }}};

/// Of a class that has no form.
class Foreign : public optim::Optimizer {
 public:
  explicit Foreign(std::vector<at::Tensor> parameters)
      : Optimizer({optim::OptimizerParamGroup(std::move(parameters))}, std::make_unique<optim::SGDOptions>(1)) {}
  at::Tensor step(LossClosure) override { return {}; }
};

TEST(OptimizerState, GoesOnAsIfNothingHadHappened) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    Problem first;
    const auto optimizer = kind.make(first.parameters);
    for (int i = 0; i < 3; ++i) first.step(*optimizer, i);
    save_state_dict(*optimizer, temporary("optimizer.pt"));
    Problem second;
    second.become(first);
    const auto resumed = kind.plain(second.parameters);
    second.step(*resumed, 7);  // has a state of its own, which goes
    second.become(first);
    load_state_dict(*resumed, temporary("optimizer.pt"));
    for (int i = 3; i < 6; ++i) {
      first.step(*optimizer, i);
      second.step(*resumed, i);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(torch::equal(first.parameters[i], second.parameters[i])) << i;
    }
  }
}

TEST(OptimizerState, LiesInACheckpointBesideTheModule) {
  torch::nn::Linear layer(3, 2);
  optim::Adam optimizer(layer->parameters(), optim::AdamOptions(0.25));
  save({{"model", state_dict(*layer)}, {"optimizer", state_dict(optimizer)}, {"epoch", 3}}, temporary("checkpoint.pt"));
  torch::nn::Linear other(3, 2);
  optim::Adam resumed(other->parameters());
  load_state_dict(*other, temporary("checkpoint.pt"), {.key = "model"});
  load_state_dict(resumed, temporary("checkpoint.pt"), {.key = "optimizer"});
  EXPECT_TRUE(torch::equal(other->weight, layer->weight));
  EXPECT_EQ(static_cast<optim::AdamOptions&>(resumed.param_groups()[0].options()).lr(), 0.25);
}

TEST(OptimizerState, TakesTheTypeOfTheParameter) {
  Problem problem;
  const auto optimizer = kKinds[0].make(problem.parameters);
  problem.step(*optimizer, 0);
  const Value state = state_dict(*optimizer);
  std::vector<at::Tensor> wide;
  for (const at::Tensor& one : problem.parameters)
    wide.push_back(one.detach().to(torch::kFloat64).set_requires_grad(true));
  const auto resumed = kKinds[0].plain(wide);
  load_state_dict(*resumed, state);
  const auto& read = static_cast<const optim::AdamParamState&>(*resumed->state().at(wide[0].unsafeGetTensorImpl()));
  EXPECT_EQ(read.exp_avg().scalar_type(), torch::kFloat64);
  EXPECT_EQ(read.step(), 1);
}

TEST(OptimizerState, WithoutAStateInTheFileAParameterHasNone) {
  Problem problem;
  const auto optimizer = kKinds[0].make(problem.parameters);
  problem.parameters[1].mutable_grad() = torch::ones({3});
  optimizer->step();
  const Value state = state_dict(*optimizer);
  EXPECT_EQ(state["state"].size(), 1U);
  EXPECT_EQ(state["state"].item(0).first.as_int(), 1);
  const auto resumed = kKinds[0].make(problem.parameters);
  problem.step(*resumed, 0);
  load_state_dict(*resumed, state);
  EXPECT_EQ(resumed->state().size(), 1U);
}

TEST(OptimizerState, SaysWhatDoesNotFitAndChangesNothing) {
  Problem problem;
  const auto adam = kKinds[0].make(problem.parameters);
  problem.step(*adam, 0);
  const Value state = state_dict(*adam);
  struct Case {
    std::unique_ptr<optim::Optimizer> optimizer;
    Value state;
    ErrorCode code;
    const char* says;
  };
  const auto with = [&](const char* key, Value value) {
    std::vector<std::pair<std::string, Value>> items;
    for (const auto& [name, item] : state.items())
      items.emplace_back(name.as_string(), name.as_string() == key ? value : item);
    return Value::dict(std::move(items));
  };
  std::vector<Value::Item> poor = {{Value::integer(0), Value{{"step", 1.0}}}};
  std::vector<Value::Item> wide = {{Value::integer(0), Value{{"step", 1.0}, {"exp_avg", Tensor::of<float>({1})}}}};
  Case cases[] = {
      {kKinds[0].make({problem.parameters[0]}), state, ErrorCode::kShapeMismatch, "the file has 2 parameters where"},
      {kKinds[0].make(problem.parameters), with("param_groups", Value::list({})), ErrorCode::kShapeMismatch,
       "0 groups"},
      {kKinds[2].make(problem.parameters), state, ErrorCode::kKeyNotFound, "lacks \"momentum\", which SGD has"},
      {kKinds[1].make(problem.parameters), state, ErrorCode::kUnsupported, "decoupled_weight_decay off"},
      {kKinds[0].make(problem.parameters), state["state"], ErrorCode::kKeyNotFound, "no optimizer's state dict"},
      {kKinds[0].make(problem.parameters), Value(3), ErrorCode::kKeyNotFound, "no optimizer's state dict"},
      {kKinds[0].make(problem.parameters), with("state", Value::dict(poor)), ErrorCode::kKeyNotFound,
       "lacks \"exp_avg\""},
      {kKinds[0].make(problem.parameters), with("state", Value::dict(wide)), ErrorCode::kShapeMismatch,
       "shape (1,) where"},
      {std::make_unique<Foreign>(problem.parameters), state, ErrorCode::kUnsupported, "torch::save"},
  };
  for (Case& one : cases) {
    SCOPED_TRACE(one.says);
    const auto error = error_of([&] { load_state_dict(*one.optimizer, one.state); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), one.code) << error->what();
    EXPECT_THAT(error->message(), HasSubstr(one.says));
    EXPECT_TRUE(one.optimizer->state().empty());
  }
  const auto adagrad = kKinds[4].make(problem.parameters);
  const Value without = {{"state", Value::dict(std::vector<Value::Item>{})},
                         {"param_groups", state_dict(*adagrad)["param_groups"]}};
  const auto error = error_of([&] { load_state_dict(*adagrad, without); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kKeyNotFound);
  EXPECT_EQ(error->tensor(), "state.0");
}

const optim::LBFGSParamState& lbfgs_state(const optim::Optimizer& optimizer) {
  const at::Tensor& first = optimizer.param_groups()[0].params()[0];
  return static_cast<const optim::LBFGSParamState&>(*optimizer.state().at(first.unsafeGetTensorImpl()));
}

TEST(OptimizerState, OfLbfgsIsThatOfAllParametersTogether) {
  Problem problem;
  const auto optimizer = kKinds[5].make(problem.parameters);
  for (int i = 0; i < 2; ++i) problem.step(*optimizer, i);
  const Value state = state_dict(*optimizer);
  EXPECT_EQ(state["state"].size(), 1U);
  const auto resumed = kKinds[5].plain(problem.parameters);
  load_state_dict(*resumed, state);
  const optim::LBFGSParamState& before = lbfgs_state(*optimizer);
  const optim::LBFGSParamState& after = lbfgs_state(*resumed);
  EXPECT_EQ(after.n_iter(), before.n_iter());
  EXPECT_EQ(after.func_evals(), before.func_evals());
  EXPECT_EQ(after.t(), before.t());
  EXPECT_EQ(after.prev_loss(), before.prev_loss());
  ASSERT_GT(before.old_dirs().size(), 1U);
  ASSERT_EQ(after.old_dirs().size(), before.old_dirs().size());
  for (std::size_t i = 0; i < before.old_dirs().size(); ++i) {
    EXPECT_TRUE(torch::equal(after.old_dirs()[i], before.old_dirs()[i]));
    EXPECT_TRUE(torch::equal(after.old_stps()[i], before.old_stps()[i]));
    EXPECT_TRUE(torch::equal(after.ro()[i], before.ro()[i]));
  }
  EXPECT_TRUE(torch::equal(after.d(), before.d()));
  EXPECT_TRUE(torch::equal(after.H_diag(), before.H_diag()));
  EXPECT_TRUE(torch::equal(after.prev_flat_grad(), before.prev_flat_grad()));
  const auto& options = static_cast<const optim::LBFGSOptions&>(resumed->param_groups()[0].options());
  EXPECT_EQ(options.history_size(), 4);
  EXPECT_EQ(options.max_iter(), 3);
  EXPECT_EQ(options.line_search_fn(), "strong_wolfe");
}

TEST(OptimizerState, OfLbfgsAtTheOptimumHasOnlyCounts) {
  Problem problem;
  const auto optimizer = kKinds[5].make(problem.parameters);
  const auto at_once = [&] {
    optimizer->zero_grad();
    const at::Tensor loss = (problem.parameters[0] * 0).sum() + (problem.parameters[1] * 0).sum();
    loss.backward();
    return loss;
  };
  optimizer->step(at_once);
  const Value state = state_dict(*optimizer);
  EXPECT_EQ(state["state"].item(0).second.size(), 2U);
  const auto resumed = kKinds[5].make(problem.parameters);
  load_state_dict(*resumed, state);
  EXPECT_EQ(lbfgs_state(*resumed).func_evals(), 1);
  EXPECT_NO_THROW(problem.step(*resumed, 0));
}

TEST(OptimizerState, OfLbfgsForOtherParametersIsRefused) {
  Problem problem;
  const auto optimizer = kKinds[5].make(problem.parameters);
  for (int i = 0; i < 2; ++i) problem.step(*optimizer, i);
  const Value state = state_dict(*optimizer);
  std::vector<at::Tensor> others = {torch::ones({2, 3}).set_requires_grad(true),
                                    torch::ones({4}).set_requires_grad(true)};
  const auto resumed = kKinds[5].make(others);
  const auto error = error_of([&] { load_state_dict(*resumed, state); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kShapeMismatch);
  EXPECT_EQ(error->tensor(), "state.0.d");
  EXPECT_TRUE(resumed->state().empty());
}

/// The value with another one at the keys.
Value with(const Value& value, std::span<const char* const> keys, const Value& other) {
  if (keys.empty()) return other;
  if (value.is(Value::Kind::kList)) return Value::list({with(value[std::size_t{0}], keys.subspan(1), other)});
  std::vector<Value::Item> items;
  for (const auto& [key, item] : value.items()) {
    const bool is_it = key.is(Value::Kind::kInt) || key.as_string() == keys.front();
    items.emplace_back(key, is_it ? with(item, keys.subspan(1), other) : item);
  }
  return Value::dict(std::move(items));
}

TEST(OptimizerState, OfLbfgsThatItCouldNotGoOnWithIsRefused) {
  Problem problem;
  const auto optimizer = kKinds[5].make(problem.parameters);
  for (int i = 0; i < 2; ++i) problem.step(*optimizer, i);
  const Value state = state_dict(*optimizer);
  struct Case {
    std::vector<const char*> keys;
    Value value;
    ErrorCode code;
    const char* says;
  };
  const Case cases[] = {
      {{"state", "0", "ro"}, Value::list({}), ErrorCode::kShapeMismatch, "differ in length"},
      {{"state", "0", "old_dirs"}, Value::list({}), ErrorCode::kShapeMismatch, "differ in length"},
      {{"state", "0", "n_iter"}, Value(std::nan("")), ErrorCode::kInvalidArgument, "expected a whole number"},
      {{"param_groups", "0", "history_size"}, Value(1), ErrorCode::kShapeMismatch, "more than its history_size"},
      {{"param_groups", "0", "history_size"}, Value(-1), ErrorCode::kShapeMismatch, "history_size is negative"},
      {{"param_groups", "0", "max_iter"}, Value(1e300), ErrorCode::kInvalidArgument, "expected a whole number"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.says);
    const auto resumed = kKinds[5].make(problem.parameters);
    const auto error = error_of([&] { load_state_dict(*resumed, with(state, one.keys, one.value)); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), one.code) << error->what();
    EXPECT_THAT(error->message(), HasSubstr(one.says));
    EXPECT_TRUE(resumed->state().empty());
  }
}

TEST(OptimizerState, ErrorsOfAFileNameIt) {
  Problem problem;
  const auto optimizer = kKinds[0].make(problem.parameters);
  save({{"epoch", 3}}, temporary("other.pt"));
  const auto error = error_of([&] { load_state_dict(*optimizer, temporary("other.pt")); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->path(), temporary("other.pt"));
}

}  // namespace
}  // namespace penstock
