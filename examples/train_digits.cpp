// Trains a softmax classifier on handwritten digits, stops in the middle of an epoch, and goes on exactly where it
// stopped.
//
//   train_digits images.npy labels.npy     (rows of two arrays)
//   train_digits 'digits/*.pt'             (one file a digit: a dict of x and y)
//
// The batches lie in Penstock's memory; Eigen computes on them in place.

#include <penstock/penstock.h>

#include <Eigen/Dense>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace ps = penstock;

using Pixels = Eigen::Matrix<std::uint8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int kClasses = 10;
constexpr int kPixels = 64;
constexpr int kEpochs = 30;
constexpr float kBrightest = 16;
constexpr float kLearningRate = 0.1F;

struct Digits {
  Matrix x;                         // (batch, 64) in [0, 1]
  std::span<const std::int64_t> y;  // (batch,)
};

// A zip of arrays gives tuples, files of dicts give dicts; both hold the image first and the label second.
Digits view(const ps::Tensor& images, const ps::Tensor& labels) {
  const Eigen::Map<const Pixels> pixels(images.values<const std::uint8_t>().data(), images.shape()[0], kPixels);
  return {pixels.cast<float>() / kBrightest, labels.values<const std::int64_t>()};
}

struct Classifier {
  Matrix weight = Matrix::Zero(kPixels, kClasses);
  Eigen::RowVectorXf bias = Eigen::RowVectorXf::Zero(kClasses);

  Matrix probabilities(const Matrix& x) const {
    Matrix logits = (x * weight).rowwise() + bias;
    logits.colwise() -= logits.rowwise().maxCoeff().eval();
    const Matrix odds = logits.array().exp();
    return odds.array().colwise() / odds.rowwise().sum().array();
  }

  void learn(const Digits& batch) {
    Matrix error = probabilities(batch.x);
    for (Eigen::Index i = 0; i < error.rows(); ++i) error(i, batch.y[i]) -= 1;
    const float step = kLearningRate / static_cast<float>(error.rows());
    weight -= step * batch.x.transpose() * error;
    bias -= step * error.colwise().sum();
  }
};

Digits digits_of(const ps::Batch& batch) {
  if (batch.value.is(ps::Value::Kind::kDict)) return view(batch["x"], batch["y"]);
  return view(batch[0], batch[1]);
}

double accuracy(const Classifier& model, const ps::Dataset& held_out) {
  std::int64_t right = 0;
  ps::DataLoader loader(held_out, {.batch_size = 256});
  for (const ps::Batch& batch : loader) {
    const Digits digits = digits_of(batch);
    const Matrix guess = model.probabilities(digits.x);
    for (Eigen::Index i = 0; i < guess.rows(); ++i) {
      Eigen::Index best = 0;
      guess.row(i).maxCoeff(&best);
      right += best == digits.y[i] ? 1 : 0;
    }
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
                         std::uint64_t epochs, std::int64_t stop_after, std::size_t workers) {
  ps::DataLoader loader(data, {.batch_size = 32, .shuffle = true, .num_workers = workers, .seed = 7});
  loader.seek(from);
  while (loader.position().epoch < epochs || loader.position().batch < stop_after) {
    const std::optional<ps::Batch> batch = loader.next();
    if (batch) model.learn(digits_of(*batch));
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

  Classifier straight;
  train(straight, data, start, kEpochs, 0, 2);

  // The same run, broken off after 17 batches of epoch 11; its position survives as text, as in a checkpoint file.
  Classifier resumed;
  const std::string saved = train(resumed, data, start, 11, 17, 2).to_json();
  std::printf("stopped at     %s\n", saved.c_str());
  train(resumed, data, ps::LoaderPosition::from_json(saved), kEpochs, 0, 1);

  const bool same = straight.weight == resumed.weight && straight.bias == resumed.bias;
  std::printf("resumed run    %s\n", same ? "equals the unbroken one, bit by bit" : "DIFFERS from the unbroken one");
  std::printf("test accuracy  %.3f\n", accuracy(resumed, part(all, true)));
  return same ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "train_digits: %s\n", error.what());
  return 1;
}
