// Trains a LibTorch module on handwritten digits that Penstock reads, beginning from a checkpoint that Python wrote.
//
//   train_libtorch images.npy labels.npy [start.pt]

#include <penstock/penstock.h>
#include <penstock/torch.h>
#include <torch/torch.h>

#include <cstdio>
#include <exception>

namespace ps = penstock;

struct Classifier : torch::nn::Module {
  Classifier() { layer = register_module("layer", torch::nn::Linear(64, 10)); }
  torch::Tensor forward(const torch::Tensor& x) { return layer(x); }
  torch::nn::Linear layer{nullptr};
};

// Images are (batch, 8, 8) of 0 to 16.
torch::Tensor pixels(const torch::Tensor& images) { return images.reshape({-1, 64}).to(torch::kFloat) / 16; }

void train(Classifier& model, const ps::Dataset& digits) {
  ps::TorchBatches dataset(digits, {.batch_size = 32, .shuffle = true, .num_workers = 2, .seed = 7});
  const auto loader = torch::data::make_data_loader(dataset, torch::data::DataLoaderOptions());
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.5));
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (const std::vector<torch::Tensor>& batch : *loader) {
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(model.forward(pixels(batch[0])), batch[1]).backward();
      optimizer.step();
    }
  }
}

double accuracy(Classifier& model, const char* images, const char* labels) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = ps::to_torch(ps::load_tensor(images));
  const torch::Tensor y = ps::to_torch(ps::load_tensor(labels));
  return model.forward(pixels(x)).argmax(1).eq(y).to(torch::kDouble).mean().item<double>();
}

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: train_libtorch images.npy labels.npy [start.pt]\n");
    return 2;
  }
  torch::manual_seed(1);
  Classifier model;
  if (argc > 3) ps::load_state_dict(model, argv[3]);
  std::printf("before %.3f\n", accuracy(model, argv[1], argv[2]));
  train(model, ps::zip({ps::rows(argv[1]), ps::rows(argv[2])}));
  std::printf("after %.3f\n", accuracy(model, argv[1], argv[2]));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "train_libtorch: %s\n", error.what());
  return 1;
}
