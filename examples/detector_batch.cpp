// Batches for a detector: images of different heights and widths with any number of boxes each, padded in two
// dimensions, with the sizes that each sample had. Images are cast and scaled on their way into the batch.
//
//   detector_batch

#include <penstock/penstock.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace ps = penstock;

// In place of a decoder: an image with its boxes (left, top, right, bottom) and their classes.
ps::Value sample(std::int64_t index) {
  const std::int64_t height = 40 + index * 7 % 23;
  const std::int64_t width = 50 + index * 5 % 31;
  const std::int64_t count = 1 + index % 4;
  const ps::Tensor boxes = ps::Tensor::zeros({count, 4}, ps::DType::float32);
  const ps::Tensor classes = ps::Tensor::zeros({count, 1}, ps::DType::int64);
  for (std::int64_t i = 0; i < count; ++i) {
    boxes.values<float>()[static_cast<std::size_t>(4 * i + 2)] = static_cast<float>(width - i);
    boxes.values<float>()[static_cast<std::size_t>(4 * i + 3)] = static_cast<float>(height - i);
    classes.values<std::int64_t>()[static_cast<std::size_t>(i)] = (index + i) % 10;
  }
  return {
      {"image", ps::full({3, height, width}, index % 256, ps::DType::uint8)}, {"boxes", boxes}, {"classes", classes}};
}

int main() try {
  // Names say which tensors a step is for.
  const std::vector<std::string> image = {"image"};
  const ps::Dataset images = ps::dataset(64, sample).cast(ps::DType::float32, false, image).scale(1 / 255.0, image);
  // Height and width are an image's last two dimensions; of boxes and classes these are their number and their parts.
  const ps::Collate pad = ps::collate::pad({.dims = {-2, -1}, .lengths = true});
  ps::DataLoader loader(images, {.batch_size = 8, .shuffle = true, .num_workers = 2, .collate = pad});
  std::int64_t boxes = 0;
  std::int64_t useful = 0;
  std::int64_t padded = 0;
  ps::Shape last;
  for (const ps::Batch& batch : loader) {
    const ps::Tensor sizes = batch.value["image"]["lengths"].as_tensor();  // of each image: height and width
    const ps::Tensor counts = batch.value["boxes"]["lengths"].as_tensor();
    useful += ps::sum(sizes.select(1, 0) * sizes.select(1, 1)).item<std::int64_t>();
    boxes += ps::sum(counts.select(1, 0)).item<std::int64_t>();
    last = batch.value["image"]["values"].as_tensor().shape();
    padded += last.numel() / 3;
  }
  std::printf("%lld boxes; %.0f%% of the pixels are images; the last batch is %s\n", static_cast<long long>(boxes),
              100 * static_cast<double>(useful) / static_cast<double>(padded), last.to_string().c_str());
  return boxes == 160 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "detector_batch: %s\n", error.what());
  return 1;
}
