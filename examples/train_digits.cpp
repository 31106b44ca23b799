// Trains a softmax classifier on handwritten digits, stops in the middle of an epoch, and goes on exactly where it
// stopped.
//
//   train_digits images.npy labels.npy     (rows of two arrays)
//   train_digits 'digits/*.pt'             (one file a digit: a dict of x and y)
//
// Batches, weights and every step in between are tensors on one device: the GPU where there is one.

#include <penstock/penstock.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;

constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kPixels = 64;
constexpr int kEpochs = 30;
constexpr float kBrightest = 16;
constexpr float kLearningRate = 0.1F;

struct Digits {
  ps::Tensor x;  // (batch, 64), float32 in [0, 1]
  ps::Tensor y;  // (batch,), int64
};

// A zip of arrays gives tuples, files of dicts give dicts; both hold the image first and the label second.
Digits digits_of(const ps::Batch& batch, ps::Device device) {
  const bool named = batch.value.is(ps::Value::Kind::kDict);
  const ps::Tensor images = (named ? batch["x"] : batch[0]).to(device);
  const ps::Tensor labels = (named ? batch["y"] : batch[1]).to(device);
  return {images.reshape({-1, kPixels}).to(ps::DType::float32) / kBrightest, labels};
}

class Classifier {
 public:
  explicit Classifier(ps::Device device)
      : classes_(ps::arange(0, kClasses, 1, ps::DType::int64, device)),
        weight_(ps::Tensor::zeros({kPixels, kClasses}, ps::DType::float32, device)),
        bias_(ps::Tensor::zeros({kClasses}, ps::DType::float32, device)) {}

  ps::Tensor probabilities(const ps::Tensor& x) const {
    const ps::Tensor logits = ps::matmul(x, weight_) + bias_;
    const ps::Tensor odds = ps::exp(logits - ps::max(logits, 1, true).values);
    return odds / ps::sum(odds, 1, true);
  }

  void learn(const Digits& batch) {
    const std::int64_t size = batch.x.shape()[0];
    const ps::Tensor target = batch.y.reshape({size, 1}) == classes_;
    const ps::Tensor error = probabilities(batch.x) - target.to(ps::DType::float32);
    const float step = kLearningRate / static_cast<float>(size);
    weight_ = weight_ - step * ps::matmul(batch.x.transpose(0, 1), error);
    bias_ = bias_ - step * ps::sum(error, 0);
  }

  friend bool identical(const Classifier& a, const Classifier& b) {
    return ps::Tensor::identical(a.weight_, b.weight_) && ps::Tensor::identical(a.bias_, b.bias_);
  }

 private:
  ps::Tensor classes_;
  ps::Tensor weight_;
  ps::Tensor bias_;
};

double accuracy(const Classifier& model, const ps::Dataset& held_out, ps::Device device) {
  std::int64_t right = 0;
  ps::DataLoader loader(held_out, {.batch_size = 256});
  for (const ps::Batch& batch : loader) {
    const Digits digits = digits_of(batch, device);
    right += ps::sum(ps::argmax(model.probabilities(digits.x), 1) == digits.y).item<std::int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(held_out.size());
}

// Every fifth digit is held out; the rest is learnt from.
ps::Dataset part(const ps::Dataset& all, bool held_out) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < all.size(); ++i) {
    if ((i % 5 == 0) == held_out) chosen.push_back(i);
  }
  return ps::subset(all, chosen);
}

// Trains from `from` to batch `stop_after` of the last epoch named by `epochs`; returns where it stands.
ps::LoaderPosition train(Classifier& model, const ps::Dataset& data, const ps::LoaderPosition& from,
                         std::uint64_t epochs, std::int64_t stop_after, std::size_t workers, ps::Device device) {
  ps::DataLoader loader(data, {.batch_size = 32, .shuffle = true, .num_workers = workers, .seed = 7});
  loader.seek(from);
  while (loader.position().epoch < epochs || loader.position().batch < stop_after) {
    const std::optional<ps::Batch> batch = loader.next();
    if (batch) model.learn(digits_of(*batch, device));
  }
  return loader.position();
}

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: train_digits images.npy labels.npy | train_digits 'digits/*.pt'\n");
    return 2;
  }
  const ps::Dataset all = argc == 3 ? ps::zip(ps::rows(argv[1]), ps::rows(argv[2])) : ps::files(argv[1]);
  const ps::Dataset data = part(all, false);
  ps::LoaderPosition start;
  start.seed = 7;
  start.samples = data.size();

  const ps::Device device = ps::is_available() ? ps::Device("cuda") : ps::Device("cpu");
  Classifier straight(device);
  train(straight, data, start, kEpochs, 0, 2, device);

  // The same run, broken off after 17 batches of epoch 11; its position survives as text, as in a checkpoint file.
  Classifier resumed(device);
  const std::string saved = train(resumed, data, start, 11, 17, 2, device).to_json();
  std::printf("stopped at     %s\n", saved.c_str());
  train(resumed, data, ps::LoaderPosition::from_json(saved), kEpochs, 0, 1, device);

  const bool same = identical(straight, resumed);
  std::printf("resumed run    %s\n", same ? "equals the unbroken one, bit by bit" : "DIFFERS from the unbroken one");
  std::printf("test accuracy  %.3f\n", accuracy(resumed, part(all, true), device));
  return same ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "train_digits: %s\n", error.what());
  return 1;
}
