// Writes the digits again in the shapes that data sets come in: a loose `.pt` for each digit, a dict of x and y, as a
// PyTorch script would; and a clip for each digit, its inked columns alone, so that clips have different lengths.
//
//   write_digits images.npy labels.npy OUT     (OUT/digits/0000.pt ..., OUT/clips/0000.pt ...)

#include <penstock/penstock.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <string>

namespace ps = penstock;

constexpr std::size_t kSide = 8;

bool is_blank(std::span<const std::uint8_t> image, std::size_t column) {
  for (std::size_t row = 0; row < kSide; ++row) {
    if (image[row * kSide + column] != 0) return false;
  }
  return true;
}

// The image's columns as a sequence (length, 8), blank margins left out.
ps::Tensor clip_of(const ps::Tensor& image) {
  const auto pixels = image.values<const std::uint8_t>();
  std::size_t first = 0;
  std::size_t last = kSide;
  while (first < last && is_blank(pixels, first)) ++first;
  while (last > first && is_blank(pixels, last - 1)) --last;
  return image.transpose(0, 1).slice(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(last)).contiguous();
}

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "usage: write_digits images.npy labels.npy OUT\n");
    return 2;
  }
  const ps::Tensor images = ps::load_tensor(argv[1]);
  const ps::Tensor labels = ps::load_tensor(argv[2]);
  const auto classes = labels.values<const std::int64_t>();
  const std::filesystem::path out = argv[3];
  std::filesystem::create_directories(out / "digits");
  std::filesystem::create_directories(out / "clips");

  const ps::SaveOptions quick{.sync = false};  // a folder that can be made again need not wait for the disk
  for (std::int64_t i = 0; i < images.shape()[0]; ++i) {
    char name[16];
    std::snprintf(name, sizeof(name), "%04d.pt", static_cast<int>(i));
    const ps::Tensor image = images[i].clone();
    const std::int64_t label = classes[static_cast<std::size_t>(i)];
    const ps::Value sample = ps::Value::dict({{"x", ps::Value::tensor(image)}, {"y", ps::Value::integer(label)}});
    ps::save(sample, (out / "digits" / name).string(), quick);
    ps::save(clip_of(image), (out / "clips" / name).string(), quick);
  }
  std::printf("wrote %d digits and clips under %s\n", static_cast<int>(images.shape()[0]), out.c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "write_digits: %s\n", error.what());
  return 1;
}
