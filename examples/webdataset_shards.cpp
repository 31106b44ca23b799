// Writes handwritten digits into tar shards, as WebDataset has them, and trains a softmax classifier from the shards.
// The run is stopped in the middle of an epoch and goes on exactly.
//
//   webdataset_shards images.npy labels.npy FOLDER     (FOLDER/train-000.tar ...)

#include <penstock/penstock.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

namespace ps = penstock;

constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kPixels = 64;
constexpr std::int64_t kShard = 500;  // samples
constexpr std::uint64_t kEpochs = 10;

void write_shards(const ps::Tensor& images, const ps::Tensor& labels, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (std::int64_t first = 0; first < images.shape()[0]; first += kShard) {
    char name[32];
    std::snprintf(name, sizeof(name), "train-%03d.tar", static_cast<int>(first / kShard));
    ps::Writer writer((folder / name).string());
    for (std::int64_t i = first; i < std::min(first + kShard, images.shape()[0]); ++i) {
      const ps::Value key = ps::Value::string(std::to_string(i));
      writer.add_sample({{"__key__", key}, {"npy", images[i]}, {"cls", labels.at<std::int64_t>(i)}});
    }
    writer.finish();
  }
}

struct Classifier {
  ps::Tensor weight = ps::Tensor::zeros({kPixels, kClasses}, ps::DType::float32);
  ps::Tensor bias = ps::Tensor::zeros({kClasses}, ps::DType::float32);

  ps::Tensor probabilities(const ps::Tensor& x) const {
    const ps::Tensor logits = ps::matmul(x, weight) + bias;
    const ps::Tensor odds = ps::exp(logits - ps::max(logits, 1, true).values);
    return odds / ps::sum(odds, 1, true);
  }
  static ps::Tensor pixels(const ps::Batch& batch) {
    return batch["npy"].reshape({-1, kPixels}).to(ps::DType::float32) / 16.0F;
  }
  void learn(const ps::Batch& batch) {
    const ps::Tensor x = pixels(batch);
    const std::int64_t size = x.shape()[0];
    const ps::Tensor target = batch["cls"].reshape({size, 1}) == ps::arange(0, kClasses, 1, ps::DType::int64);
    const ps::Tensor error = probabilities(x) - target.to(ps::DType::float32);
    const float step = 0.1F / static_cast<float>(size);
    weight = weight - step * ps::matmul(x.transpose(0, 1), error);
    bias = bias - step * ps::sum(error, 0);
  }
  std::int64_t right(const ps::Batch& batch) const {
    return ps::sum(ps::argmax(probabilities(pixels(batch)), 1) == batch["cls"]).item<std::int64_t>();
  }
};

// Goes on from where the loader stands until it stands at this place.
void train(Classifier& model, ps::DataLoader& loader, std::uint64_t epoch, std::int64_t batch) {
  while (loader.position().epoch < epoch || loader.position().batch < batch) {
    if (const auto next = loader.next()) model.learn(*next);
  }
}

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "usage: webdataset_shards images.npy labels.npy FOLDER\n");
    return 2;
  }
  const std::string folder = argv[3];
  write_shards(ps::load_tensor(argv[1]), ps::load_tensor(argv[2]), folder);
  const ps::Dataset digits = ps::shards(folder + "/train-*.tar", {.keys = {"npy", "cls"}, .index = false});
  const ps::LoaderOptions options{.batch_size = 32, .shuffle = true, .num_workers = 2, .seed = 7};
  std::printf("%d digits in shards\n", static_cast<int>(digits.size()));

  Classifier straight;
  ps::DataLoader whole(digits, options);
  train(straight, whole, kEpochs, 0);

  Classifier model;
  ps::DataLoader stopped(digits, options);
  train(model, stopped, 4, 17);
  const std::string state = stopped.position().to_json();
  ps::DataLoader resumed(digits, options);
  resumed.seek(ps::LoaderPosition::from_json(state));
  train(model, resumed, kEpochs, 0);

  std::int64_t right = 0;
  ps::DataLoader all(digits, {.batch_size = 256, .num_workers = 2});
  for (const ps::Batch& batch : all) right += model.right(batch);
  std::printf("%.1f %% of them are told right\n",
              100.0 * static_cast<double>(right) / static_cast<double>(digits.size()));
  const bool same = ps::Tensor::identical(straight.weight, model.weight);
  std::printf("resumed after batch 17 of epoch 4: %s\n", same ? "the same model" : "ANOTHER model");
  return same ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "webdataset_shards: %s\n", error.what());
  return 1;
}
