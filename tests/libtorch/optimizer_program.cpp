// Trains some steps from a state of Python's, or of its own, for tests/python/torch/test_libtorch.py:
//
//     optimizer_program CLASS FROM TO STEPS
//
// FROM is a checkpoint of Python with "parameters" (a list) and "optimizer". TO gets both behind STEPS further steps,
// in which the gradient of a parameter is the parameter plus one. LBFGS, which evaluates a function, gets the sum of
// (parameter + 1)^4.
#include <penstock/torch_optimizer.h>

#include <iostream>
#include <memory>
#include <string>

namespace {

namespace optim = torch::optim;

std::unique_ptr<optim::Optimizer> made(const std::string& name, std::vector<at::Tensor> parameters) {
  if (name == "Adam") return std::make_unique<optim::Adam>(parameters);
  if (name == "AdamW") return std::make_unique<optim::AdamW>(parameters);
  if (name == "SGD") return std::make_unique<optim::SGD>(parameters, optim::SGDOptions(1));
  if (name == "RMSprop") return std::make_unique<optim::RMSprop>(parameters);
  if (name == "LBFGS") return std::make_unique<optim::LBFGS>(parameters);
  return std::make_unique<optim::Adagrad>(parameters);
}

void run(const std::string& name, const std::string& from, const std::string& to, int steps) {
  const penstock::Value start = penstock::open(from).part("parameters").load();
  std::vector<at::Tensor> parameters;
  for (const penstock::Value& one : start) {
    parameters.push_back(penstock::to_torch(one.as_tensor()).detach().set_requires_grad(true));
  }
  const auto optimizer = made(name, parameters);
  penstock::load_state_dict(*optimizer, from, {.key = "optimizer"});
  const auto loss = [&] {
    optimizer->zero_grad();
    at::Tensor sum = torch::zeros({}, parameters[0].options().requires_grad(false));
    for (const at::Tensor& parameter : parameters) sum = sum + (parameter + 1).pow(4).sum();
    sum.backward();
    return sum;
  };
  for (int step = 0; step < steps; ++step) {
    if (name == "LBFGS") {
      optimizer->step(loss);
      continue;
    }
    for (at::Tensor& parameter : parameters) parameter.mutable_grad() = parameter.detach() + 1;
    optimizer->step();
  }
  std::vector<penstock::Value> out;
  for (const at::Tensor& parameter : parameters) out.emplace_back(penstock::from_torch(parameter.detach()));
  penstock::save({{"parameters", penstock::Value::list(out)}, {"optimizer", penstock::state_dict(*optimizer)}}, to);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    run(argv[1], argv[2], argv[3], std::stoi(argv[4]));
  } catch (const penstock::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
