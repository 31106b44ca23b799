#pragma once

/// For programs that use LibTorch: the state of torch::optim's Adam, AdamW, SGD, RMSprop, Adagrad and LBFGS in
/// the form of Python's `optimizer.state_dict()`, so that each side resumes what the other has saved. Header-only, as
/// torch.h.
///
///     penstock::save({{"model", penstock::state_dict(model)}, {"optimizer", penstock::state_dict(optimizer)}},
///                    "checkpoint.pt");
///     penstock::load_state_dict(model, "checkpoint.pt", {.key = "model"});
///     penstock::load_state_dict(optimizer, "checkpoint.pt", {.key = "optimizer"});
///
/// Parameters have no names in that form: they are known by their place in the optimizer, so give both sides the same
/// ones in the same order.

#include <torch/optim.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "penstock/detail/torch_optimizer_members.h"
#include "penstock/error.h"
#include "penstock/flag.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "penstock/text_view.h"
#include "penstock/torch.h"
#include "penstock/value.h"

namespace penstock {

struct LoadOptimizerOptions {
  /// The part of the file that is the optimizer's state dict, a key as of Archive::part ("optimizer"). Only its bytes
  /// are read. Empty: the whole file.
  std::string key = {};
  Flag verify = true;
};

namespace detail {

/// The parameters' state in the file, by the numbers that its groups know them by.
inline std::unordered_map<std::int64_t, Value> states_in(const Value& state) {
  if (!state.is(Value::Kind::kDict)) {
    throw Error(ErrorCode::kDTypeMismatch, "found " + state.to_string() + ", expected a dict of parameters' states",
                {.tensor = "state"});
  }
  std::unordered_map<std::int64_t, Value> out;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto [key, item] = state.item(i);
    if (key.is(Value::Kind::kInt)) out.emplace(key.as_int(), item);
  }
  return out;
}

[[noreturn]] inline void throw_other_count(const char* what, const std::string& where, std::size_t file,
                                           std::size_t own) {
  throw Error(ErrorCode::kShapeMismatch,
              "the file has " + std::to_string(file) + " " + what + " where the optimizer has " + std::to_string(own) +
                  "; give the optimizer the parameters, in the groups, that the file was written with",
              {.tensor = where});
}

inline const char* const kGroups = "param_groups";

inline Value member_of(const Value& state_dict, const char* name) {
  const std::optional<Value> found = state_dict.is(Value::Kind::kDict) ? state_dict.find(name) : std::nullopt;
  if (found) return *found;
  throw Error(ErrorCode::kKeyNotFound,
              "found no optimizer's state dict, which is a dict with \"state\" and "
              "\"param_groups\"; choose the part of the file that is one by the options' key");
}

/// Reads everything beforehand and changes the optimizer behind that.
template <class Parts>
class OptimizerLoad {
 public:
  OptimizerLoad(torch::optim::Optimizer& optimizer, const Value& state_dict)
      : optimizer_(optimizer), states_(states_in(member_of(state_dict, "state"))) {
    const Value groups = member_of(state_dict, kGroups);
    const std::size_t count = optimizer.param_groups().size();
    if (groups.size() != count) throw_other_count("groups of parameters", kGroups, groups.size(), count);
    for (std::size_t i = 0; i < count; ++i) read_group(groups[i], optimizer.param_groups()[i], i);
  }

  void commit() {
    for (std::size_t i = 0; i < options_.size(); ++i) {
      optimizer_.param_groups()[i].set_options(std::move(options_[i]));
    }
    for (auto& [parameter, state] : read_) {
      if (state) {
        optimizer_.state()[parameter] = std::move(state);
      } else {
        optimizer_.state().erase(parameter);
      }
    }
  }

 private:
  using Options = typename Parts::Options;
  using State = typename Parts::State;

  void read_group(const Value& group, torch::optim::OptimizerParamGroup& own, std::size_t number) {
    const std::string where = joined(kGroups, std::to_string(number));
    const MemberReader reader(group, where, Parts::kName);
    auto options = std::make_unique<Options>(static_cast<const Options&>(own.options()));
    Parts::options(*options, reader);
    reader.require_same(Parts::only_python());
    const std::optional<Value> numbers = group.find("params");
    const std::size_t count = numbers ? numbers->size() : 0;
    if (count != own.params().size()) throw_other_count("parameters", where, count, own.params().size());
    std::int64_t elements = 0;
    for (const at::Tensor& parameter : own.params()) elements += parameter.numel();
    for (std::size_t i = 0; i < count; ++i) read_state((*numbers)[i].as_int(), own.params()[i], elements, *options);
    options_.push_back(std::move(options));
  }

  /// `elements` are those of all parameters of the group.
  void read_state(std::int64_t number, const at::Tensor& parameter, std::int64_t elements, const Options& options) {
    void* const key = parameter.unsafeGetTensorImpl();
    const std::string where = joined("state", std::to_string(number));
    const auto found = states_.find(number);
    const bool is_there = found != states_.end() && found->second.size() != 0 && !is_only_none(found->second);
    if (!is_there) {
      if (Parts::kAlwaysHasState) {
        throw Error(ErrorCode::kKeyNotFound,
                    "the file lacks the state of parameter " + std::to_string(number) + ", which " +
                        std::string(Parts::kName) + " has for each; save the optimizer again",
                    {.tensor = where});
      }
      read_.emplace_back(key, nullptr);
      return;
    }
    const MemberReader reader(found->second, where, Parts::kName);
    auto state = std::make_unique<State>();
    Parts::state(*state, options, [&](const char* name, auto&& to) { reader.tensors(name, parameter, elements, to); });
    if constexpr (requires { Parts::problem(*state, options); }) {
      if (const char* const problem = Parts::problem(*state, options)) {
        throw Error(ErrorCode::kShapeMismatch, std::string(problem) + "; save the optimizer again", {.tensor = where});
      }
    }
    read_.emplace_back(key, std::move(state));
  }

  /// Python's SGD notes a parameter without momentum so.
  static bool is_only_none(const Value& state) {
    for (std::size_t i = 0; state.is(Value::Kind::kDict) && i < state.size(); ++i) {
      if (!state.item(i).second.is(Value::Kind::kNone)) return false;
    }
    return state.is(Value::Kind::kDict);
  }

  torch::optim::Optimizer& optimizer_;
  std::unordered_map<std::int64_t, Value> states_;
  std::vector<std::unique_ptr<Options>> options_;
  std::vector<std::pair<void*, std::unique_ptr<State>>> read_;
};

template <class Parts>
Value state_dict_with(const torch::optim::Optimizer& optimizer) {
  std::vector<Value::Item> states;
  std::vector<Value> groups;
  std::int64_t number = 0;
  for (const torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    const auto& options = static_cast<const typename Parts::Options&>(group.options());
    OptionItems items;
    Parts::options(options, MemberWriter{items});
    for (auto& item : Parts::only_python()) items.push_back(std::move(item));
    std::vector<Value> numbers;
    for (const at::Tensor& parameter : group.params()) {
      const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (found != optimizer.state().end()) {
        OptionItems members;
        Parts::state(static_cast<const typename Parts::State&>(*found->second), options, MemberWriter{members});
        if (!members.empty()) states.emplace_back(Value::integer(number), Value::dict(std::move(members)));
      }
      numbers.push_back(Value::integer(number++));
    }
    items.emplace_back("params", Value::list(std::move(numbers)));
    groups.push_back(Value::dict(std::move(items)));
  }
  return {{"state", Value::dict(std::move(states))}, {kGroups, Value::list(std::move(groups))}};
}

}  // namespace detail

/// The optimizer's state as Python's `state_dict()` has it: {state: {0: {step, exp_avg, ...}}, param_groups: [{lr, ...,
/// params: [0, 1]}]}. Its tensors share the memory of the optimizer's, so save it before the next step. kUnsupported
/// for other classes than Adam, AdamW, SGD, RMSprop, Adagrad and LBFGS.
inline Value state_dict(const torch::optim::Optimizer& optimizer) {
  return detail::with_parts(optimizer, [&](auto parts) { return detail::state_dict_with<decltype(parts)>(optimizer); });
}

/// Gives the optimizer the options (lr, betas, ...) and the state of its parameters that `state` has, with the type and
/// on the device of each parameter, as Python's `load_state_dict` does. Tensors are taken over where these agree, and
/// copied where not. Parameters without a state in the file have none then. Everything is checked before anything
/// changes: kKeyNotFound (no optimizer's state dict, a member of the class that is missing), kShapeMismatch (other
/// number of groups or parameters, other shapes), kDTypeMismatch, and kUnsupported for other classes, for `maximize`,
/// and for a weight decay that is decoupled in one of both alone (Adam beside AdamW).
void load_state_dict(torch::optim::Optimizer& optimizer, const std::same_as<Value> auto& state) {
  detail::with_parts(optimizer, [&](auto parts) { detail::OptimizerLoad<decltype(parts)>(optimizer, state).commit(); });
}

/// The same from a file that Python or `save_state_dict` has written, or from a part of one.
inline void load_state_dict(torch::optim::Optimizer& optimizer, TextView path,
                            const LoadOptimizerOptions& options = {}) {
  Archive archive = open(path, {.verify = options.verify});
  if (!options.key.empty()) archive = archive.part(std::string_view(options.key));
  try {
    load_state_dict(optimizer, archive.load({.verify = options.verify}));
  } catch (const Error& error) {
    throw error.within({.path = archive.path()});
  }
}

/// Writes the optimizer's state by itself, for Python's `optimizer.load_state_dict(torch.load(path))`. The path ends in
/// `.pt`, because other formats do not nest. The errors of `save` and of `state_dict`.
inline void save_state_dict(const torch::optim::Optimizer& optimizer, TextView path, const SaveOptions& options = {}) {
  save(state_dict(optimizer), path, options);
}

}  // namespace penstock
