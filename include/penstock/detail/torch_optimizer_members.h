#pragma once

/// What each class of torch::optim has, and how its members become a dict and come from one. Part of
/// torch_optimizer.h, which includes it.

#include <torch/optim.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "penstock/error.h"
#include "penstock/torch.h"
#include "penstock/value.h"

namespace penstock::detail {

// What each class has, told once for both ways: the visitor gets the name that Python has for a member, and the member.
// `only_python` are members that C++ has not: what they are where they say what C++ does.

using OptionItems = std::vector<std::pair<std::string, Value>>;

/// A member that Python has as an integer, where it has counts of steps as tensors.
template <class Number>
struct Whole {
  Number& number;
};
/// Tensors of one dimension with the elements of all parameters, and tensors of a single element: one, or a list.
template <class Tensors>
struct Flat {
  Tensors& tensors;
};
template <class Tensors>
struct Single {
  Tensors& tensors;
};
/// Tensors of a single element that each step writes before it reads them. It wants `size` places for them, which it
/// makes where there are none.
template <class Tensors>
struct Scratch {
  Tensors& tensors;
  std::size_t size;
};

template <class OptionsType, class StateType, bool kDecoupled>
struct AdamParts {
  using Options = OptionsType;
  using State = StateType;
  static constexpr std::string_view kName = kDecoupled ? "AdamW" : "Adam";
  static constexpr bool kAlwaysHasState = false;

  static void options(auto& options, auto&& visit) {
    visit("lr", options.lr());
    visit("betas", options.betas());
    visit("eps", options.eps());
    visit("weight_decay", options.weight_decay());
    visit("amsgrad", options.amsgrad());
  }
  static OptionItems only_python() {
    return {{"maximize", false},       {"foreach", {}}, {"capturable", false},
            {"differentiable", false}, {"fused", {}},   {"decoupled_weight_decay", kDecoupled}};
  }
  static void state(auto& state, const Options& options, auto&& visit) {
    visit("step", state.step());
    visit("exp_avg", state.exp_avg());
    visit("exp_avg_sq", state.exp_avg_sq());
    if (options.amsgrad()) visit("max_exp_avg_sq", state.max_exp_avg_sq());
  }
};

struct SgdParts {
  using Options = torch::optim::SGDOptions;
  using State = torch::optim::SGDParamState;
  static constexpr std::string_view kName = "SGD";
  static constexpr bool kAlwaysHasState = false;

  static void options(auto& options, auto&& visit) {
    visit("lr", options.lr());
    visit("momentum", options.momentum());
    visit("dampening", options.dampening());
    visit("weight_decay", options.weight_decay());
    visit("nesterov", options.nesterov());
  }
  static OptionItems only_python() {
    return {{"maximize", false}, {"foreach", {}}, {"differentiable", false}, {"fused", {}}};
  }
  static void state(auto& state, const Options&, auto&& visit) { visit("momentum_buffer", state.momentum_buffer()); }
};

struct RmspropParts {
  using Options = torch::optim::RMSpropOptions;
  using State = torch::optim::RMSpropParamState;
  static constexpr std::string_view kName = "RMSprop";
  static constexpr bool kAlwaysHasState = false;

  static void options(auto& options, auto&& visit) {
    visit("lr", options.lr());
    visit("momentum", options.momentum());
    visit("alpha", options.alpha());
    visit("eps", options.eps());
    visit("centered", options.centered());
    visit("weight_decay", options.weight_decay());
  }
  static OptionItems only_python() {
    return {{"capturable", false}, {"foreach", {}}, {"maximize", false}, {"differentiable", false}};
  }
  static void state(auto& state, const Options& options, auto&& visit) {
    visit("step", state.step());
    visit("square_avg", state.square_avg());
    if (options.momentum() > 0) visit("momentum_buffer", state.momentum_buffer());
    if (options.centered()) visit("grad_avg", state.grad_avg());
  }
};

struct AdagradParts {
  using Options = torch::optim::AdagradOptions;
  using State = torch::optim::AdagradParamState;
  static constexpr std::string_view kName = "Adagrad";
  static constexpr bool kAlwaysHasState = true;

  static void options(auto& options, auto&& visit) {
    visit("lr", options.lr());
    visit("lr_decay", options.lr_decay());
    visit("eps", options.eps());
    visit("weight_decay", options.weight_decay());
    visit("initial_accumulator_value", options.initial_accumulator_value());
  }
  static OptionItems only_python() {
    return {{"foreach", {}}, {"maximize", false}, {"differentiable", false}, {"fused", {}}};
  }
  static void state(auto& state, const Options&, auto&& visit) {
    visit("step", state.step());
    visit("sum", state.sum());
  }
};

/// Its state is that of all parameters together, and lies with the first one.
struct LbfgsParts {
  using Options = torch::optim::LBFGSOptions;
  using State = torch::optim::LBFGSParamState;
  static constexpr std::string_view kName = "LBFGS";
  static constexpr bool kAlwaysHasState = false;

  static void options(auto& options, auto&& visit) {
    visit("lr", options.lr());
    visit("max_iter", Whole{options.max_iter()});
    visit("max_eval", options.max_eval());
    visit("tolerance_grad", options.tolerance_grad());
    visit("tolerance_change", options.tolerance_change());
    visit("history_size", Whole{options.history_size()});
    visit("line_search_fn", options.line_search_fn());
  }
  static OptionItems only_python() { return {}; }
  static void state(auto& state, const Options& options, auto&& visit) {
    visit("func_evals", Whole{state.func_evals()});
    visit("n_iter", Whole{state.n_iter()});
    if (state.n_iter() == 0) return;  // it was at the optimum from the beginning
    visit("d", Flat{state.d()});
    visit("t", state.t());
    visit("old_dirs", Flat{state.old_dirs()});
    visit("old_stps", Flat{state.old_stps()});
    visit("ro", Single{state.ro()});
    visit("H_diag", Single{state.H_diag()});
    visit("prev_flat_grad", Flat{state.prev_flat_grad()});
    visit("prev_loss", state.prev_loss());
    visit("al", Scratch{state.al(), static_cast<std::size_t>(options.history_size())});
  }
  /// What keeps the optimizer from going on with it; null where nothing does.
  static const char* problem(const State& state, const Options& options) {
    if (options.history_size() < 0) return "its history_size is negative";
    const std::size_t count = state.old_dirs().size();
    if (state.old_stps().size() != count || state.ro().size() != count)
      return "its old_dirs, old_stps and ro differ in length";
    if (count > static_cast<std::size_t>(options.history_size())) return "its old_dirs are more than its history_size";
    return nullptr;
  }
};

/// Calls `work` with the parts of the optimizer's class.
template <class Work>
auto with_parts(const torch::optim::Optimizer& optimizer, Work&& work) {
  namespace optim = torch::optim;
  if (dynamic_cast<const optim::Adam*>(&optimizer) != nullptr)
    return work(AdamParts<optim::AdamOptions, optim::AdamParamState, false>{});
  if (dynamic_cast<const optim::AdamW*>(&optimizer) != nullptr)
    return work(AdamParts<optim::AdamWOptions, optim::AdamWParamState, true>{});
  if (dynamic_cast<const optim::SGD*>(&optimizer) != nullptr) return work(SgdParts{});
  if (dynamic_cast<const optim::RMSprop*>(&optimizer) != nullptr) return work(RmspropParts{});
  if (dynamic_cast<const optim::Adagrad*>(&optimizer) != nullptr) return work(AdagradParts{});
  if (dynamic_cast<const optim::LBFGS*>(&optimizer) != nullptr) return work(LbfgsParts{});
  throw Error(
      ErrorCode::kUnsupported,
      "found an optimizer of another class than Adam, AdamW, SGD, RMSprop, Adagrad and LBFGS, whose state has no "
      "form here; save it with torch::save");
}

/// Members as Python has them. It counts steps in tensors.
struct MemberWriter {
  OptionItems& out;

  void operator()(const char* name, double value) const { out.emplace_back(name, value); }
  void operator()(const char* name, bool value) const { out.emplace_back(name, value); }
  void operator()(const char* name, const std::tuple<double, double>& value) const {
    out.emplace_back(name, Value::tuple({std::get<0>(value), std::get<1>(value)}));
  }
  void operator()(const char* name, std::int64_t step) const {
    out.emplace_back(name, penstock::from_torch(torch::scalar_tensor(static_cast<double>(step), torch::kFloat32)));
  }
  void operator()(const char* name, const at::Tensor& value) const {
    if (value.defined()) out.emplace_back(name, penstock::from_torch(value.detach()));
  }
  void operator()(const char* name, const std::optional<std::int64_t>& value) const {
    out.emplace_back(name, value ? Value(*value) : Value());
  }
  void operator()(const char* name, const std::optional<std::string>& value) const {
    out.emplace_back(name, value ? Value(*value) : Value());
  }
  template <class Number>
  void operator()(const char* name, Whole<Number> value) const {
    out.emplace_back(name, Value::integer(value.number));
  }
  template <class Tensors>
  void operator()(const char* name, Flat<Tensors> value) const {
    write(name, value.tensors);
  }
  template <class Tensors>
  void operator()(const char* name, Single<Tensors> value) const {
    write(name, value.tensors);
  }
  template <class Tensors>
  void operator()(const char* name, Scratch<Tensors> value) const {
    if (value.tensors) write(name, *value.tensors);
  }

 private:
  void write(const char* name, const at::Tensor& value) const { (*this)(name, value); }
  void write(const char* name, const auto& list) const {
    std::vector<Value> values;
    for (const at::Tensor& one : list) {
      values.push_back(one.defined() ? Value(penstock::from_torch(one.detach())) : Value());
    }
    out.emplace_back(name, Value::list(std::move(values)));
  }
};

/// The number in a value or in a tensor of one element.
inline double number_in(const Value& value) {
  if (value.is(Value::Kind::kTensor)) return penstock::to_torch(value.as_tensor()).item<double>();
  return value.as_float();
}

/// The same as a whole number.
inline std::int64_t whole_in(const Value& value) {
  if (value.is(Value::Kind::kInt)) return value.as_int();
  const double number = number_in(value);
  if (std::abs(number) < 9e18) return static_cast<std::int64_t>(number);
  throw Error(ErrorCode::kInvalidArgument, "found " + std::to_string(number) + ", expected a whole number");
}

/// Members from a dict of the file; errors name the place `where` ("param_groups.0").
class MemberReader {
 public:
  MemberReader(const Value& dict, std::string where, std::string_view optimizer)
      : dict_(dict), where_(std::move(where)), optimizer_(optimizer) {
    if (!dict.is(Value::Kind::kDict))
      refuse(ErrorCode::kDTypeMismatch, "found " + dict.to_string() + ", expected a dict");
  }

  void operator()(const char* name, double& to) const {
    read(name, [&](const Value& value) { to = number_in(value); });
  }
  void operator()(const char* name, bool& to) const {
    read(name,
         [&](const Value& value) { to = value.is(Value::Kind::kBool) ? value.as_bool() : number_in(value) != 0; });
  }
  void operator()(const char* name, std::int64_t& to) const {
    read(name, [&](const Value& value) { to = whole_in(value); });
  }
  void operator()(const char* name, std::tuple<double, double>& to) const {
    read(name, [&](const Value& value) { to = {number_in(value[0]), number_in(value[1])}; });
  }

  void operator()(const char* name, std::optional<std::int64_t>& to) const {
    read_optional(
        name, [&](const Value& value) { to = whole_in(value); }, to);
  }
  void operator()(const char* name, std::optional<std::string>& to) const {
    read_optional(
        name, [&](const Value& value) { to = value.as_string(); }, to);
  }
  void operator()(const char* name, Whole<std::int64_t> to) const { (*this)(name, to.number); }

  /// Tensors of the shape of `parameter`, or of the shape that their kind says, with its type and on its device, as
  /// Python does it.
  void tensors(const char* name, const at::Tensor& parameter, std::int64_t, at::Tensor& to) const {
    read(name, [&](const Value& value) { to = tensor(name, value, parameter, parameter.sizes()); });
  }
  template <class Tensors>
  void tensors(const char* name, const at::Tensor& parameter, std::int64_t elements, Flat<Tensors> to) const {
    read(name, [&](const Value& value) {
      take(value, to.tensors, [&](const Value& one) { return tensor(name, one, parameter, {elements}); });
    });
  }
  template <class Tensors>
  void tensors(const char* name, const at::Tensor& parameter, std::int64_t, Single<Tensors> to) const {
    read(name, [&](const Value& value) {
      take(value, to.tensors, [&](const Value& one) { return single(name, one, parameter); });
    });
  }
  template <class Tensors>
  void tensors(const char* name, const at::Tensor& parameter, std::int64_t, Scratch<Tensors> to) const {
    const std::optional<Value> value = dict_.find(name);
    if (!value || value->is(Value::Kind::kNone)) return to.tensors.reset();
    auto& list = to.tensors.emplace();
    read(name, [&](const Value& all) {
      take(all, list,
           [&](const Value& one) { return one.is(Value::Kind::kNone) ? at::Tensor() : single(name, one, parameter); });
    });
    if (list.size() < to.size) to.tensors.reset();
  }
  /// Other members than tensors.
  void tensors(const char* name, const at::Tensor&, std::int64_t, auto&& to) const { (*this)(name, to); }

  /// Refuses what the file has for members that C++ has not, where that is more than a way to compute the same.
  void require_same(const OptionItems& only_python) const {
    for (const auto& [name, ours] : only_python) {
      const bool matters = name == "maximize" || name == "decoupled_weight_decay";
      const std::optional<Value> found = matters ? dict_.find(name) : std::nullopt;
      if (!found || !found->is(Value::Kind::kBool) || found->as_bool() == ours.as_bool()) continue;
      refuse(ErrorCode::kUnsupported,
             std::string("the file's optimizer has ") + name + (found->as_bool() ? " on" : " off") +
                 ", which torch::optim::" + std::string(optimizer_) + " has not; load it into " +
                 (name == "maximize" ? "an optimizer of Python"
                  : found->as_bool() ? "AdamW"
                                     : "Adam"),
             name);
    }
  }

 private:
  template <class Take>
  void read(const char* name, const Take& take) const {
    const std::optional<Value> value = dict_.find(name);
    if (!value || value->is(Value::Kind::kNone)) {
      refuse(ErrorCode::kKeyNotFound,
             std::string("the file lacks \"") + name + "\", which " + std::string(optimizer_) +
                 " has; load it into an optimizer of the class that wrote it",
             name);
    }
    try {
      take(*value);
    } catch (const Error& error) {
      throw error.within({.tensor = joined(where_, name)});
    } catch (const c10::Error& error) {
      refuse(ErrorCode::kDTypeMismatch, std::string("torch says ") + error.what_without_backtrace(), name);
    }
  }

  template <class Take>
  void read_optional(const char* name, const Take& take, auto& to) const {
    const std::optional<Value> value = dict_.find(name);
    if (value && value->is(Value::Kind::kNone)) return to.reset();
    read(name, take);
  }

  static void take(const Value& value, at::Tensor& to, const auto& made) { to = made(value); }
  static void take(const Value& value, auto& to, const auto& made) {
    to.clear();
    for (std::size_t i = 0; i < value.size(); ++i) to.push_back(made(value[i]));
  }

  at::Tensor tensor(const char* name, const Value& value, const at::Tensor& parameter, at::IntArrayRef sizes) const {
    const at::Tensor stored = penstock::to_torch(value.as_tensor());
    if (stored.sizes() != sizes) {
      refuse(ErrorCode::kShapeMismatch,
             "the file has shape " + shape_of(stored.sizes()).to_string() + " where the parameter has " +
                 shape_of(sizes).to_string(),
             name);
    }
    const at::Tensor placed =
        parameter.is_floating_point() ? stored.to(parameter.device(), parameter.scalar_type()) : stored;
    // Optimizers write into it, so no two elements may be one.
    return (placed.is_non_overlapping_and_dense() ? placed : placed.contiguous()).detach();
  }

  /// Python has some of these as plain numbers.
  at::Tensor single(const char* name, const Value& value, const at::Tensor& parameter) const {
    if (value.is(Value::Kind::kTensor)) return tensor(name, value, parameter, {});
    return torch::scalar_tensor(number_in(value), parameter.options().requires_grad(false));
  }

  [[noreturn]] void refuse(ErrorCode code, const std::string& message, std::string_view name = {}) const {
    throw Error(code, message, {.tensor = name.empty() ? where_ : joined(where_, std::string(name))});
  }

  const Value& dict_;
  std::string where_;
  std::string_view optimizer_;
};

}  // namespace penstock::detail
